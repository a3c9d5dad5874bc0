"""What changes that keep the label do to a monitor: in a terminal, on the page, and by a text's length."""

from collections import Counter, defaultdict
from typing import NamedTuple

from markupsafe import Markup
from matplotlib.figure import Figure

from monitorbench.config.terminal import Console
from monitorbench.metrics.robustness import (
    MEASURES,
    ChangeEffects,
    Measure,
    Moved,
    StressFacts,
    Worst,
    answer,
    how_sure,
    worst_lines,
    worst_of,
)
from monitorbench.metrics.written import DASH, count, signed, signed_interval, signed_with_interval
from monitorbench.records import reasons_in_words
from monitorbench.report.drawing import INK, LINES, MARK_ID, colour, draw
from monitorbench.report.sections.section import NOTHING, Material, fill
from monitorbench.report.tables.terminal import print_rows, say

COLUMNS = (
    ("change", 26),
    ("n", 4),
    ("dMR", 6),
    ("dFAR", 7),
    ("dAUROC", 19),
    ("lost", 5),
)
"""Columns of the table, with their widths in a terminal."""
_SHOWN = "*"
"""Mark behind a number that is worse at 5 % after Holm's correction."""

_PANELS: tuple[tuple[Measure, str], ...] = (
    ("miss_rate", "miss rate"),
    ("false_alarm_rate", "false alarm rate"),
)
_LEAST_LENGTHS = 2
Curves = dict[tuple[str, str], dict[int, str]]
"""Names of changes by family and place, and by length in thousands of tokens."""


class StressRow(NamedTuple):
    """One change on the page."""

    change: str
    n: str
    numbers: list[str]
    """Differences in `MEASURES`, each with its interval."""
    lost: str
    """Answers that the change turned into none."""
    is_worse: bool


def print_stress(console: Console, facts: StressFacts) -> None:
    """The answer first; then the table, harmful changes in bold; then what did not apply."""
    say(console, "")
    say(console, f"{facts['monitor']}, {facts['prompt']} prompt: {answer(facts['robustness'])}", "bold")
    for line in worst_lines(facts["robustness"]):
        say(console, f"worst {line}")
    say(console, "")
    print_rows(console, COLUMNS, [[name for name, _ in COLUMNS]], "dim")
    for name, change in facts["changes"].items():
        if change["n"]:
            print_rows(console, COLUMNS, [_short(name, change)], "bold" if change["worse"] else "")
    for line in notes(facts):
        say(console, line, "dim")


def notes(facts: StressFacts) -> list[str]:
    """Say what the numbers are of, what could not have been shown, and which changes did not apply."""
    of = facts["robustness"]
    read = f"read at {facts['operating_point']}" if facts["operating_point"] else "own answers"
    changes = facts["changes"].values()
    lines = [
        f"{_SHOWN} worse at 5 % after Holm's correction over {of['n_tests']} tests. Paired, by group; "
        f"{read}; worst: intervals for all changes at once, each row's in stress.json.",
        f"For the first rate to be shown worse about {of['fewest_changed']} groups have to change, none the "
        f"other way; {of['most_groups']} with misbehavior were answered both times, at most.",
    ]
    if any(change["n"] and set(MEASURES) - set(change["counted"]) for change in changes):
        lines.append(
            "(In parentheses) not counted: there the response itself speaks to its judge, and to flag that "
            "may be right."
        )
    if none := [name for name, change in facts["changes"].items() if not change["n"]]:
        lines.append(f"Applied to no sample: {', '.join(none)}.")
    reasons: Counter[str] = Counter()
    for change in changes:
        reasons.update(change["unscored"])
    if reasons:
        why = reasons_in_words(reasons).replace("_", " ")
        n_lost = sum(change["n_newly_unscored"] for change in changes)
        lines.append(
            f"Unscored under a change, in no error rate: {why}; lost: the {n_lost} of them that were "
            "answered without it."
        )
    return lines


def rows(facts: StressFacts) -> list[StressRow]:
    """A row for each change that applied to a sample, with all intervals."""
    return [
        StressRow(
            name,
            count(change["n"]),
            [
                _with_mark(signed_with_interval(*_of(change[measure])), measure, change)
                for measure in MEASURES
            ],
            count(change["n_newly_unscored"]),
            bool(change["worse"]),
        )
        for name, change in facts["changes"].items()
        if change["n"]
    ]


def _short(name: str, change: ChangeEffects) -> list[str]:
    rates = [_with_mark(signed(change[measure]["difference"]), measure, change) for measure in MEASURES]
    bounds = signed_interval(change["auroc"]["difference_ci"])
    differences = [*rates[:2], f"{rates[2]} {bounds}".rstrip()]
    lost = _with_mark(count(change["n_newly_unscored"]), "unscored_rate", change)
    return [name, count(change["n"]), *differences, lost]


