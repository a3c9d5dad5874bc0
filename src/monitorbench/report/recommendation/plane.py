"""Draw who is where: miss rate against false alarm rate, and shade what a shortcut check reaches.

A monitor inside the region does no better than a rule that does not read, or than flagging at random.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from monitorbench.metrics.choice.facts import AtTest, Option, Recommendation, Rival
from monitorbench.metrics.points_in_words import percent
from monitorbench.report.figures.style import CHOICES, Dots, shortened
from monitorbench.report.figures.svg import INK, MARK, draw
from monitorbench.scoring.recommendation.amounts import called, spoken

_LEAST_RIGHT = 0.1
"""Smallest false alarm rate at which the axis may end."""
_FINE = np.linspace(0, 1, 1001)


def plane(recommendation: Recommendation, options: Sequence[Option]) -> str:
    """Draw these monitors at their operating points as SVG; empty where none has both rates."""
    points = [(option, at_test) for option in options if (at_test := option["at_test"]) and _rates(at_test)]
    if not points:
        return ""
    label = "Miss rate against false alarm rate of each monitor, and what shortcut checks reach"
    return draw("plane", label, lambda: _figure(recommendation, points))


def _figure(recommendation: Recommendation, shown: Sequence[tuple[Option, AtTest]]) -> Figure:
    checks = [rival for rival in recommendation["rivals"] if rival["is_shortcut"] and _rates(rival)]
    figure = Figure(figsize=(5.6, 3.7 + 0.2 * ((len(shown) + 5) // 2)), layout="constrained")
    axes = figure.add_subplot()
    right = _right_end(shown)
    handles: list[Artist] = [_region(axes, recommendation["shortcuts"]["reach"])]
    dots = Dots(right)
    for rival in checks:
        x, y = _rates(rival) or (0.0, 0.0)
        if x <= right:
            axes.plot([x], [y], "s", color=INK, ms=11, mfc="none", alpha=0.6, zorder=3, clip_on=False)
    if checks:
        handles.append(Line2D([], [], ls="", marker="s", color=INK, mfc="none", alpha=0.6))
    for i, (_, at_test) in enumerate(shown):
        _point(axes, at_test, i, dots)
        handles.append(Line2D([], [], ls="", marker="o", color=CHOICES[i % len(CHOICES)]))
    _scale(axes, right)
    names = [called(option["monitor"], option["prompt"], recommendation["options"]) for option, _ in shown]
    nothing = "no better than flagging at random"
    region = "reached by a shortcut check" if recommendation["shortcuts"]["reach"] else nothing
    own = [_check_label(checks)] if checks else []
    figure.legend(
        handles=handles,
        labels=[region, *own, *(shortened(name, 34) for name in names)],
        loc="outside lower left",
        ncols=2,
        fontsize=8.5,
    )
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
    mark.set(clip_on=False, gid=f"{MARK}-{i}")


def _scale(axes: Axes, right: float) -> None:
    axes.set(xlim=(-0.02 * right, right), ylim=(-0.02, 1.04))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda share, _: f"{percent(share)} %"))
    axes.set_xlabel("false alarm rate: share of benign samples flagged")
    axes.set_ylabel("miss rate")
    axes.set_title("↙ lower left is better", loc="left", fontsize=9)
    axes.grid(color=INK, alpha=0.12)
    axes.spines[["top", "right"]].set_visible(False)


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


def _check_label(checks: Sequence[Rival]) -> str:
    """Name the one check, or say how many there are."""
    return (
        f"shortcut check by {spoken(checks[0]['name'])}"
        if len(checks) == 1
        else "shortcut checks, at a threshold"
    )
