import base64
import copy
import hashlib
import re
import warnings
from functools import cache
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from fake_results import BASE, MANIFEST, fake_results, fake_shortcuts, fake_tree
from fake_worst import fake_worst
from hostile import HOSTILE as HOSTILE_TEXT
from test_report_tables import renamed

from monitorbench.metrics.columns import stratum_name
from monitorbench.metrics.metrics_json import as_results
from monitorbench.metrics.registry import from_json
from monitorbench.metrics.table import Place, Table
from monitorbench.metrics.words import add_corrected
from monitorbench.report.samples.judged import Scores
from monitorbench.report.sections import curves as figures_curves
from monitorbench.report.sections import curves as figures_learning
from monitorbench.report.sections import thresholds as figures_scatter
from monitorbench.report.sections.answer import details, training_changed
from monitorbench.report.write import render_report

pytestmark = pytest.mark.figures
RESULTS = fake_results()
WORST = fake_worst()
BROWSABLE = {(BASE, "direct"), (BASE, "evidence")}


@cache
def page_of_results() -> str:
    return render_report(RESULTS, MANIFEST, WORST, browsable=BROWSABLE)


HOSTILE = "<script>alert(1)</script>\"'&$x^$-->{{ 7*7 }}"


class Page(HTMLParser):
    """Every tag with its attributes, all ids, and the text outside of tags."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def assert_self_contained(html: str) -> None:
    page = Page(html)
    assert not {tag for tag, _ in page.tags} & {"link", "img", "iframe", "object", "embed", "image", "form"}
    scripts = [attributes for tag, attributes in page.tags if tag == "script"]
    assert [one for one in scripts if one != {"type": "application/json"}] == [{}, {}]
    for _, attributes in page.tags:
        for name, value in attributes.items():
            assert re.fullmatch(r"[a-z0-9:.-]+", name)  # nothing broke out of another attribute
            assert not name.startswith("on")
            if name in ("src", "href", "xlink:href", "action", "data"):
                assert (value or "").startswith(("#", "samples.html"))
    assert not re.search(r"url\((?!#)|@import|javascript:", html)
    assert "\x1b" not in html
    assert not re.search("[\u200f\u202a-\u202e]", html)


def test_page_needs_nothing_beside_it() -> None:
    """A report that loads anything breaks offline, and tells a server who reads it."""
    assert_self_contained(page_of_results())


def test_policy_lets_its_two_scripts_run() -> None:
    """A policy with a wrong hash stops the sorting; one with a wider source lets judged text act."""
    scripts = re.findall(r"<script>(.*?)</script>", page_of_results(), re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
    assert len(digests) == 2
    hashes = " ".join(f"'sha256-{digest}'" for digest in digests)
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; base-uri 'none'; "
        "form-action 'none'"
    )
    assert ("meta", {"http-equiv": "Content-Security-Policy", "content": policy}) in Page(
        page_of_results()
    ).tags


def test_ids_are_unique_and_every_reference_is_met() -> None:
    """Two figures that share an id draw each other's glyphs and clip each other's points."""
    ids = [attributes["id"] for _, attributes in Page(page_of_results()).tags if "id" in attributes]
    assert len(ids) == len(set(ids)) > 100
    used = set(re.findall(r'href="#([^"]+)"', page_of_results())) | set(
        re.findall(r"url\(#([^)]+)\)", page_of_results())
    )
    assert used <= set(ids)


def test_hostile_names_stay_text() -> None:
    """Names come from configs and other people's files: none may become markup, script or TeX."""
    found = renamed(fake_tree(), f"{BASE}+all", f"{BASE}+{HOSTILE}")
    found["dataset"] |= {"name": HOSTILE}
    marked = fake_shortcuts(0.9)
    marked["rule"] = marked["checks"]["bag_of_words"]["rule"] = HOSTILE
    cell = "safety_permission/qa"
    found["shortcuts"] |= {cell: marked, HOSTILE: marked, stratum_name(cell, HOSTILE): marked}
    found["headline"][cell] = HOSTILE
    for by_prompt in found["slices"].values():
        for slices in by_prompt.values():
            slices[stratum_name(cell, f"other {HOSTILE}")] = slices["with_thinking"]
    by_monitor = (
        "monitors",
        "transfer",
        "effects",
        "slices",
        "macro",
        "overall",
        "operating_points",
        "usage",
    )
    for by_prompt in (
        *(of_one for key in by_monitor for of_one in found[key].values()),
        *found["matrix"]["words"].values(),
        found["pareto"],
        found["correlation"],
    ):
        if "direct" in by_prompt:
            by_prompt[HOSTILE] = by_prompt.pop("direct")
    point = found["operating_points"][BASE].pop(HOSTILE)
    point["thresholds"][0]["category"] = point["calibrated_on"] = HOSTILE
    found["operating_points"] = {f"{BASE}+{HOSTILE}": {HOSTILE: point}}
    found["decision"] |= {"decision": "recommend", "monitor": f"{BASE}+{HOSTILE}", "prompt": HOSTILE}
    one = np.array([0.1, 0.9])
    scores = [Scores(f"{BASE}+{HOSTILE}", HOSTILE, one, np.array([0, 1]), np.array([1, 0]), 0)]
    html = render_report(
        as_results(found),
        {HOSTILE: HOSTILE},
        {f"{BASE}+{HOSTILE}": {HOSTILE: WORST[BASE]["direct"]}},
        scores=scores,
    )
    assert_self_contained(html)
    assert HOSTILE in Page(html).text