def _with_mark(text: str, measure: Measure, change: ChangeEffects) -> str:
    value, _, bounds = text.partition(" ")
    if measure not in change["counted"] and change[measure]["difference"] is not None:
        value = f"({value})"
    return f"{value}{_SHOWN if measure in change['worse'] else ''} {bounds}".rstrip()


def _of(moved: Moved) -> tuple[float | None, list[float] | None]:
    return moved["difference"], moved["difference_ci"]


_PAGE_COLUMNS = ("n", "ΔMR", "ΔFAR", "ΔAUROC", "Δunscored", "lost")
_WORST = ("worst ΔAUROC", "worst ΔMR", "worst ΔFAR", "worst Δunscored")


def under_stress(material: Material) -> Markup:
    """All monitors' worst numbers side by side, and below each what every change does."""
    monitors = [_monitor(material, facts, f"lengths-{i}") for i, facts in enumerate(material.stress)]
    values = {"monitors": monitors, "columns": _PAGE_COLUMNS, "worst": _WORST}
    return fill("under_stress", values) if monitors else NOTHING


def _monitor(material: Material, facts: StressFacts, name: str) -> dict[str, object]:
    """One monitor's robustness; `name` is its figure's on the page."""
    point = f", at {facts['operating_point']}" if facts["operating_point"] else ""
    return {
        "name": material.short_names.get(facts["monitor"], facts["monitor"]),
        "prompt": f"{facts['prompt']}{point}",
        "answer": answer(facts["robustness"]),
        "worst": [_worst_text(measure, worst) for measure, worst in worst_of(facts["robustness"])],
        "rows": rows(facts),
        "figure": lengths(facts, name),
        "notes": notes(facts),
    }


def _worst_text(measure: Measure, one: Worst | None) -> str:
    if one is None:
        return DASH
    value = signed_with_interval(one["difference"], one["difference_ci"])
    return f"{value} under {one['change']}{how_sure(measure, one)}"


def lengths(facts: StressFacts, name: str) -> Markup | None:
    """The curves of a stress run's padded texts, as SVG; None where fewer than two lengths were tried."""
    curves = curves_of(facts)
    if not any(len(points) >= _LEAST_LENGTHS for points in curves.values()):
        return None
    return draw(
        name, "Miss rate and false alarm rate by length and position", lambda: _lengths_figure(facts, curves)
    )


def curves_of(facts: StressFacts) -> Curves:
    """The changes that lengthen a text, such as `turns.8k.middle`, where they applied to a sample."""
    curves: Curves = defaultdict(dict)
    for name, change in facts["changes"].items():
        family, _, rest = name.partition(".")
        size, _, place = rest.partition(".")
        if family in ("padding", "turns") and size[:-1].isdigit() and change["n"]:
            curves[family, place][int(size[:-1])] = name
    return dict(curves)


def _lengths_figure(facts: StressFacts, curves: Curves) -> Figure:
    figure = Figure(figsize=(6.4, 3.0), layout="constrained")
    places = list(dict.fromkeys(place for _, place in curves))
    families = list(dict.fromkeys(family for family, _ in curves))
    panels = figure.subplots(1, len(_PANELS), sharex=True)
    for axes, (measure, heading) in zip(panels, _PANELS, strict=True):
        for (family, place), by_length in curves.items():
            moved = {size: facts["changes"][by_length[size]][measure] for size in sorted(by_length)}
            style = {"color": colour(places.index(place) + 1), "ls": LINES[families.index(family)]}
            after = [(size, of["after"]) for size, of in moved.items() if of["after"] is not None]
            before = [(size, of["before"]) for size, of in moved.items() if of["before"] is not None]
            if after:
                gid = f"{MARK_ID}-{places.index(place)}"
                axes.plot(
                    *zip(*after, strict=True),
                    marker="o",
                    ms=3,
                    lw=1.3,
                    gid=gid,
                    **style,
                    label=f"{family}, {place}",
                )
                axes.plot(*zip(*before, strict=True), ":", color=style["color"], lw=0.8, alpha=0.7)
        axes.set(xscale="log", ylim=(-0.03, 1.03), xlabel="thousand tokens", title=heading)
        axes.title.set_fontsize(9)
        axes.grid(color=INK, alpha=0.12)
        axes.spines[["top", "right"]].set_visible(False)
    ticks = sorted({size for by_length in curves.values() for size in by_length})
    panels[0].set_xticks(ticks, [str(size) for size in ticks])
    panels[0].minorticks_off()
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower left", ncols=3, fontsize=8)
    return figure
