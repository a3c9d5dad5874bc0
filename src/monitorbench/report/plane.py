"""Draw the recommendation: miss rate against false alarm rate, and expected cost against the base rate.

A monitor inside the shaded region, which a shortcut check reaches, does no better than a rule that does not
read, or than flagging at random.
"""

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from monitorbench.metrics.choice import AtTest, Option, Recommendation, Rival
from monitorbench.metrics.points_in_words import percent
from monitorbench.metrics.written import amount
from monitorbench.report.drawing import (
    CHOICES,
    INK,
    LINES,
    MARK_ID,
    Dots,
    draw,
    legend,
    plain,
    shortened,
)
from monitorbench.scoring.recommendation.words import RIVALS, called, spoken

_LEAST_RIGHT = 0.1
"""Smallest false alarm rate at which the axis may end."""
_FINE = np.linspace(0, 1, 1001)


def plane(recommendation: Recommendation, options: Sequence[Option]) -> Markup:
    """Draw these monitors at their operating points as SVG; empty where none has both rates."""
    points = [(option, at_test) for option in options if (at_test := option["at_test"]) and _rates(at_test)]
    if not points:
        return Markup()
    label = "Miss rate against false alarm rate of each monitor, and what shortcut checks reach"
    return draw("plane", label, lambda: _figure(recommendation, points))


