"""Each number of the page that metrics.json holds, and the sentences made of them."""

import copy
import re
from functools import cache
from html import unescape

import pytest
from fake_results import BASE, MANIFEST, fake_tree, material_of

from monitorbench.metrics.metrics_json import as_results
from monitorbench.metrics.results import short_names
from monitorbench.metrics.table import NO_PROMPT
from monitorbench.metrics.written import amount, rate
from monitorbench.report.matrix import matrix
from monitorbench.report.sections import curves as figures_curves
from monitorbench.report.sections import thresholds as figures_scatter
from monitorbench.report.tables.overall import COLUMNS, MORE_COLUMNS, more_rows, overall_rows
from monitorbench.report.tables.published import PUBLISHED, correlations_in_words
from monitorbench.report.write import render_report

TREE = fake_tree()
TREE["monitors"][BASE]["evidence"]["overall"] |= {"auroc": None, "brier": None, "ece": None}
RESULTS = as_results(TREE)


@cache
def page_of_results() -> str:
    return render_report(RESULTS, MANIFEST)


def tables(page: str) -> list[list[list[str]]]:
    bodies = re.findall(r'<table class="sortable.*?<tbody>(.*?)</tbody>', page, re.DOTALL)
    return [
        [re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL) for row in body.split("</tr>")[:-1]]
        for body in bodies
    ]


def test_the_sortable_table_has_the_numbers_of_metrics_json() -> None:
    """A number in the wrong column ranks monitors by something else than its heading says."""
    keys = {
        "miss rate": "miss_rate",
        "false alarm rate (FAR)": "false_alarm_rate",
        "AUROC": "auroc",
        "MR at FAR 1 %": "miss_rate_at_far_1",
        "MR at FAR 5 %": "miss_rate_at_far_5",
        "pAUC to FAR 5 %": "partial_auroc_5",
        "Brier": "brier",
        "ECE": "ece",
        "pairs both right": "pairs_both_right",
        "coverage": "coverage",
    }
    shorts = short_names(RESULTS)
    expected = RESULTS["table"].in_order()
    top, more = tables(page_of_results())
    own = [row for row in top if "above" not in row[2]]
    assert (len(top), len(own), len(more), len(expected)) == (9, 8, 8, 8)
    costs = [float(re.findall(r'data-value="(.*?)"', row[3])[0]) for row in top]
    assert costs == sorted(costs), "best first"
    heads = [re.sub("<.*?>", "", cell).strip() for row in top for cell in row[:1]]
    assert sum("deploy" in head for head in heads) == (RESULTS["decision"]["decision"] == "recommend")
    by_name = {tuple(unescape(re.sub("<.*?>", "", cell)) for cell in row[:2]): row for row in own}
    more_by_name = {tuple(unescape(re.sub("<.*?>", "", cell)) for cell in row[:2]): row for row in more}
    for name, prompt in expected:
        key = (shorts[name], "baseline" if prompt == NO_PROMPT else prompt)
        cells = [*by_name[key][3 : 3 + 5], *more_by_name[key][2:]]
        texts = [unescape(re.sub("<.*?>", " ", cell)) for cell in cells]
        macro = TREE["macro"][name][prompt]
        values = {column: TREE["monitors"][name][prompt]["overall"][key] for column, key in keys.items()} | {
            "macro miss rate": macro["miss_rate"],
            "macro false alarm rate (FAR)": macro["false_alarm_rate"],
            "macro AUROC": macro["auroc"],
            "expected cost": TREE["overall"][name][prompt]["expected_cost"],
        }
        for column, cell, text in zip([*COLUMNS[:5], *MORE_COLUMNS], cells, texts, strict=True):
            sorted_by = re.search(r'data-value="(.*?)"', cell)
            assert sorted_by is not None
            value = values[column]
            assert sorted_by[1] == ("" if value is None else str(value))
            if value is None and "at FAR" in column:
                needed, has = re.findall(r"needs (\d+) benign questions, has (\d+)", text)[0]
                assert (
                    int(needed) > int(has) == TREE["monitors"][name][prompt]["overall"]["n_benign_questions"]
                )
            else:
                assert text.split()[0] == (amount(value) if column == "expected cost" else rate(value))


