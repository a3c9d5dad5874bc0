"""The site is built without a warning, and loads nothing from elsewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_pages_load_nothing_from_elsewhere(site: Path):
    """A reader without network would see a page without its look."""
    loaded = re.compile(r"<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=[\"']?(https?:)?//", re.IGNORECASE)
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 20
    assert not [page.name for page in pages if loaded.search(page.read_text(encoding="utf-8"))]


@pytest.mark.slow
def test_the_api_page_has_every_public_name(site: Path):
    import monitorbench

    text = (site / "api" / "index.html").read_text(encoding="utf-8")
    for name in monitorbench.__all__:
        assert re.search(rf'id="monitorbench\.library\.\w+\.{name}"', text), name


@pytest.mark.slow
def test_the_site_can_be_searched(site: Path):
    assert "calibrate.alpha" in (site / "search" / "search_index.json").read_text(encoding="utf-8")
