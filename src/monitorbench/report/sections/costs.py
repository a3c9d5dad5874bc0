"""The section of what a verdict costs beside how good it is, with its figures as SVG."""

from collections.abc import Sequence
from math import log
from typing import NamedTuple

from markupsafe import Markup
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from monitorbench.metrics.cost_fronts import COSTS, QUALITIES, Cost, Quality
from monitorbench.metrics.results import Results, short_names
from monitorbench.report.drawing import (
    INK,
    MARK_ID,
    MARKERS,
    Dots,
    colour,
    draw,
    legend,
    numbers,
    plain,
    shortened,
)
from monitorbench.report.sections.section import NOTHING, Material, fill
from monitorbench.report.tables import overall
from monitorbench.report.tables.overall import Costed, costed, number, on_the_front

_AXES = {"tokens": "tokens a verdict, read and written", "seconds": "seconds a verdict, as measured"}
_TITLES = {"auroc": "AUROC ↑", "miss_rate_at_far_5": "miss rate at FAR 5 % ↓"}
_EDGE = 0.16
"""The share of the axis, at its left, that is for what costs nothing."""


class _Axis(NamedTuple):
    """The logarithmic axis, and left of it the band of what costs nothing, from `start` to `zero`."""

    start: float
    zero: float
    end: float

    def share(self, x: float) -> float:
        """Return where a cost stands between the ends of the axis, from 0 to 1."""
        return log(x / self.start) / log(self.end / self.start)

    def free(self, i: int, n: int) -> float:
        """Place the i-th of n costless monitors in the band, so that none covers another."""
        share: float = (self.zero / self.start) ** ((i + 1) / (n + 1))
        return self.start * share


def draw_costs(results: Results, cost: Cost) -> Markup:
    """AUROC, and below it MR at FAR 5 %, against a cost: a point a monitor and prompt, and the fronts.

    A panel is left out where no monitor has its number.
    """
    label = f"AUROC and miss rate at a false alarm rate of 5 % of each monitor, against {_AXES[cost]}"
    return draw(f"cost-{cost}", label, lambda: against_cost_figure(results, cost))


