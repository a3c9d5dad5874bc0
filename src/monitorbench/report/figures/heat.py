"""Category × task heat maps of both rates, as SVG strings: where a monitor misses, where it cries wolf."""

from functools import partial
from typing import Protocol

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from monitorbench.metrics.results import Results
from monitorbench.records import Category, Task
from monitorbench.report import reading
from monitorbench.report.figures.style import ink_on, shortened
from monitorbench.report.figures.svg import INK, MARK, draw, linked
from monitorbench.report.tables.numbers import DASH, rate

_COLUMN, _ROW = 0.53, 0.27
_WIDTH, _HEIGHT = 4.5, 1.42
"""Inches: of a monitor's pair of maps with their heads."""
_LEFT, _BETWEEN = 1.15, 0.15
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
    figure = Figure(figsize=(_WIDTH, _HEIGHT))
    title = shortened(reading.short_names(results)[name], 50)
    figure.text(0.01, 1 - 0.16 / _HEIGHT, title, weight="bold")
    for j in range(len(_TITLES)):
        x = _LEFT + j * (3 * _COLUMN + _BETWEEN)
        box = (x / _WIDTH, 0.2 / _HEIGHT, 3 * _COLUMN / _WIDTH, 3 * _ROW / _HEIGHT)
        _map(figure.add_axes(box), results, name, prompt, j, link)
    return figure


def scale_figure() -> Figure:
    """What the colours mean, not yet as SVG."""
    figure = Figure(figsize=(_WIDTH, 0.25))
    _scale(figure.add_axes((_LEFT / _WIDTH, 0.3, 1.6 / _WIDTH, 0.5)))
    return figure


def _map(axes: Axes, results: Results, name: str, prompt: str, which: int, link: Link | None) -> None:
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
                axes.add_patch(
                    Rectangle((x + 0.03, y + 0.04), 0.94, 0.92, fc=shade, lw=0, gid=f"{MARK}-{which}-{y}-{x}")
                )
                ink = ink_on(*shade)
            axes.text(x + 0.5, y + 0.52, rate(value), ha="center", va="center", color=ink, fontsize=8)
            cell = f"{category}/{task}"
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