def test_hostile_samples_stay_text() -> None:
    """Judged text is hostile by definition: markup in it must be read, not obeyed, and all of it shown."""
    assert_self_contained(page_of_results())
    text = Page(page_of_results()).text
    shown = HOSTILE_TEXT.replace("\x1b", "⟨U+001B⟩").replace("\u202e", "⟨U+202E⟩")
    shown = shown.replace("\u202c", "⟨U+202C⟩").replace("\u200f", "⟨U+200F⟩")
    assert text.count(shown) > 4 * len(WORST[BASE]["evidence"])
    tags = [tag for tag, _ in Page(page_of_results()).tags]
    assert len(re.findall("</mark>", page_of_results())) == tags.count("mark") > 10
    assert len(re.findall("</pre>", page_of_results())) == tags.count("pre")
    assert len(re.findall("</details>", page_of_results())) == tags.count("details")


@pytest.mark.parametrize(
    "name",
    [
        "$\\frac{$",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("_lead", "a" * 200, "+", "model")),
    ],
)
def test_odd_names_can_be_drawn(name: str) -> None:
    """A monitor left out of the legend, or a crash in the last stage, for its name alone."""
    found = as_results(renamed(renamed(fake_tree(), BASE, name), "bag_of_words", f"{name}{name}"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        render_report(found, {})


def test_more_monitors_than_colours_are_told_apart() -> None:
    """With 22 monitors colours repeat; without numbers a point could be either of three monitors."""
    found = copy.deepcopy(RESULTS)
    few = figures_scatter.scatter(found)
    for i in range(18):
        for prompt in ("direct", "evidence"):
            found["table"].add(Place(f"model-{i}", prompt), RESULTS["table"].parts(BASE, prompt)["overall"])
    many = figures_scatter.scatter(found)
    drawn = [len(re.findall(r'id="scatter-text_', svg)) for svg in (few, many)]
    assert drawn[1] - drawn[0] >= 18 * 3  # a legend entry, and a number at each of two points


def test_page_says_what_was_found() -> None:
    """The sentences a hurried reader takes away have to be those the numbers allow."""
    text = " ".join(Page(page_of_results()).text.split())
    assert "No difference in AUROC was found in any of 2 comparisons" in text
    assert f"{BASE}+all was trained on every tested cell and not compared. AUROC compares rankings" in text
    assert "starter (starter-ab12cd34ef56)" in text
    assert MANIFEST["git_commit"] in text
    assert "transformers" in text
    assert "specification_gaming/qa†" in text
    assert 'the word "sneaky": 72% of misbehavior, 2% of benign' in text
    for heading in ("Learning curves", "Shortcut checks", "How it was made", "What the words mean"):
        assert heading in text


def test_a_worse_adapter_is_said_to_be_worse() -> None:
    """The one finding that must not be softened: training that harmed cells it did not see."""
    found = copy.deepcopy(RESULTS)
    worse = from_json({"auroc_difference": -0.2, "auroc_difference_ci": [-0.3, -0.1]})
    for prompt in ("direct", "evidence"):
        place = Place(f"{BASE}+safety_permission", prompt, "held_out", against="base")
        found["table"].add(place, worse)
    assert "0 of 2 comparisons of an adapter with its base came out better, 2 worse" in training_changed(
        found
    )
    section = render_report(found, MANIFEST).partition("<h2>What training changed</h2>")[2]
    assert re.search("−.20 <small>.*?<strong>worse</strong>", section, re.DOTALL)


def test_a_monitor_that_says_one_thing_is_named() -> None:
    """MR 0 looks splendid until one sees that everything was flagged."""
    tree = fake_tree()
    tree["monitors"][BASE]["direct"]["overall"] |= {"miss_rate": 0.0, "false_alarm_rate": 0.99}
    assert any(
        f"{BASE}, direct prompt, answers nearly always misbehavior" in s for s in details(as_results(tree))
    )


def test_undefined_numbers_and_missing_parts_still_make_a_report() -> None:
    """A run in which every answer was unscored is when a report is needed most."""
    found = fake_tree()
    for by_prompt in found["monitors"].values():
        for by_cell in by_prompt.values():
            for numbers in by_cell.values():
                counts = {key: value for key, value in numbers.items() if key.startswith("n")}
                numbers |= dict.fromkeys(numbers) | counts
    for by_prompt in found["transfer"].values():
        for by_cell in by_prompt.values():
            for numbers in by_cell.values():
                counts = {key: value for key, value in numbers.items() if key.startswith("n")}
                numbers |= dict.fromkeys(numbers) | counts
    found["learning_curves"] = {}
    html = render_report(as_results(found), {})
    assert "Learning curves" not in html
    assert "NaN" not in html
    assert not re.search(r"\bnan\b", html)
    empty = ("transfer", "effects", "adapters", "trained_on", "pareto", "shortcuts", "slices", "macro")
    bare = (
        found
        | {key: {} for key in (*empty, "overall", "correlation")}
        | {"matrix": {"words": {}, **add_corrected(Table(), [], 0.05)}}
    )
    bare["monitors"] = {"bag_of_words": found["monitors"]["bag_of_words"]}
    assert_self_contained(render_report(as_results(bare), {}))


def test_same_numbers_same_bytes() -> None:
    """A report that changes without its numbers can't be compared or cached."""
    assert render_report(fake_results(), MANIFEST, fake_worst(), browsable=BROWSABLE) == page_of_results()


def test_figures_stand_alone() -> None:
    """Each SVG is well-formed XML for a paper, and takes the text colour of a dark page."""
    for svg in (
        figures_scatter.scatter(RESULTS),
        figures_curves.roc(RESULTS, "direct"),
        figures_curves.reliability(RESULTS, "direct"),
        figures_learning.learning_curves(RESULTS),
    ):
        assert svg is not None
        assert ElementTree.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
        assert "currentColor" in svg
        assert "<style" not in svg
        assert "<!--" not in svg


def test_manifest_values_are_shown_flat_and_short() -> None:
    """A diff of ten thousand lines in the manifest must not bury the commit."""
    manifest = {
        "inputs": [{"name": "a", "hash": "h1"}, {"name": "b", "hash": "h2"}],
        "diff": "x" * 5000,
        "z": None,
    }
    text = Page(render_report(RESULTS, manifest)).text
    assert "inputs / 2 / hash" in text
    assert "h2" in text
    assert "x" * 301 not in text
