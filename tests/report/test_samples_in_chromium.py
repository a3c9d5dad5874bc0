"""The samples page in a real browser: what its filters count, where links lead, that text stays text."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fake_judged import fake_runs, fake_samples
from fake_results import BASE, fake_results
from hostile import HOSTILE
from in_chromium import LOOKS, chromium, needs_chromium, opened, shows_all, violations

from monitorbench.records import Label, Sample, Verdict
from monitorbench.report.samples.browsable import link, render_samples
from monitorbench.report.template import visible

pytestmark = [needs_chromium, pytest.mark.figures]
RUNS = fake_runs()
SAMPLES = fake_samples()
RESULTS = fake_results()
BAD = Label.MISBEHAVIOR


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "samples.html"
    path.write_text(render_samples(RESULTS, RUNS), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


def count(page: Any) -> int:
    page.wait_for_selector("body[data-shown]")
    return int(page.inner_text("#count").split(" of ")[0].replace(",", ""))


def at_point(sample: Sample, verdict: Verdict) -> Label | None:
    limit = RESULTS["operating_points"][BASE]["direct"]["thresholds"][0]["threshold"]
    return None if verdict.score is None else BAD if verdict.score > limit else Label.BENIGN


Keep = Callable[[Sample, Verdict | None], bool]


def misses(sample: Sample, verdict: Verdict | None) -> bool:
    return verdict is not None and sample.label is BAD and verdict.label is Label.BENIGN


def alarms(sample: Sample, verdict: Verdict | None) -> bool:
    return verdict is not None and sample.label is Label.BENIGN and verdict.label is BAD


FILTERS: list[tuple[str, str, Keep]] = [
    ("direct", "", lambda s, v: True),
    ("direct", "at=own&verdict=miss", misses),
    ("direct", "at=own&verdict=alarm", alarms),
    ("direct", "at=own&verdict=wrong", lambda s, v: misses(s, v) or alarms(s, v)),
    ("direct", "at=own&verdict=unscored", lambda s, v: v is not None and v.label is None),
    ("direct", "at=own&verdict=caught", lambda s, v: v is not None and v.label is s.label is BAD),
    ("direct", "verdict=caught", lambda s, v: v is not None and s.label is BAD is at_point(s, v)),
    ("direct", "verdict=unscored", lambda s, v: v is not None and v.score is None),
    ("evidence", "verdict=none", lambda s, v: v is None),
    ("evidence", "verdict=miss&cell=safety_permission/qa", lambda s, v: misses(s, v) and s.task == "qa"),
    ("direct", "cell=sycophancy_bias", lambda s, v: s.category == "sycophancy_bias"),
    ("direct", f"source={quote(visible(f'other {HOSTILE}'))}", lambda s, v: s.source.startswith("other")),
    ("direct", "stratum=subcategory:kind 1", lambda s, v: s.subcategory == "kind 1"),
    ("direct", "stratum=cue:user_opinion&label=benign", lambda s, v: s.cue != "" and s.label is not BAD),
    ("direct", "text=REQUEST 3:", lambda s, v: "Request 3:" in s.request[0].content),
    ("direct", "text=a%20trace.", lambda s, v: s.response[0].thinking != ""),
    ("direct", "text=(%5B%5Cnot", lambda s, v: False),
]  # fmt: skip


def test_filters_count_what_python_counts(browser: Any, file: Path) -> None:
    """A link that says "12 misses" and shows others makes every number of the report doubtful."""
    counts = set()
    with opened(browser, file) as page:
        count(page)  # once all of it is there
        for prompt, filters, keep in FILTERS:
            verdicts = next(run.verdicts for run in RUNS if run.prompt == prompt)
            expected = sum(keep(sample, verdicts.get(sample.id)) for sample in SAMPLES)
            page.evaluate("delete document.body.dataset.shown")
            page.evaluate(
                "(place) => { location.hash = place; }", f"monitor={BASE}&prompt={prompt}&{filters}"
            )
            assert count(page) == expected, (prompt, filters)
            assert page.locator("#list li").count() == expected
            counts.add(expected)
    assert len(counts) > 8, "else this test shows little"


def test_controls_change_the_address_and_the_list(browser: Any, file: Path) -> None:
    """What was filtered can be sent to a colleague, and the way back leads back."""
    with opened(browser, file) as page:
        assert count(page) == len(SAMPLES)
        page.select_option("[name=at]", "own")
        page.wait_for_url("**at=own")
        page.select_option("[name=verdict]", "miss")
        page.wait_for_url("**verdict=miss")
        page.select_option("[name=cell]", "sycophancy_bias")
        page.wait_for_url("**cell=sycophancy_bias")
        expected = [
            s for s in SAMPLES if misses(s, RUNS[0].verdicts[s.id]) and s.category == "sycophancy_bias"
        ]
        page.wait_for_function("n => document.querySelectorAll('#list li').length === n", arg=len(expected))
        page.select_option("[name=order]", "worst")
        page.wait_for_url("**order=worst")
        page.locator("#list li a").first.click()
        page.wait_for_selector("#sample:not([hidden])")

        def score(one: Sample) -> float:
            found = RUNS[0].verdicts[one.id].score
            return 2.0 if found is None else found

        order = sorted(expected, key=score)
        assert f"sample={order[0].id}" in page.url
        for sample in order[1:3]:
            page.keyboard.press("j")
            page.wait_for_url(f"**sample={sample.id}")
        page.keyboard.press("ArrowLeft")
        page.wait_for_url(f"**sample={order[1].id}")
        page.keyboard.press("Escape")
        page.wait_for_selector("#list:not([hidden])")
        assert count(page) == len(expected)
        page.keyboard.press("/")
        page.keyboard.type("Request 4:")
        page.wait_for_url("**text=Request+4%3A**")
        page.click("[type=reset]")
        page.wait_for_function(
            "n => document.querySelector('#count').textContent.startsWith(`${n} of`)", arg=len(SAMPLES)
        )


def test_the_page_begins_at_the_deployed_threshold_with_headings_and_own_ids(
    browser: Any, tmp_path: Path
) -> None:
    """Under "flag above .62" a score of .54 was called a false alarm; nobody finds a row by our hash."""
    file = tmp_path / "samples.html"
    named = [sample.model_copy(update={"own_id": f"row {i}"}) for i, sample in enumerate(SAMPLES)]
    runs = [run._replace(samples=named) for run in RUNS]
    file.write_text(render_samples(RESULTS, runs), encoding="utf-8")
    limit = RESULTS["operating_points"][BASE]["direct"]["thresholds"][0]["threshold"]
    with opened(browser, file, "#verdict=alarm") as page:
        assert count(page) == sum(
            at_point(sample, RUNS[0].verdicts[sample.id]) is BAD and sample.label is not BAD
            for sample in SAMPLES
        )
        assert "Judged by the calibrated threshold: flag above" in page.inner_text("#point")
        assert all(float(score) >= limit for score in page.locator("#list li .score").all_text_contents())
        heads = ["verdict", "score", "label", "sample", "cell", "answer"]
        assert page.locator("#list .heads span").all_text_contents() == heads
        assert set(page.locator("#list li .id").all_text_contents()) <= {sample.own_id for sample in named}
        page.locator("#list li a").first.click()
        page.wait_for_selector("#sample:not([hidden])")
        facts = page.inner_text("#sample dl")
        assert "own idrow " in facts
    with opened(browser, file, "#text=row 17") as page:
        assert count(page) == 1


def test_a_link_shows_a_pair_with_what_was_quoted(browser: Any, file: Path) -> None:
    """The reader sees both answers, which is which, and the words that the monitor gave as its reason."""
    sample = SAMPLES[5]
    other = next(one for one in SAMPLES if one.pair_id == sample.pair_id and one.id != sample.id)
    address = link(BASE, "evidence", sample=sample.id).partition("#")[2]
    with opened(browser, file, f"#{address}") as page:
        page.wait_for_selector("#sample:not([hidden])")
        assert page.locator(".pair h3").all_text_contents() == [
            "this answer: benign",
            "counterpart: misbehavior",
        ]
        for i, one in enumerate((sample, other)):
            text = one.response[0].content
            box = page.locator(".pair article").nth(i)
            assert "".join(box.locator("mark").all_text_contents()) == visible(text[3:40])
            assert visible(text) in box.locator("pre", has_text="[assistant]").first.text_content()
            assert visible(f"lost {HOSTILE}") in box.locator("li").all_text_contents()
        assert page.locator("tbody tr").count() == len(RUNS)
        assert HOSTILE.partition("<")[0] in page.text_content("tbody")
        page.locator("tbody tr a").first.click()
        page.wait_for_url("**prompt=direct**")
        page.wait_for_function("document.querySelectorAll('mark').length === 0")


def test_hostile_text_stays_text(browser: Any, file: Path) -> None:
    """Judged text that became markup would act in the reader's browser, or hide."""
    for sample in (SAMPLES[0], SAMPLES[-1]):
        with opened(browser, file, f"#prompt=evidence&sample={sample.id}") as page:
            page.wait_for_selector("#sample:not([hidden])")
            assert page.title().startswith("Samples of starter")
            assert page.locator("main img, main script, main b b").count() == 0
            assert "onerror=" in page.text_content(".pair")
            assert "\u202e" not in page.text_content("body")


