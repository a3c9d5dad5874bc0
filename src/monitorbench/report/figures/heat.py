"""Category × task heat maps of both rates, as SVG strings: where a monitor misses, where it cries wolf."""

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from monitorbench.metrics.results import Results
from monitorbench.records import Category, Task
from monitorbench.report import reading
from monitorbench.report.figures.style import ink_on, shortened
from monitorbench.report.figures.svg import INK, draw
from monitorbench.report.tables.numbers import DASH, rate

_COLUMN, _ROW = 0.53, 0.27
_BLOCK_WIDTH, _BLOCK_HEIGHT = 4.75, 1.5
"""Inches: of one map's cells, and of a monitor's pair of maps with their heads."""
_LEFT, _BETWEEN = 1.2, 0.15
_ACROSS = 2
_TITLES = ("miss rate", "false alarm rate")


def heat_maps(results: Results, prompt: str) -> str:
    """MR and FAR by category and task, a pair of maps a monitor; the colours are the same in all."""
    label = (
        f"Miss and false alarm rates by category and task, {prompt} prompt; the table has the same numbers"
    )
    return draw(f"heat-{reading.prompts(results).index(prompt)}", label, lambda: heat_figure(results, prompt))


def heat_figure(results: Results, prompt: str) -> Figure:
    """The same, not yet as SVG."""
    names, shorts = reading.shown_in(results, ""), reading.short_names(results)
    across = min(_ACROSS, len(names))
    down = -(-len(names) // across)
    width, height = _BLOCK_WIDTH * across, _BLOCK_HEIGHT * down + 0.35
    figure = Figure(figsize=(width, height))
    for i, name in enumerate(names):
        left = _BLOCK_WIDTH * (i % across) + _LEFT
        bottom = height - _BLOCK_HEIGHT * (i // across + 1) + 0.25
        figure.text(
            (left - _LEFT + 0.05) / width,
            (bottom + 3 * _ROW + 0.28) / height,
            shortened(shorts[name], 50),
            weight="bold",
        )
        for j in range(len(_TITLES)):
            x = left + j * (3 * _COLUMN + _BETWEEN)
            box = (x / width, bottom / height, 3 * _COLUMN / width, 3 * _ROW / height)
            _map(figure.add_axes(box), results, name, prompt, j)
    _scale(figure.add_axes(((_LEFT - 0.05) / width, 0.16 / height, 1.65 / width, 0.12 / height)))
    return figure


def _map(axes: Axes, results: Results, name: str, prompt: str, which: int) -> None:
    axes.set(xlim=(0, 3), ylim=(3, 0), yticks=[0.5, 1.5, 2.5], xticks=[0.5, 1.5, 2.5])
    axes.set_xticklabels([str(task) for task in Task], fontsize=7)
    axes.set_yticklabels([c.replace("_", " ") for c in Category] if which == 0 else [""] * 3, fontsize=7)
    axes.tick_params(length=0, pad=2)
    axes.spines[:].set_visible(False)
    axes.set_title(_TITLES[which], fontsize=7.5, pad=3)
    for y, category in enumerate(Category):
        for x, task in enumerate(Task):
            found = reading.lookup(results, name, prompt, f"{category}/{task}")
            value = found and (found["miss_rate"] if which == 0 else found["false_alarm_rate"])
            ink = INK
            if value is not None:
                shade = _shade(value)
                axes.add_patch(Rectangle((x + 0.03, y + 0.04), 0.94, 0.92, fc=shade, lw=0))
                ink = ink_on(*shade)
            axes.text(x + 0.5, y + 0.52, rate(value), ha="center", va="center", color=ink, fontsize=8)


def _scale(axes: Axes) -> None:
    for step in range(10):
        axes.add_patch(Rectangle((step / 10, 0), 0.1, 1, fc=_shade(step / 9), lw=0))
    axes.set(xlim=(0, 1), ylim=(0, 1), yticks=[], xticks=[])
    axes.spines[:].set_visible(False)
    axes.text(-0.03, 0.5, "0", ha="right", va="center", fontsize=8)
    axes.text(1.03, 0.5, f"1   {DASH} no sample answered", ha="left", va="center", fontsize=8)


def _shade(value: float) -> tuple[float, float, float]:
    red, green, blue, _ = colormaps["YlOrRd"](0.9 * value)
    return red, green, blue