def _figure(recommendation: Recommendation, shown: Sequence[tuple[Option, AtTest]]) -> Figure:
    checks = [rival for rival in recommendation["rivals"] if rival["is_shortcut"] and _rates(rival)]
    figure = Figure(figsize=(5.6, 3.7 + 0.2 * ((len(shown) + 5) // 2)), layout="constrained")
    axes = figure.add_subplot()
    right = _right_end(shown)
    reach = recommendation["shortcuts"]["reach"]
    region = "reached by a shortcut check" if reach else "no better than flagging at random"
    entries: list[tuple[Artist, str]] = [(_region(axes, reach), region)]
    dots = Dots(right)
    for rival in checks:
        x, y = _rates(rival) or (0.0, 0.0)
        if x <= right:
            axes.plot([x], [y], "s", color=INK, ms=11, mfc="none", alpha=0.6, zorder=3, clip_on=False)
    if checks:
        square = Line2D([], [], ls="", marker="s", color=INK, mfc="none", alpha=0.6)
        is_one = len(checks) == 1
        label = f"flagging by {spoken(checks[0]['name'])}" if is_one else "shortcut checks, at a threshold"
        entries.append((square, label))
    for i, (option, at_test) in enumerate(shown):
        _point(axes, at_test, i, dots)
        name = called(option["monitor"], option["prompt"], recommendation["options"])
        dot = Line2D([], [], ls="", marker="o", color=CHOICES[i % len(CHOICES)])
        entries.append((dot, shortened(name, 34)))
    _scale(axes, right)
    legend(figure, entries, 8.5)
    return figure


def _region(axes: Axes, reach: Sequence[Sequence[float]]) -> Patch:
    """Shade what shortcut checks reach, or flagging a fixed share at random does."""
    lowest = 1 - _FINE
    if reach:
        rates = np.array(reach)
        lowest = np.minimum(lowest, np.interp(_FINE, rates[:, 0], rates[:, 1]))
    axes.fill_between(_FINE, lowest, 1.0, color=INK, alpha=0.1, lw=0, zorder=0)
    axes.plot(_FINE, lowest, color=INK, alpha=0.45, lw=1, zorder=1)
    return Patch(facecolor=INK, alpha=0.15)


def _point(axes: Axes, at: AtTest, i: int, dots: Dots) -> None:
    x, y = _rates(at) or (0.0, 0.0)
    shade = CHOICES[i % len(CHOICES)]
    if at["miss_rate_ci"] and at["false_alarm_rate_ci"]:
        axes.plot([x, x], at["miss_rate_ci"], color=shade, alpha=0.55, lw=1.2, zorder=2)
        axes.plot(at["false_alarm_rate_ci"], [y, y], color=shade, alpha=0.55, lw=1.2, zorder=2)
    (mark,) = axes.plot([x], [y], "o", zorder=4, **dots.marker(x, y, shade))
    mark.set(clip_on=False, gid=f"{MARK_ID}-{i}")


def _scale(axes: Axes, right: float) -> None:
    axes.set(xlim=(-0.02 * right, right), ylim=(-0.02, 1.04))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda share, _: f"{percent(share)} %"))
    axes.set_xlabel("false alarm rate: share of benign samples flagged")
    axes.set_ylabel("miss rate")
    axes.set_title("↙ lower left is better", loc="left", fontsize=9)
    plain(axes)


def _right_end(shown: Sequence[tuple[Option, AtTest]]) -> float:
    """End the axis a little behind the highest false alarm rate, so that low ones can be told apart."""
    highest = max(max(at_test["false_alarm_rate_ci"] or [0], default=0) for _, at_test in shown)
    rates = [(_rates(at_test) or (0.0, 0.0))[0] for _, at_test in shown]
    return float(min(1.02, max(_LEAST_RIGHT, 1.15 * max(highest, *rates))))


def _rates(at: AtTest | Rival) -> tuple[float, float] | None:
    """Return the false alarm rate and the miss rate, where both are known."""
    if at["false_alarm_rate"] is None or at["miss_rate"] is None:
        return None
    return at["false_alarm_rate"], at["miss_rate"]


_CURVES = 4
"""Number of monitors that are drawn, the recommended one and its runner-up first."""
_DECADES = 5
"""Largest number of powers of ten of cost that are shown."""


def cost_by_base_rate(recommendation: Recommendation) -> Markup:
    """Draw expected cost against base rate as SVG; empty where no monitor has a curve."""
    if not any(_has_curve(option) for option in recommendation["options"]):
        return Markup()
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
            label=f"check by {spoken(rival['name'])}" if rival["is_shortcut"] else RIVALS[rival["name"]],
        )
        drawn.set_gid(f"{MARK_ID}-rival-{i}")
        drawn_lines.append(drawn)
    monitors = [_draw_monitor(axes, recommendation, option, i, floor) for i, option in enumerate(plotted)]
    _scale_costs(axes, floor, top, [row[0] for row in _curve(plotted[0])])
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
    drawn.set_gid(f"{MARK_ID}-{i}")
    if not np.isnan(rows[:, 2:]).any():
        low, high = np.maximum(rows[:, 2:].T, floor)
        axes.fill_between(rows[:, 0], low, high, color=shade, alpha=0.18 if i == 0 else 0.1, lw=0, zorder=2)
    return drawn


def _scale_costs(axes: Axes, floor: float, top: float, base_rates: Sequence[float]) -> None:
    axes.set(xlim=(base_rates[0], base_rates[-1]), ylim=(floor, top))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{percent(x)} %"))
    axes.xaxis.set_major_locator(
        LogLocator(subs=(1.0, 3.0) if base_rates[-1] / base_rates[0] < 1e3 else (1.0,))
    )
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: amount(y)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
    axes.minorticks_off()
    plain(axes)
    axes.set_xlabel("base rate: share of misbehavior")
    axes.set_title("expected cost a sample ↓", loc="left", fontsize=9)


def _lines(rivals: Sequence[Rival]) -> list[Rival]:
    """Select the rivals to draw: flagging nothing, flagging everything, and the cheapest shortcut check."""
    with_curve = [rival for rival in rivals if rival["curve"]]
    plain = [rival for rival in with_curve if not rival["is_shortcut"]]
    checks = [rival for rival in with_curve if rival["is_shortcut"] and rival["expected_cost"] is not None]
    return [*plain, *sorted(checks, key=lambda rival: rival["expected_cost"] or 0.0)[:1]]


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
