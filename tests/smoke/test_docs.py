"""The documentation leads everywhere: every room, every page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(page.name for page in (ROOT / "docs").glob("*.md") if page.name != "index.md")
ROOMS = sorted(
    f"{path.name}/" if path.is_dir() else path.name
    for path in (ROOT / "src" / "monitorbench").iterdir()
    if not path.name.startswith("_") and path.suffix in ("", ".py")
)


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_is_in_the_table(room: str):
    """A newcomer finds a room that the table leaves out only by grep."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| `{re.escape(room)}` \| \S", text, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_every_page_is_led_to(page: str):
    """A page that neither the index nor the navigation names is never read."""
    assert f"]({page})" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert f"- {page}\n" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_the_picture_of_the_report_is_there_and_small():
    """The first thing a reader sees; a large one makes every clone slower."""
    picture = ROOT / "docs" / "images" / "report.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size <= 300 * 1024
    assert "docs/images/report.png" in (ROOT / "README.md").read_text(encoding="utf-8")
