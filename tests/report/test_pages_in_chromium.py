"""The report at two widths, light and dark: nothing overflows, marks are in view, axe is content."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_judged import fake_runs
from fake_results import BASE, MANIFEST, fake_results
from fake_worst import fake_worst
from in_chromium import LOOKS, chromium, needs_chromium, opened, shows_all, violations

from monitorbench.report.samples.browsable import render_samples
from monitorbench.report.write import render_report

pytestmark = [needs_chromium, pytest.mark.figures]
RESULTS = fake_results()
RUNS = fake_runs()
MARKS = """() => [...document.querySelectorAll('[id*="-mark-"]')].map((one) => {
  const { left, right, width } = one.getBoundingClientRect();
  return [one.id, left >= 0 && right <= innerWidth && width > 0];
})"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    browsable = {(run.monitor, run.prompt) for run in RUNS}
    page = render_report(RESULTS, MANIFEST, fake_worst(), browsable=browsable)
    (folder / "report.html").write_text(page, encoding="utf-8")
    (folder / "samples.html").write_text(render_samples(RESULTS, RUNS), encoding="utf-8")
    return folder / "report.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_the_report_fits_and_can_be_read(
    browser: Any, file: Path, tmp_path: Path, width: int, scheme: str
) -> None:
    """A decision is read on a phone as well; a mark that is out of view there was not shown."""
    with opened(browser, file, width=width, scheme=scheme) as page:
        shows_all(page)
        marks = page.evaluate(MARKS)
        assert [one for one, is_seen in marks if not is_seen] == []
        figures = {one.partition("-mark-")[0] for one, _ in marks}
        assert {re.sub(r"[-\d]+.*", "", one) for one in figures} == {
            "scatter", "cost", "roc", "reliability", "curves", "plane", "recommendation",
        }  # fmt: skip
        shot = tmp_path / "report.png"
        page.screenshot(path=shot, full_page=True)
        assert shot.stat().st_size > 200_000
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        shows_all(page)
        assert violations(page) == []


def test_axe_and_the_widths_are_really_measured(browser: Any, tmp_path: Path) -> None:
    """A check that finds nothing in a page full of faults would find nothing anywhere."""
    bad = tmp_path / "bad.html"
    pale = "<p style='color:#eee;background:#fff'>pale words</p>"
    faults = f"{pale}<button></button><div style='width:5000px'>y</div>"
    bad.write_text(f"<title>x</title>{faults}", encoding="utf-8")
    with opened(browser, bad) as page:
        found = violations(page)
        assert {one.partition(":")[0] for one in found} >= {"button-name", "color-contrast"}
        with pytest.raises(AssertionError):
            shows_all(page)


def test_tables_are_cards_on_a_phone(browser: Any, file: Path) -> None:
    """A table of ten columns on a phone shows two; a card names each of its numbers."""
    with opened(browser, file, width=420) as page:
        found = page.evaluate(
            """() => [...document.querySelectorAll('table:not(details table)')].map((table) => [
              getComputedStyle(table.tHead).display, table.scrollWidth <= innerWidth,
              [...table.querySelectorAll('tbody td')].every((cell) => cell.dataset.label)])"""
        )
        assert len(found) > 5
        assert {tuple(one) for one in found} == {("none", True, True)}


def test_contents_lead_to_each_section(browser: Any, file: Path) -> None:
    """A page of twelve sections is scrolled through by nobody."""
    with opened(browser, file) as page:
        links = page.locator(".contents a").evaluate_all("all => all.map((one) => one.getAttribute('href'))")
        sections = page.locator("main > section").evaluate_all("all => all.map((one) => `#${one.id}`)")
        assert links == [*sections[1:], "samples.html"]
        page.click(f'.contents a[href="{sections[5]}"]')
        assert abs(page.locator(sections[5]).bounding_box()["y"]) < 60


def test_a_cell_leads_to_its_samples(browser: Any, file: Path) -> None:
    """From ".30 missed here" to the very samples, in the map and in the table."""
    for place in (".matrix a", ".by-cell tbody + tbody a"):
        with opened(browser, file) as page:
            link = page.locator(f'{place}[href*="cell="][href*="verdict=miss"]').first
            link.focus()
            page.keyboard.press("Enter")
            page.wait_for_url("**/samples.html#**")
            page.wait_for_selector("body[data-shown]")
            assert page.input_value("[name=verdict]") == "miss"
            assert f"monitor={BASE}" in page.url
            chosen = page.input_value("[name=cell]")
            assert chosen
            shown = set(page.locator("#list .cell").all_text_contents())
            assert all(one.startswith(chosen) for one in shown)