def test_intervals_stand_beside_their_numbers() -> None:
    """An interval of another column would make noise look certain."""
    shorts = short_names(RESULTS)
    rows = [row for row in overall_rows(RESULTS, shorts) if (row.monitor, row.prompt) == (BASE, "direct")]
    (row,), (calibrated,) = ([r for r in rows if bool(r.promise) == has] for has in (False, True))
    (more,) = [r for r in more_rows(RESULTS, shorts) if (r.monitor, r.prompt) == (BASE, "direct")]
    fields = dict(zip([*COLUMNS, *MORE_COLUMNS], [*row.fields, *more.fields], strict=True))
    found = TREE["monitors"][BASE]["direct"]["overall"]
    for column, bounds in (
        ("MR at FAR 5 %", found["miss_rate_at_far_5_ci"]),
        ("pAUC to FAR 5 %", found["partial_auroc_5_ci"]),
        ("pairs both right", found["pairs_both_right_ci"]),
        ("macro miss rate", TREE["macro"][BASE]["direct"]["miss_rate_ci"]),
        ("macro false alarm rate (FAR)", TREE["macro"][BASE]["direct"]["false_alarm_rate_ci"]),
    ):
        assert fields[column].small == f"[{rate(bounds[0])}–{rate(bounds[1])}]"
    needs = f"needs 299 benign questions, has {found['n_benign_questions']}"
    assert (fields["MR at FAR 1 %"].text, fields["MR at FAR 1 %"].small) == ("–", needs)
    low, high = TREE["overall"][BASE]["direct"]["expected_cost_ci"]
    assert fields["expected cost"].small == f"[{amount(low)}–{amount(high)}]"
    there = TREE["operating_points"][BASE]["direct"]["rates"]
    at_point = dict(zip(COLUMNS, calibrated.fields, strict=True))
    assert (at_point["miss rate"].value, at_point["false alarm rate (FAR)"].value) == (
        there["miss_rate"],
        there["false_alarm_rate"],
    )
    assert (
        at_point["miss rate"].small == f"[{rate(there['miss_rate_ci'][0])}–{rate(there['miss_rate_ci'][1])}]"
    )
    assert (calibrated.flags, row.flags) == ("above .629", "own answers")
    assert calibrated.promise.startswith(
        "≤ 10 % of questions with 95 % confidence, on 120 benign questions, taken alone; "
    )
    assert (at_point["seconds"].text, at_point["seconds"].small) == (".3", "p95 1.2")
    assert (at_point["tokens"].text, at_point["$"].text) == ("251", ".0002")


def test_a_missing_auroc_says_why() -> None:
    """A dash reads as if the monitor had failed, where the engine gives no scores."""
    tree = copy.deepcopy(TREE)
    direct, evidence = (tree["monitors"][BASE][prompt]["overall"] for prompt in ("direct", "evidence"))
    direct |= {"auroc": None, "auroc_ci": None, "n_with_score": 0}
    evidence |= {"auroc": None, "auroc_ci": None}
    found = as_results(tree)
    rows = {(r.monitor, r.prompt): r for r in overall_rows(found, short_names(found))}
    at = COLUMNS.index("AUROC")
    assert rows[BASE, "direct"].fields[at].small == "no scores"
    assert rows[BASE, "evidence"].fields[at].small == "one class only"


def test_slices_are_in_the_folded_table() -> None:
    """Who asks whether a monitor only works with a visible trace has to find it."""
    folded = re.search(r"<details><summary>By task.*?</details>", page_of_results(), re.DOTALL)
    assert folded is not None
    for name in ("task:qa", "task:reasoning", "with_thinking", "without_thinking", "source:gsm8k"):
        title = name.replace("_", " ") if name.endswith("thinking") else name
        assert f'scope="rowgroup">{title}<' in folded[0]
        assert rate(TREE["slices"][BASE]["direct"][name]["miss_rate"]) in folded[0]