def test_an_unknown_sample_is_said(browser: Any, file: Path) -> None:
    """A link to a sample of another dataset must not show some other sample in its place."""
    with opened(browser, file, "#sample=0123456789abcdef&monitor=nobody") as page:
        page.wait_for_selector("body[data-shown]")
        assert "No sample 0123456789abcdef here." in page.inner_text("#count")


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_list_and_sample_fit_and_can_be_read(
    browser: Any, file: Path, tmp_path: Path, width: int, scheme: str
) -> None:
    """On a phone, in the dark, with a screen reader: the page is for those too."""
    for name, fragment in {"list": "", "sample": f"#prompt=evidence&sample={SAMPLES[4].id}"}.items():
        with opened(browser, file, fragment, width, scheme) as page:
            page.wait_for_selector("body[data-shown]")
            shows_all(page)
            shot = tmp_path / f"{name}.png"
            page.screenshot(path=shot, full_page=True)
            assert shot.stat().st_size > 20_000
            assert violations(page) == []


def test_pages_of_the_list_hold_every_sample_once(browser: Any, tmp_path: Path) -> None:
    """With thousands of samples the list is cut: none may fall between two pages, or lead back elsewhere."""
    samples = fake_samples(60)
    path = tmp_path / "samples.html"
    path.write_text(render_samples(RESULTS, fake_runs(samples)), encoding="utf-8")
    with opened(browser, path) as page:
        assert count(page) == len(samples) == 240
        seen: list[str] = []
        for number in (1, 2, 3):
            page.wait_for_function(
                "n => document.querySelector('#list nav span').textContent === `page ${n} of 3`", arg=number
            )
            links = page.locator("#list li a").evaluate_all("all => all.map((one) => one.hash)")
            seen += [one.partition("sample=")[2] for one in links]
            page.keyboard.press("ArrowRight")
        assert sorted(seen) == sorted(one.id for one in samples)
        page.locator("#list li a").first.click()
        page.wait_for_selector("#sample:not([hidden])")
        for _ in range(3):
            page.click("#sample [name=forth]")
        page.wait_for_url(f"**sample={seen[203]}")
        page.keyboard.press("Escape")
        page.wait_for_selector("#list:not([hidden])")
        assert "page=3" in page.url
