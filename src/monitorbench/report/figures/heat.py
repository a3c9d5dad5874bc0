"""Category × task heat maps of both rates, as SVG strings: where a monitor misses, where it cries wolf."""

from functools import partial
from typing import Protocol

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from monitorbench.metrics.results import Results
from monitorbench.report import reading
from monitorbench.report.figures.style import ink_on, shortened
from monitorbench.report.figures.svg import INK, MARK, draw, linked
from monitorbench.report.tables.numbers import DASH, rate

_COLUMN, _ROW = 0.53, 0.27
_LEFT, _BETWEEN, _RIGHT = 1.15, 0.15, 0.02
_HEAD, _FOOT = 0.41, 0.2
"""Inches: of a cell, and of what is around a monitor's pair of maps."""
_LONGEST_TASK, _LONGEST_CATEGORY = 9, 22
"""Characters that have room; the table has the whole names."""
_TITLES = ("miss rate", "false alarm rate")
_VERDICTS = ("miss", "alarm")
"""What the samples page calls what each map counts."""


class Link(Protocol):
    """The address of a monitor's samples in a cell with a verdict, empty where there is none."""

    def __call__(self, monitor: str, prompt: str, *, cell: str, verdict: str) -> str:
        """An address relative to the page."""
        ...


def heat_maps(results: Results, prompt: str, link: Link | None = None) -> list[str]:
    """MR and FAR by category and task, a figure a monitor, and last the scale, which is the same in all.

    With `link` each cell that counts samples leads to them.
    """
    number, shorts = reading.prompts(results).index(prompt), reading.short_names(results)
    drawn = []
    for i, name in enumerate(reading.shown_in(results, "")):
        label = (
            f"Miss and false alarm rates of {shorts[name]} by category and task, {prompt} prompt; the table "
            "has the same numbers"
        )
        painted = partial(heat_figure, results, name, prompt, link)
        drawn.append(draw(f"heat-{number}-{i}", label, painted))
    return [*drawn, draw(f"heat-{number}-scale", "The scale of colours, from 0 to 1", scale_figure)]


def heat_figure(results: Results, name: str, prompt: str, link: Link | None = None) -> Figure:
    """One monitor's pair of maps, not yet as SVG."""
    categories, tasks = reading.grid(results)
    one, tall = len(tasks) * _COLUMN, len(categories) * _ROW
    width, height = _width(len(tasks)), _HEAD + tall + _FOOT
    figure = Figure(figsize=(width, height))
    title = shortened(reading.short_names(results)[name], 50)
    figure.text(0.045 / width, 1 - 0.16 / height, title, weight="bold")
    for j in range(len(_TITLES)):
        x = _LEFT + j * (one + _BETWEEN)
        axes = figure.add_axes((x / width, _FOOT / height, one / width, tall / height))
        _map(axes, results, name, prompt, j, link)
    return figure


def scale_figure() -> Figure:
    """What the colours mean, not yet as SVG."""
    width = _width(3)
    figure = Figure(figsize=(width, 0.25))
    _scale(figure.add_axes((_LEFT / width, 0.3, 1.6 / width, 0.5)))
    return figure


def _width(n_tasks: int) -> float:
    return max(3, _LEFT + 2 * n_tasks * _COLUMN + _BETWEEN + _RIGHT)


def _map(axes: Axes, results: Results, name: str, prompt: str, which: int, link: Link | None) -> None:
    categories, tasks = reading.grid(results)
    across, down = len(tasks), len(categories)
    axes.set(xlim=(0, across), ylim=(down, 0))
    axes.set_xticks(
        [x + 0.5 for x in range(across)], [shortened(t, _LONGEST_TASK) for t in tasks], fontsize=7
    )
    names = [shortened(c.replace("_", " "), _LONGEST_CATEGORY) for c in categories]
    axes.set_yticks([y + 0.5 for y in range(down)], names if which == 0 else [""] * down, fontsize=7)
    axes.tick_params(length=0, pad=2)
    axes.spines[:].set_visible(False)
    axes.set_title(_TITLES[which], fontsize=7.5, pad=3)
    for y, category in enumerate(categories):
        for x, task in enumerate(tasks):
            cell = f"{category}/{task}"
            found = reading.lookup(results, name, prompt, cell)
            value = found and (found["miss_rate"] if which == 0 else found["false_alarm_rate"])
            ink = INK
            if value is not None:
                shade = _shade(value)
                axes.add_patch(
                    Rectangle((x + 0.03, y + 0.04), 0.94, 0.92, fc=shade, lw=0, gid=f"{MARK}-{which}-{y}-{x}")
                )
                ink = ink_on(*shade)
            axes.text(x + 0.5, y + 0.52, rate(value), ha="center", va="center", color=ink, fontsize=8)
            address = link(name, prompt, cell=cell, verdict=_VERDICTS[which]) if link and value else ""
            if address:  # a rate of 0 counts nothing that could be shown
                said = f"{_TITLES[which]} {rate(value)} in {cell}: its samples"
                axes.add_patch(linked(Rectangle((x, y), 1, 1, zorder=9), address, said))


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