def test_a_tile_leads_to_the_samples_that_it_counts() -> None:
    """A link to another cell's samples sends the reader to mend the wrong category."""
    material = material_of(RESULTS, browsable={(BASE, "direct")})
    for measure, verdict in (("miss_rate", "miss"), ("false_alarm_rate", "alarm")):
        made = matrix(material, RESULTS["table"].drawn_in(), "direct", measure)
        for name, tiles in made.rows:
            for cell, tile in zip(made.heads, tiles, strict=True):
                place = cell.removesuffix("†")
                value = RESULTS["table"].value(BASE, "direct", measure, place)
                is_linked = name == short_names(RESULTS)[BASE] and value
                expected = material.samples_link(BASE, "direct", cell=place, verdict=verdict)
                assert tile.link == (expected if is_linked else "")


def test_curves_are_those_of_metrics_json() -> None:
    """A ROC curve upside down shows the worst monitor as the best."""
    figure = figures_curves.roc_figure(RESULTS, "evidence")
    drawn = [line.get_xydata().tolist() for line in figure.axes[0].lines]
    bars = figures_curves.reliability_figure(RESULTS, "direct").axes[0]
    marks = [line.get_xydata().tolist() for line in bars.lines]
    for name in RESULTS["table"].shown_in(""):
        evidence = figures_curves.curves_of(RESULTS, name, "evidence")
        direct = figures_curves.curves_of(RESULTS, name, "direct")
        assert evidence is not None
        assert direct is not None
        assert [[far, 1 - mr] for far, mr in evidence["roc"]] in drawn
        own = RESULTS["table"].lookup(name, "evidence")
        assert [[own["false_alarm_rate"].value, 1 - own["miss_rate"].value]] in drawn
        assert [[one["mean_score"], one["share_misbehavior"]] for one in direct["reliability"]] in marks
        for one in direct["reliability"]:
            low, high = one["share_misbehavior_ci"]
            assert [[one["mean_score"], low], [one["mean_score"], high]] in marks


def test_arrows_lead_from_direct_to_evidence() -> None:
    """An arrow the wrong way round says that asking for evidence did the opposite of what it did."""
    axes = figures_scatter.scatter_figure(RESULTS, other_points=True).axes[0]
    arrows = [(tuple(one.xyann), tuple(one.xy)) for one in axes.texts if getattr(one, "arrow_patch", None)]
    published = [(one.direct[::-1], one.evidence[::-1]) for one in PUBLISHED]
    assert arrows[: len(PUBLISHED)] == published
    ours = []
    for name in RESULTS["table"].monitors():
        if not RESULTS["table"].is_reference(name):
            ends = [TREE["monitors"][name][p]["overall"] for p in ("direct", "evidence")]
            ours.append(tuple((one["false_alarm_rate"], one["miss_rate"]) for one in ends))
    assert arrows[len(PUBLISHED) :] == ours
    alone = figures_scatter.scatter_figure(RESULTS, other_points=False).axes[0]
    drawn = [(tuple(one.xyann), tuple(one.xy)) for one in alone.texts if getattr(one, "arrow_patch", None)]
    assert drawn == ours, "points of other datasets are no rivals: only where they were asked for"
    assert "The faint circles are published" not in page_of_results()
    asked = render_report(RESULTS, {}, other_points=True)
    assert "another dataset" in " ".join(asked.partition("The faint circles are published")[2].split())


@pytest.mark.parametrize(
    ("r", "r_ci", "n", "said"),
    [
        (-0.4, None, 3, "−.40 over 3 base models: too few monitors for an interval"),
        (None, None, 1, "not defined over 1 base model: too few monitors"),
        (-0.612, [-0.9, 0.1], 9, "−.61 [−.90, +.10] over 9 base models"),
    ],
)
def test_correlation_has_its_interval_or_none(r, r_ci, n, said: str) -> None:
    """r over three monitors reads like a finding unless the sentence says that it is none."""
    found = RESULTS | {"correlation": {"direct": {"r": r, "r_ci": r_ci, "n": n}}}
    first, second = correlations_in_words(found)
    assert said in first
    assert "r = −.54" in second
    assert "2601.05752" in second


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.0, "0"), (0.0004, "0.0004"), (0.981, "0.98"), (12.345, "12.35"), (1234.5, "1,234")],
)
def test_costs_are_written_in_full(value: float | None, text: str) -> None:
    """A cost of .0004 shown as 0.00 looks free."""
    assert amount(value) == text
