"""The report as a browser sees it: real headless Chromium, from a file."""

import base64
import hashlib
import json
import re
import subprocess
from html import unescape
from pathlib import Path

import pytest
from fake_results import BASE, MANIFEST, fake_results, fake_tree
from fake_worst import fake_worst
from hostile import SCRIPT
from in_chromium import CHROMIUM, needs_chromium

from monitorbench.metrics.metrics_json import as_results
from monitorbench.report.write import render_report

pytestmark = needs_chromium

DRIVER = """
const table = document.querySelector("table.sortable");
const heads = [...table.tHead.rows[0].cells];
const head = heads.find((one) => one.textContent.trim() === "AUROC");
const button = head.firstElementChild;
const rows = () => [...table.tBodies[0].rows];
const sort = () => head.getAttribute("aria-sort");
const values = () => rows().map((row) => row.cells[heads.indexOf(head)].firstChild.data.trim());
const seen = [{ button: button.outerHTML, sort: sort(), values: values() }];
for (let press = 0; press < 2; press++) {
  button.click();
  seen.push({ sort: sort(), values: values(), focus: button.tabIndex });
}
heads[0].firstElementChild.click();
seen.push({ sort: sort(), names: rows().map((row) => row.cells[0].textContent) });
document.body.dataset.seen = JSON.stringify(seen);
"""
"""Presses headings as a person would, and leaves what it saw in the page. Enter on a button is a click."""


def opened(page: str, folder: Path) -> tuple[str, str]:
    """The page's DOM after its scripts ran, and what Chromium wrote to stderr."""
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    assert CHROMIUM is not None
    done = subprocess.run(
        [
            CHROMIUM,
            *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-quic"),
            *("--disable-background-networking", "--enable-logging=stderr", "--window-size=1200,3000"),
            *(
                f"--user-data-dir={folder / 'profile'}",
                f"--screenshot={folder / 'page.png'}",
                "--dump-dom",
            ),
            path.as_uri(),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=180,
    )
    return done.stdout, done.stderr


def with_driver(page: str) -> str:
    """The page with our script allowed beside its own, by its hash: the policy stays as strict."""
    digest = base64.b64encode(hashlib.sha256(DRIVER.encode()).digest()).decode()
    page = page.replace("script-src &#39;", f"script-src &#39;sha256-{digest}&#39; &#39;", 1)
    assert digest in page
    return page.replace("</body>", f"<script>{DRIVER}</script></body>")


@pytest.mark.figures
def test_the_page_opens_sorts_and_obeys_no_sample(tmp_path: Path) -> None:
    """Otherwise: a broken style or figure, a table that lies about its order, or judged text that acts."""
    tree = fake_tree()
    tree["monitors"][BASE]["direct"]["overall"]["auroc"] = None
    tree["monitors"][BASE]["evidence"]["overall"]["auroc"] = 0.0
    page = render_report(as_results(tree), MANIFEST, fake_worst())
    assert unescape(page).count(SCRIPT) > 10

    dom, errors = opened(with_driver(page), tmp_path)

    assert "CONSOLE" not in errors, errors
    assert dom.count("<svg") >= 6
    assert dom.rstrip().endswith("</html>")
    assert "<title>Deploy" in dom
    found = re.search(r'data-seen="(.*?)"', dom)
    assert found is not None
    before, up, down, by_name = json.loads(unescape(found[1]))
    numbers = sorted(float(text) for text in before["values"] if text != "–")
    assert before["button"] == '<button type="button">AUROC</button>'
    assert (before["sort"], up["sort"], down["sort"]) == (None, "ascending", "descending")
    assert up["focus"] == 0
    # The base's direct prompt has two rows: its own answers, and its calibrated threshold.
    assert [float(text) for text in up["values"][:-2]] == numbers
    assert [float(text) for text in down["values"][:-2]] == numbers[::-1]
    assert up["values"][-2:] == down["values"][-2:] == ["–", "–"]
    assert by_name["sort"] is None
    assert by_name["names"].index("bag_of_words") < by_name["names"].index("smollm2_135m")


def test_a_script_would_not_run_had_escaping_failed(tmp_path: Path) -> None:
    """The policy is the second lock: one forgotten escape must not hand the reader's browser to a sample."""
    page = render_report(fake_results(), MANIFEST)
    attack = f"{SCRIPT}<img src=x onerror=\"document.title='owned'\"><base href='https://example.invalid/'>"
    dom, errors = opened(page.replace("<h1>", f"{attack}<h1>", 1), tmp_path)
    assert "document.title" in dom
    assert "<title>Deploy" in dom
    assert "Content Security Policy" in errors
    # The attack would have worked without the policy, so the policy is what stopped it.
    without = re.sub(r'<meta http-equiv="Content.*?>', "", page)
    dom, _ = opened(without.replace("<h1>", f"{SCRIPT}<h1>", 1), tmp_path)
    assert "<title>owned</title>" in dom
