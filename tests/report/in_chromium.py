"""A page in a real headless Chromium, from a file and without a network."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium here (make system-deps installs Debian's)"
)
WIDTHS, SCHEMES = (1280, 420), ("light", "dark")
LOOKS = (
    ("light", 1280),
    ("dark", 420),
    pytest.param("dark", 1280, marks=pytest.mark.slow),
    pytest.param("light", 420, marks=pytest.mark.slow),
)
"""Values of `("scheme", "width")`; each of them in `make test`, all pairs in `make test-slow`."""


@contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(
    browser: Any, file: Path, fragment: str = "", width: int = 1280, scheme: str = "light"
) -> Iterator[Any]:
    """The page; whatever its console says, and whatever it asks of a network, is a failure."""
    said: list[str] = []
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda asked: asked.url.startswith("file:") or said.append(asked.url))
    page.goto(f"{file.as_uri()}{fragment}")
    yield page
    context.close()
    assert said == []


def shows_all(page: Any) -> None:
    """No part of the page is wider than the screen, but for what scrolls in a box of its own."""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def violations(page: Any) -> list[str]:
    """What axe-core finds that is serious or critical; figures' outlines are taken out of the page before."""
    import axe_core_python

    # Thousands of them, which take half a minute and hold nothing that is read aloud; links stay.
    page.evaluate("document.querySelectorAll('svg :not(a, :has(a), a *)').forEach((one) => one.remove())")

    page.evaluate((Path(axe_core_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run({ resultTypes: ['violations'] })")
    return [
        f"{one['id']}: {node['html'][:160]} {node['failureSummary']}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