def against_cost_figure(results: Results, cost: Cost) -> Figure:
    """Build the figure of `draw_costs`, not yet as SVG."""
    rows = [one for one in costed(results) if one.costs[cost] is not None]
    names = [name for name in results["table"].monitors() if any(one.monitor == name for one in rows)]
    qualities = [
        one for one in QUALITIES if any(row.numbers[one].value is not None for row in rows)
    ] or QUALITIES[:1]
    height = 3.0 * len(qualities) + 0.2 * ((len(names) + 1) // 2)
    figure = Figure(figsize=(4.6, height), layout="constrained")
    panels: list[Axes] = figure.subplots(len(qualities), 1, sharex=True, squeeze=False)[:, 0].tolist()
    axis = _axis([value for one in rows if (value := one.costs[cost])])
    for axes, quality in zip(panels, qualities, strict=True):
        _panel(axes, results, rows, cost, quality, axis)
    panels[-1].set_xlabel(_AXES[cost])
    _legend(figure, results, names, rows)
    return figure


def _axis(costs: Sequence[float]) -> _Axis:
    """Span the axis from well below the lowest cost to a little above the highest."""
    low, high = (min(costs) / 1.6, max(costs) * 1.6) if costs else (1.0, 10.0)
    start = low / (high / low) ** (_EDGE / (1 - _EDGE))
    return _Axis(start, low, high)


def _panel(
    axes: Axes, results: Results, shown: Sequence[Costed], cost: Cost, quality: Quality, axis: _Axis
) -> None:
    names = results["table"].monitors()
    numbered, prompts = numbers(names), results["table"].prompts()
    free = [row for row in shown if not row.costs[cost]]
    places: dict[tuple[str, str], tuple[float, float]] = {}
    dots = Dots()
    for row in shown:
        value = row.numbers[quality].value
        if value is None:
            continue
        x = row.costs[cost] or axis.free(free.index(row), len(free))
        places[row.monitor, row.prompt] = (x, value)
        i, is_reference = names.index(row.monitor), results["table"].is_reference(row.monitor)
        j = 0 if is_reference else prompts.index(row.prompt)
        marker, shade = "s" if is_reference else MARKERS[j % len(MARKERS)], colour(i)
        if bounds := row.numbers[quality].interval:
            axes.plot([x, x], bounds, color=shade, alpha=0.55, lw=1, zorder=2)
        (mark,) = axes.plot([x], [value], marker, zorder=3, **dots.marker(axis.share(x), value, shade))
        mark.set(clip_on=False, gid=f"{MARK_ID}-{QUALITIES.index(quality)}-{i}-{j}")
        axes.annotate(
            numbered[row.monitor], (x, value), (4, 4), textcoords="offset points", fontsize=7, zorder=4
        )
    _front(axes, [places[judge] for judge in on_the_front(results, cost, quality) if judge in places], axis)
    _scale(axes, axis, quality)


def _front(axes: Axes, points: Sequence[tuple[float, float]], axis: _Axis) -> None:
    """The best that is to be had for at most so much; of what costs nothing from the axis on."""
    if points:
        x = [axis.start if cost < axis.zero else cost for cost, _ in points]
        y = [value for _, value in points]
        axes.step([*x, axis.end], [*y, y[-1]], "-", where="post", color=INK, alpha=0.55, lw=1, zorder=1)


def _scale(axes: Axes, axis: _Axis, quality: Quality) -> None:
    axes.set_xscale("log")
    axes.set(xlim=(axis.start, axis.end), ylim=(-0.02, 1.02))
    axes.axvspan(axis.start, axis.zero, color=INK, alpha=0.06, lw=0)
    axes.axvline(axis.zero, color=INK, ls=":", lw=1, alpha=0.6)
    chance = 0.5 if quality == "auroc" else 0.95
    axes.plot([axis.start, axis.end], [chance, chance], ":", color=INK, alpha=0.4, lw=1)
    subs = (1.0, 2.0, 5.0) if axis.end / axis.zero < 300 else (1.0,)  # more ticks where there are few decades
    inside = LogLocator(subs=subs).tick_values(axis.zero, axis.end)
    ticks = [float(tick) for tick in inside if axis.zero < tick < axis.end]
    middle = (axis.start * axis.zero) ** 0.5
    axes.set_xticks([middle, *ticks], ["0", *(number(tick) for tick in ticks)])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.minorticks_off()
    plain(axes)
    axes.set_title(_TITLES[quality], loc="left", fontsize=9)


def _legend(figure: Figure, results: Results, names: Sequence[str], shown: Sequence[Costed]) -> None:
    every, shorts = results["table"].monitors(), short_names(results)
    numbered, entries = numbers(every), list[tuple[Artist, str]]()
    for name in names:
        mark = "s" if results["table"].is_reference(name) else "o"
        label = f"{numbered[name]} {shortened(shorts[name], 26)}".strip()
        entries.append((Line2D([], [], ls="", marker=mark, color=colour(every.index(name))), label))
    for j, prompt in enumerate(results["table"].prompts()):
        if any(one.prompt == prompt for one in shown):
            mark = MARKERS[j % len(MARKERS)]
            line = Line2D([], [], ls="", marker=mark, mfc="none", color=INK)
            entries.append((line, shortened(f"{prompt} prompt", 26)))
    entries.append((Line2D([], [], color=INK, lw=1, alpha=0.55), "front: best for the cost"))
    entries.append((Line2D([], [], ls=":", color=INK, alpha=0.5), "guessing"))
    legend(figure, entries)


_QUALITY_WORDS = {"auroc": "AUROC", "miss_rate_at_far_5": "miss rate at FAR 5 %"}


def against_cost(material: Material) -> Markup:
    """AUROC and MR at FAR 5 % against tokens and seconds a verdict, with the fronts."""
    results, shorts = material.results, material.short_names
    if len(overall.measured(results)) < 2:  # one monitor under one prompt has no rival
        return NOTHING
    fronts = {
        f"{_QUALITY_WORDS[quality]} against {cost}": [
            shorts[name] if results["table"].is_reference(name) else f"{shorts[name]} · {prompt}"
            for name, prompt in overall.on_the_front(results, cost, quality)
        ]
        for cost in COSTS
        for quality in QUALITIES
    }
    rows = overall.costed(results)
    values = {
        "figures": [draw_costs(results, cost) for cost in COSTS if any(row.costs[cost] for row in rows)],
        "fronts": [f"Front of {of}, the cheapest first: {', '.join(on)}." for of, on in fronts.items() if on],
        "cascades": [
            f"{shorts[row.monitor]} · {row.prompt} {overall.sent_on_in_words(row.sent_on)}."
            for row in rows
            if row.sent_on
        ],
    }
    return fill("costs", values)
