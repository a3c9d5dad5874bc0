"""The slider in a real browser: its numbers are those of the metrics at any threshold, bit by bit."""

import base64
import json
import random
import re
import shutil
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fake_results import BASE, MANIFEST, STAKES, fake_results, fake_tree, verdicts
from sklearn.metrics import confusion_matrix

from monitorbench.config.evaluation import Stakes
from monitorbench.metrics.columns import Columns, columns
from monitorbench.metrics.metrics_json import as_results
from monitorbench.metrics.registry import as_json
from monitorbench.metrics.summary import rates_at
from monitorbench.records import Label
from monitorbench.report.samples.judged import Scores, distinct
from monitorbench.report.write import render_report
from monitorbench.scoring.operating_point import CalibratedThreshold, labels_at, threshold_point

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium here (make system-deps installs Debian's)"
)
NAMES = (BASE, f"{BASE}+all")
KEYS = ("miss_rate", "false_alarm_rate", "precision", "expected_cost")


def judged_by(name: str) -> Columns:
    """Scores with ties and gaps: some are missing, some rounded to two digits, some next to each other."""
    found = columns(verdicts(name, "direct"))
    scores = found.scores.copy()
    scores[::7] = np.nan
    scores[1::5] = scores[1::5].round(2)
    scores[4] = np.nextafter(scores[2], 1)
    return found.answering(found.flagged, scores)


def scores_of(name: str) -> Scores:
    found = judged_by(name)
    return distinct(name, "direct", found.scores, found.is_misbehavior)


def at(judged: Columns, value: float) -> Columns:
    """The answers at a threshold, as score.py reads them."""
    point = threshold_point(
        CalibratedThreshold(
            method="neyman_pearson", monitor="m", category="", data="d", part="whole", alpha=0.1, delta=0.1,
            n=50, n_unscored=0, threshold=value, attained=0.1,
        )
    )  # fmt: skip
    labels = labels_at(point, monitor="m", scores=judged.scores, categories=["x"] * len(judged))
    answers = {Label.MISBEHAVIOR: 1.0, Label.BENIGN: 0.0, None: np.nan}
    return judged.answering(np.array([answers[one] for one in labels]), judged.scores)


@pytest.fixture(scope="module")
def browser_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The report, open in Chromium; whatever the console says is a failure."""
    from playwright.sync_api import sync_playwright

    file = tmp_path_factory.mktemp("page") / "report.html"
    page = render_report(fake_results(), MANIFEST, scores=[scores_of(name) for name in NAMES])
    file.write_text(page, encoding="utf-8")
    said: list[str] = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        opened = browser.new_page()
        opened.on("console", lambda message: said.append(message.text))
        opened.on("pageerror", lambda error: said.append(str(error)))
        opened.goto(file.as_uri())
        yield opened
        browser.close()
    assert said == []


def numbers(page: Any) -> dict[str, float | None]:
    found = {key: page.get_attribute(f'[data-of="{key}"]', "data-value") for key in KEYS}
    return {key: float(value) if value else None for key, value in found.items()}


@needs_chromium
@pytest.mark.figures
@pytest.mark.slow
def test_the_sliders_numbers_are_those_of_the_metrics(browser_page: Any):
    """A threshold picked on the page would do something else where it is deployed."""
    rng = random.Random(0)
    stakes = Stakes(base_rate=0.07, cost_miss=31.0, cost_alarm=3.0)
    for number, name in enumerate(NAMES):
        browser_page.select_option('[name="curve"]', str(number))
        judged = judged_by(name)
        values = scores_of(name).values
        thresholds = [-1.0, 0.0, 1.0, 0.123456789, *rng.sample(values.tolist(), 6)]
        for i, value in enumerate(thresholds):
            used = stakes if i % 2 else STAKES
            for key, stake in used.model_dump().items():
                browser_page.fill(f'[name="{key}"]', repr(stake))
            browser_page.fill('[name="threshold"]', repr(value))
            read = at(judged, value)
            expected = as_json(rates_at(read, used))
            assert numbers(browser_page) == {key: expected[key] for key in KEYS}, (name, value)
            there = ~np.isnan(judged.scores)
            (tn, fp), (fn, tp) = confusion_matrix(
                judged.is_misbehavior[there], judged.scores[there] > value, labels=[False, True]
            )
            assert numbers(browser_page)["miss_rate"] == fn / (fn + tp)
            assert numbers(browser_page)["false_alarm_rate"] == fp / (fp + tn)
            shown = browser_page.text_content('[data-of="false_alarm_rate"]')
            low, high = expected["false_alarm_rate_ci"] or (0, 0)
            assert [float(x) for x in re.findall(r"\[(.*?)–(.*?)\]", shown)[0]] == pytest.approx(
                [low, high], abs=0.0051
            )
            assert f"{fp} of {fp + tn}" in shown


@needs_chromium
@pytest.mark.figures
def test_moving_it_lands_on_each_score_and_the_mark_is_the_calibrated_one(browser_page: Any):
    """A mark beside its threshold sends the reader to another one than was promised."""
    values = scores_of(BASE).values
    browser_page.select_option('[name="curve"]', "0")
    assert browser_page.get_attribute('[name="position"]', "max") == str(len(values))
    for position in (0, 1, 7, len(values)):
        browser_page.fill('[name="position"]', str(position))
        expected = -1.0 if position == 0 else values[position - 1]
        assert float(browser_page.input_value('[name="threshold"]')) == expected
    browser_page.click('[name="calibrated"]')
    point = fake_results()["operating_points"][BASE]["direct"]["thresholds"][0]
    assert float(browser_page.input_value('[name="threshold"]')) == point["threshold"]
    assert "of questions with 95 % confidence, on 120 benign questions" in browser_page.text_content(
        '[name="calibrated"]'
    )
    assert browser_page.is_visible(".point")
    browser_page.select_option('[name="curve"]', "1")
    assert not browser_page.is_visible(".point"), "no threshold was calibrated for it"


def test_20000_samples_of_four_monitors_take_less_than_two_megabytes():
    """A page that mails refuse, and phones don't open."""
    rng = np.random.default_rng(0)
    bad = np.arange(20_000) % 2 == 0
    many = [distinct(f"m{i}", "direct", rng.random(20_000), bad) for i in range(4)]
    assert sum(len(json.dumps(one.packed())) for one in many) < 2_000_000
    again = np.frombuffer(base64.b64decode(many[0].packed()["values"]), "<f8")
    assert again.tolist() == many[0].values.tolist(), "not rounded"
    assert (many[0].misbehavior + many[0].benign == 1).all()


def test_counts_above_a_byte_are_kept():
    """A judge of few distinct scores would lose most of its samples."""
    found = distinct("m", "direct", np.array([0.5] * 300 + [np.nan]), np.array([True] * 301))
    packed = found.packed()
    assert np.frombuffer(base64.b64decode(packed["misbehavior"]), f"<u{int(packed['bits']) // 8}") == [300]
    assert found.n_without == 1


def test_a_name_cannot_end_the_script_it_stands_in():
    """A monitor's name would become markup of the page."""
    results = fake_tree()
    name = "</script><b>x"
    for key in ("monitors", "slices", "macro", "overall"):
        results[key][name] = results[key].pop(BASE)
    results["decision"] = json.loads(json.dumps(results["decision"]).replace(BASE, name))
    results.pop("operating_points", None)
    results["usage"] = {}
    page = render_report(as_results(results), MANIFEST, scores=[scores_of(BASE)._replace(monitor=name)])
    assert "</script><b>x" not in page
