"""Cost per verdict beside quality: the figure, the sentences and the terminal."""

import copy
import io
import re

import pytest
from fake_results import BASE, fake_tree
from rich.console import Console

from monitorbench.metrics.cost_fronts import COSTS, QUALITIES
from monitorbench.metrics.metrics_json import as_results
from monitorbench.report.sections.costs import against_cost_figure
from monitorbench.report.tables.overall import costed, number, on_the_front, sent_on_in_words
from monitorbench.report.tables.tables import print_costs
from monitorbench.report.template import unbroken
from monitorbench.report.write import render_report

TREE = fake_tree()
RESULTS = as_results(TREE)
CASCADE = {"budget": 0.06, "share": 0.0583, "share_ci": [0.0412, 0.0791]}


def test_points_and_intervals_are_those_of_metrics_json() -> None:
    """A point beside its number, or an interval of another, sells the wrong monitor."""
    for cost in COSTS:
        figure = against_cost_figure(RESULTS, cost)
        assert len(figure.axes) == len(QUALITIES)
        for axes, quality in zip(figure.axes, QUALITIES, strict=True):
            drawn = [line.get_xydata().tolist() for line in axes.lines]
            least = min(value for one in costed(RESULTS) if (value := one.costs[cost]))
            for one in costed(RESULTS):
                value, bounds = one.numbers[quality].value, one.numbers[quality].interval
                x = one.costs[cost]
                if x == 0:  # somewhere left of all that costs something
                    (x,) = {at for ((at, y), *more) in drawn if not more and y == value and at < least / 1.6}
                assert [[x, value]] in drawn
                assert [[x, bounds[0]], [x, bounds[1]]] in drawn


def test_a_number_that_nobody_has_takes_no_room() -> None:
    """With fewer than 59 benign questions there is no MR at FAR 5 %: half a figure would stand empty."""
    found = copy.deepcopy(TREE)
    for by_prompt in found["monitors"].values():
        for cells in by_prompt.values():
            cells["overall"] |= {"miss_rate_at_far_5": None, "miss_rate_at_far_5_ci": None}
    (axes,) = against_cost_figure(as_results(found), "tokens").axes
    assert axes.get_title(loc="left").startswith("AUROC")


def test_the_front_is_drawn_through_its_monitors() -> None:
    """The line is what a reader chooses by: it has to lead from each of them to the next dearer one."""
    names = on_the_front(RESULTS, "seconds", "auroc")
    places = {(one.monitor, one.prompt): one for one in costed(RESULTS)}
    axes = against_cost_figure(RESULTS, "seconds").axes[0]
    (front,) = [line for line in axes.lines if line.get_drawstyle() == "steps-post"]
    costs, values = (front.get_xdata()[:-1].tolist(), front.get_ydata()[:-1].tolist())
    assert values == [places[at].numbers["auroc"].value for at in names] == sorted(values)
    assert costs[1:] == [places[at].costs["seconds"] for at in names][1:] == sorted(costs[1:])
    assert front.get_xdata()[-1] == axes.get_xlim()[1]


def test_the_section_stands_where_costs_can_be_compared() -> None:
    """One monitor alone has no rival, and without measured costs there is nothing to draw."""
    heading = "What a verdict costs"
    page = render_report(RESULTS, {})
    assert heading in page
    assert page.count(", the cheapest first: ") == len(COSTS) * len(QUALITIES)
    found = copy.deepcopy(RESULTS)
    found["usage"] = {BASE: {"direct": RESULTS["usage"][BASE]["direct"]}}
    assert heading not in render_report(found, {}).replace("\N{NO-BREAK SPACE}", " ")
    untimed = copy.deepcopy(RESULTS)
    for by_prompt in untimed["usage"].values():
        for taken in by_prompt.values():
            taken["seconds"] = None
    page = render_report(untimed, {})
    assert [one in page for one in ('id="cost-tokens-', 'id="cost-seconds-')] == [True, False]


def test_what_a_cascade_asked_is_told_beside_what_it_was_to_ask() -> None:
    """A budget is a promise on the calibration split; a reader pays what the test split took."""
    said = "asks its second judge about 5.8 % of the samples [4.1–7.9]; budget: 6 %"
    assert sent_on_in_words(CASCADE) == said
    assert sent_on_in_words({**CASCADE, "budget": None, "share_ci": None}) == said.partition(" [")[0]
    found = copy.deepcopy(RESULTS)
    found["usage"][BASE]["direct"]["sent_on"] = CASCADE
    assert unbroken(f"{BASE} · direct {said}.") in render_report(found, {})
    assert printed(found).splitlines().count(f"  {said}") == 1


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_terminal_table_fits_80_columns(encoding: str) -> None:
    """Folded rows put numbers below the wrong heading."""
    found = copy.deepcopy(RESULTS)
    found["usage"][BASE]["direct"] |= {"seconds": 1234.5678, "prompt_tokens": 123_456.7, "sent_on": CASCADE}
    lines = printed(found, encoding).splitlines()
    assert max(map(len, lines)) <= 80
    (row,) = [line for line in lines if line.startswith(f"{BASE} ") and "direct" in line]
    assert re.findall(r" (\d[\d,]*)(?= )", row) == ["123,458", "1,235"]
    assert len([line for line in lines if "evidence" in line]) == len(RESULTS["table"].monitors()) - 2
    assert printed({**RESULTS, "usage": {}}, encoding) == ""


def test_numbers_are_short() -> None:
    """`2.5e-04` is no price that one reads."""
    values = {251.4: "251", 1204.2: "1,204", 12.345: "12.3", 0.25: "0.25", 0.0001234: "0.000123", None: "–"}
    assert {value: number(value) for value in values} == values


def printed(results, encoding: str = "utf-8") -> str:
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    print_costs(Console(file=out, width=80), results)
    out.flush()
    return out.buffer.getvalue().decode(encoding)
