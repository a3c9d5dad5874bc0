"""Draw the recommendation's one figure: expected cost against base rate, monitors as curves with bands."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from monitorbench.metrics.choice.facts import Option, Recommendation, Rival
from monitorbench.metrics.points_in_words import percent
from monitorbench.metrics.written import amount
from monitorbench.report.figures.style import CHOICES, LINES, shortened
from monitorbench.report.figures.svg import INK, MARK, draw
from monitorbench.scoring.recommendation.amounts import RIVALS, called, spoken

_CURVES = 4
"""Number of monitors that are drawn, the recommended one and its runner-up first."""
_DECADES = 5
"""Largest number of powers of ten of cost that are shown."""


def cost_by_base_rate(recommendation: Recommendation) -> str:
    """Draw expected cost against base rate as SVG; empty where no monitor has a curve."""
    if not any(_has_curve(option) for option in recommendation["options"]):
        return ""
    label = "Expected cost a sample of each monitor against the base rate, with bands"
    return draw("recommendation", label, lambda: cost_figure(recommendation))


def cost_figure(recommendation: Recommendation) -> Figure:
    """Build the figure of expected cost against base rate, not yet as SVG."""
    plotted = [option for option in recommendation["options"] if _has_curve(option)][:_CURVES]
    figure = Figure(figsize=(5.2, 3.9), layout="constrained")
    axes = figure.subplots()
    axes.set(xscale="log", yscale="log")
    rows = [row for option in plotted for row in _curve(option)]
    lows = [value for row in rows for value in (row[1], row[2]) if value and value > 0]
    lines = [(rival, np.array(rival["curve"])) for rival in _lines(recommendation["rivals"])]
    tops = [float(curve[:, 1].max()) for _, curve in lines]
    tops += [row[1] for row in rows]
    top = max(tops) * 1.3
    floor = max(min([*lows, top / 10]) / 1.5, top / 10**_DECADES)
    low, high = recommendation["settings"]["base_rates"]
    axes.axvspan(low, high, color=INK, alpha=0.05, lw=0)
    axes.axvline(recommendation["settings"]["base_rate"], color=INK, ls=":", lw=1, alpha=0.7)
    drawn_lines = []
    for i, (rival, curve) in enumerate(lines):
        style = LINES[1 + i % (len(LINES) - 1)]
        (drawn,) = axes.plot(
            curve[:, 0],
            np.maximum(curve[:, 1], floor),
            style,
            color=INK,
            lw=1,
            alpha=0.6,
            label=_rival_name(rival),
        )
        drawn.set_gid(f"{MARK}-rival-{i}")
        drawn_lines.append(drawn)
    monitors = [_draw_monitor(axes, recommendation, option, i, floor) for i, option in enumerate(plotted)]
    _scale(axes, floor, top, [row[0] for row in _curve(plotted[0])])
    figure.legend(handles=[*monitors, *drawn_lines], loc="outside lower left", ncols=2, fontsize=8)
    return figure


def _draw_monitor(axes: Axes, recommendation: Recommendation, option: Option, i: int, floor: float) -> Line2D:
    rows = np.array(_curve(option))
    shade = CHOICES[i]
    name = shortened(called(option["monitor"], option["prompt"], recommendation["options"]), 26)
    (drawn,) = axes.plot(
        rows[:, 0],
        np.maximum(rows[:, 1], floor),
        color=shade,
        lw=2.2 if i == 0 else 1.4,
        label=name,
        zorder=4 - i / 9,
    )
    drawn.set_gid(f"{MARK}-{i}")
    if not np.isnan(rows[:, 2:]).any():
        low, high = np.maximum(rows[:, 2:].T, floor)
        axes.fill_between(rows[:, 0], low, high, color=shade, alpha=0.18 if i == 0 else 0.1, lw=0, zorder=2)
    return drawn


def _scale(axes: Axes, floor: float, top: float, base_rates: Sequence[float]) -> None:
    axes.set(xlim=(base_rates[0], base_rates[-1]), ylim=(floor, top))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{percent(x)} %"))
    axes.xaxis.set_major_locator(
        LogLocator(subs=(1.0, 3.0) if base_rates[-1] / base_rates[0] < 1e3 else (1.0,))
    )
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: amount(y)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
    axes.minorticks_off()
    axes.grid(color=INK, alpha=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("base rate: share of misbehavior")
    axes.set_title("expected cost a sample ↓", loc="left", fontsize=9)


def _lines(rivals: Sequence[Rival]) -> list[Rival]:
    """Select the rivals to draw: flagging nothing, flagging everything, and the cheapest shortcut check."""
    with_curve = [rival for rival in rivals if rival["curve"]]
    plain = [rival for rival in with_curve if not rival["is_shortcut"]]
    checks = [rival for rival in with_curve if rival["is_shortcut"] and rival["expected_cost"] is not None]
    return [*plain, *sorted(checks, key=lambda rival: rival["expected_cost"] or 0.0)[:1]]


def _rival_name(rival: Rival) -> str:
    return f"check by {spoken(rival['name'])}" if rival["is_shortcut"] else RIVALS[rival["name"]]


def _has_curve(option: Option) -> bool:
    return bool(_curve(option))


def _curve(option: Option) -> list[list[float]]:
    """Return rows [base rate, cost, low, high], NaN where there is no interval."""
    if option["at_test"] is None:
        return []
    return [
        [float("nan") if value is None else value for value in row]
        for row in option["at_test"]["curve"]
        if row[1] is not None
    ]
