"""The pilot's figures as SVG: rates, effects, and when interventions were made.

Promises: what is undefined is not drawn; controls stand apart, below the conditions that were tried.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from monitorbench.intervention.statistics.decision_file import WORDS, ConditionResult, PilotDecision
from monitorbench.intervention.statistics.decision_rule import Decision
from monitorbench.report.drawing import INK, draw, legend, plain, shortened

Names = Mapping[tuple[str, str], str]

_WIDTH = 4.8
"""Inches: on a phone all of it is in view."""
_ROW = 0.52
_RATE, _BREAK_EVEN = "#0284c7", "#d97706"
_SHADES = {
    Decision.INTERVENE: ("#059669", "D"),
    Decision.INCONCLUSIVE: ("#7c8594", "o"),
    Decision.DO_NOT_INTERVENE: ("#dc2626", "s"),
}
"""Colour and marker of each decision: shapes differ as well as colours."""


class _Placed(NamedTuple):
    one: ConditionResult
    y: float


def rates(decision: PilotDecision, names: Names) -> Markup | None:
    """p and p* of each condition on one axis; None where there is nothing to draw."""
    if not _placed(decision):
        return None
    label = "Failure rate p without intervention and break-even rate p* of each condition, with intervals"
    return draw("pilot-rates", label, lambda: rates_figure(decision, names))


def effects(decision: PilotDecision, names: Names) -> Markup | None:
    """ΔSuccess of each condition in percentage points, and the margin; None where nothing is to be drawn."""
    if not _placed(decision):
        return None
    label = "Change of success by each condition in percentage points, with intervals and the margin"
    return draw("pilot-effects", label, lambda: effects_figure(decision, names))


def when(counts: Mapping[tuple[str, str], Counter[int]], names: Names, last: int) -> Markup | None:
    """Interventions at each step from 0 to `last`, a row of bars for each condition; None without any."""
    if not counts:
        return None
    label = "Number of interventions at each step, by condition"
    return draw("pilot-when", label, lambda: when_figure(counts, names, last))


def _placed(decision: PilotDecision) -> list[_Placed]:
    """The conditions that have pairs, from the top down, controls last and apart."""
    drawn = [result for result in decision.conditions if result.n_runs]
    tried = [result for result in drawn if not result.control]
    controls = [result for result in drawn if result.control]
    below = len(tried) + (0.5 if tried else 0)
    return [
        *(_Placed(result, i) for i, result in enumerate(tried)),
        *(_Placed(result, below + i) for i, result in enumerate(controls)),
    ]


def rates_figure(decision: PilotDecision, names: Names) -> Figure:
    """Return the figure that `rates` draws as SVG."""
    placed = _placed(decision)
    figure, axes = _rows(placed, names)
    for result, y in placed:
        for value, ci, shade, marker, off in (
            (result.p, result.p_ci, _RATE, "o", -0.14),
            (result.p_star, result.p_star_ci, _BREAK_EVEN, "D", 0.14),
        ):
            if value is not None:
                _point(axes, value, ci, y + off, shade, marker)
    axes.set(xlim=(-0.02, 1.02), xlabel="share of runs that fail without intervention")
    entries = [
        (Line2D([], [], color=_RATE, marker="o", lw=1.2), "p: fails without"),
        (Line2D([], [], color=_BREAK_EVEN, marker="D", lw=1.2), "p*: it helps where p lies right of this"),
    ]
    legend(figure, entries, 8.5)
    return figure


def effects_figure(decision: PilotDecision, names: Names) -> Figure:
    """Return the figure that `effects` draws as SVG."""
    placed, margin = _placed(decision), decision.settings.margin
    figure, axes = _rows(placed, names)
    axes.axvline(0, color=INK, lw=1, alpha=0.7)
    if margin:
        axes.axvline(margin, color=INK, lw=1, ls="--", alpha=0.7)
    for result, y in placed:
        assert result.delta_success is not None  # it has pairs
        shade, marker = _SHADES[result.decision]
        ci = result.delta_success_ci and (100 * result.delta_success_ci[0], 100 * result.delta_success_ci[1])
        _point(axes, 100 * result.delta_success, ci, y, shade, marker)
    axes.set_xlabel("change of success, percentage points (right of the margin: it helps)")
    axes.margins(x=0.06)
    entries = [
        (Line2D([], [], color=shade, marker=marker, lw=1.2), WORDS[word])
        for word, (shade, marker) in _SHADES.items()
        if any(result.decision is word for result, _ in placed)
    ]
    line = Line2D([], [], color=INK, lw=1, ls="--" if margin else "-", alpha=0.7)
    legend(figure, [*entries, (line, f"margin, {margin:g} points")], 8.5)
    return figure


def when_figure(counts: Mapping[tuple[str, str], Counter[int]], names: Names, last: int) -> Figure:
    """Return the figure that `when` draws as SVG."""
    figure = Figure(figsize=(_WIDTH, 0.5 + 0.95 * len(counts)), layout="constrained")
    panels = figure.subplots(len(counts), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, (key, count) in zip(panels, counts.items(), strict=True):
        steps = range(last + 1)
        axes.bar(steps, [count[step] for step in steps], width=0.8, color=_RATE)
        axes.set_title(f"{shortened(names[key], 46)}, {count.total():,} in all", loc="left", fontsize=9)
        axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
        plain(axes, "y")
        axes.set_axisbelow(True)
    panels[-1].set(xlim=(-0.6, last + 0.6), xlabel="step, counted from 0")
    panels[-1].xaxis.set_major_locator(MaxNLocator(16, integer=True))
    figure.supylabel("interventions", fontsize=9)
    return figure


def _rows(placed: Sequence[_Placed], names: Names) -> tuple[Figure, Axes]:
    lowest = placed[-1].y
    figure = Figure(figsize=(_WIDTH, 1.1 + _ROW * (lowest + 1)), layout="constrained")
    axes = figure.add_subplot()
    axes.set_yticks([])
    for result, y in placed:  # above its row, so that on a phone the axis keeps its width
        name = shortened(names[result.agent, result.condition], 60)
        axes.annotate(name, (0, y - 0.36), xycoords=("axes fraction", "data"), fontsize=9)
    axes.set_ylim(lowest + 0.6, -0.8)
    first_control = next((y for result, y in placed if result.control), 0)
    if first_control:
        axes.axhline(first_control - 0.75, color=INK, lw=0.8, alpha=0.3)
    plain(axes, "x")
    axes.spines["left"].set_visible(False)
    return figure, axes


def _point(
    axes: Axes, value: float, ci: tuple[float, float] | None, y: float, shade: str, marker: str
) -> None:
    if ci is not None:
        axes.plot(ci, [y, y], color=shade, lw=1.6, alpha=0.7, zorder=2, solid_capstyle="butt")
    axes.plot([value], [y], marker, color=shade, ms=6, zorder=3, clip_on=False)
