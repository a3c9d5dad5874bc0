"""The sections of every monitor's numbers: overall, by cell, and in heat maps of where each errs."""

from collections.abc import Callable, Sequence
from functools import partial
from textwrap import wrap
from typing import Any, Protocol

from markupsafe import Markup
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from monitorbench.metrics.marks import SIGN, has_mark, headlines_in_words, marks_in_words, strata, title
from monitorbench.metrics.results import Results, short_names
from monitorbench.metrics.score_facts import is_inverted
from monitorbench.metrics.table import Numbers, is_cell
from monitorbench.metrics.written import DASH, interval_of, rate, value_of
from monitorbench.report.figures.drawing import INK, MARK_ID, draw, ink_on, linked, shortened
from monitorbench.report.sections.section import NOTHING, Material, PageNumber, fill
from monitorbench.report.tables import overall as overall_table
from monitorbench.report.tables.overall import doubt_lines, unscored_lines

_COLUMN, _ROW = 0.53, 0.27
_WIDTH, _LEFT, _BETWEEN = 4.5, 1.15, 0.15
_HEAD, _TITLE, _FOOT, _LINE = 0.41, 0.25, 0.2, 0.11
"""Inches: of a cell, and of what is around the maps."""
_BESIDE = 3
"""Most tasks for which two maps fit beside each other; with more the second is below the first."""
_OF_TASK, _OF_CATEGORY = (9, 3), (20, 2)
"""Characters and lines that a name has room for; the table has the whole names."""
_TITLES = ("miss rate", "false alarm rate")
_RATES = ("miss_rate", "false_alarm_rate")
_VERDICTS = ("miss", "alarm")
"""Names on the samples page for the verdicts that each map counts."""


class Link(Protocol):
    """The address of a monitor's samples in a cell with a verdict, empty where there is none."""

    def __call__(self, monitor: str, prompt: str, *, cell: str, verdict: str) -> str:
        """An address relative to the page."""
        ...


def draw_heat_maps(results: Results, prompt: str, link: Link | None = None) -> list[str]:
    """MR and FAR by category and task, a figure a monitor, and last the scale, which is the same in all.

    With `link` each cell that counts samples leads to them.
    """
    number, shorts = results["table"].prompts().index(prompt), short_names(results)
    drawn = []
    for i, name in enumerate(results["table"].drawn_in()):
        label = (
            f"Miss and false alarm rates of {shorts[name]} by category and task, {prompt} prompt; the table "
            "has the same numbers"
        )
        painted = partial(heat_figure, results, name, prompt, link)
        drawn.append(draw(f"heat-{number}-{i}", label, painted))
    return [*drawn, draw(f"heat-{number}-scale", "The scale of colours, from 0 to 1", _scale_figure)]


def heat_figure(results: Results, name: str, prompt: str, link: Link | None = None) -> Figure:
    """One monitor's pair of maps, not yet as SVG."""
    categories, tasks = results["table"].grid()
    across, down = len(tasks) * _COLUMN, len(categories) * _ROW
    foot = _FOOT + _LINE * max(_label(task, _OF_TASK).count("\n") for task in tasks)
    if len(tasks) <= _BESIDE:
        width, height = _WIDTH, _HEAD + down + foot
        corners = [(_LEFT, foot), (_LEFT + across + _BETWEEN, foot)]
    else:
        width, height = max(_WIDTH, _LEFT + across + 0.02), _HEAD + _TITLE + 2 * (down + foot)
        corners = [(_LEFT, foot + down + _TITLE + foot), (_LEFT, foot)]
    figure = Figure(figsize=(width, height))
    title = shortened(short_names(results)[name], 50)
    figure.text(0.045 / width, 1 - 0.16 / height, title, weight="bold")
    for index, (x, y) in enumerate(corners):
        axes = figure.add_axes((x / width, y / height, across / width, down / height))
        _head(axes, categories if x == _LEFT else [""] * len(categories), tasks, index)
        _map(axes, results, name, prompt, index, link)
    return figure


def _scale_figure() -> Figure:
    """Build the scale of the colours, not yet as SVG."""
    figure = Figure(figsize=(_WIDTH, 0.25))
    _scale(figure.add_axes((_LEFT / _WIDTH, 0.3, 1.6 / _WIDTH, 0.5)))
    return figure


def _label(name: str, room: tuple[int, int]) -> str:
    """A name on as few lines as it needs."""
    longest, most = room
    lines = wrap(name.replace("_", " "), longest, max_lines=most, placeholder="…")
    return "\n".join(shortened(line, longest) for line in lines)


def _head(axes: Axes, categories: Sequence[str], tasks: Sequence[str], which: int) -> None:
    axes.set(xlim=(0, len(tasks)), ylim=(len(categories), 0))
    axes.set_xticks(
        [x + 0.5 for x in range(len(tasks))], [_label(task, _OF_TASK) for task in tasks], fontsize=7
    )
    names = [_label(category, _OF_CATEGORY) for category in categories]
    axes.set_yticks([y + 0.5 for y in range(len(categories))], names, fontsize=7, linespacing=0.95)
    axes.tick_params(length=0, pad=2)
    axes.spines[:].set_visible(False)
    axes.set_title(_TITLES[which], fontsize=7.5, pad=3)


def _map(axes: Axes, results: Results, name: str, prompt: str, which: int, link: Link | None) -> None:
    categories, tasks = results["table"].grid()
    for y, category in enumerate(categories):
        for x, task in enumerate(tasks):
            cell = f"{category}/{task}"
            value = results["table"].value(name, prompt, _RATES[which], cell)
            ink = INK
            if value is not None:
                shade = _shade(value)
                axes.add_patch(
                    Rectangle(
                        (x + 0.03, y + 0.04), 0.94, 0.92, fc=shade, lw=0, gid=f"{MARK_ID}-{which}-{y}-{x}"
                    )
                )
                ink = ink_on(*shade)
            sign = SIGN if value is not None and has_mark(results, cell) else ""
            text = rate(value) + sign
            axes.text(x + 0.5, y + 0.52, text, ha="center", va="center", color=ink, fontsize=8)
            is_linked = link and value and cell not in results["headline"]
            address = link(name, prompt, cell=cell, verdict=_VERDICTS[which]) if link and is_linked else ""
            if address:  # a rate of 0 counts nothing that could be shown
                label = f"{_TITLES[which]} {rate(value)} in {cell}: its samples"
                axes.add_patch(linked(Rectangle((x, y), 1, 1, zorder=9), address, label))


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


def overall(material: Material) -> Markup:
    """The sortable table of everything overall, best first, and the other numbers folded below it."""
    results = material.results
    values = {
        "columns": overall_table.COLUMNS,
        "rows": overall_table.overall_rows(results, material.short_names),
        "more_columns": overall_table.MORE_COLUMNS,
        "more_rows": overall_table.more_rows(results, material.short_names),
        "stakes": results["stakes"],
    }
    return fill("overall", values)


def unscored(material: Material) -> Markup:
    """Show how many answers of each monitor are no label, or never came, and for which reasons."""
    lines = unscored_lines(material.results)
    return fill("unscored", {"lines": lines}) if lines else NOTHING


def doubted(material: Material) -> Markup:
    """Show how many scores of each monitor are bounds, contradict the label, are all alike, or missing."""
    lines = doubt_lines(material.results)
    return fill("doubted_scores", {"lines": lines}) if lines else NOTHING


def by_cell(material: Material) -> Markup:
    """Miss rate, false alarm rate and AUROC in each cell, and in what cuts across the cells."""
    results, prompts = material.results, material.prompts
    slices = results["table"].slices_under
    values = {
        "tables": [(prompt, _blocks(material, prompt)) for prompt in prompts],
        "notes": [*headlines_in_words(results), *marks_in_words(results)],
        "slices": [
            (prompt, [_block(material, prompt, place) for place in slices(prompt)]) for prompt in prompts
        ],
    }
    return fill("by_cell", values)


def heat_maps(material: Material) -> Markup:
    """Miss rate and false alarm rate by category and task, as colours, each a link to its samples."""
    # Safe to put in as they are: drawn here, every name in them an outline or escaped.
    drawn = [
        (
            prompt,
            [Markup(svg) for svg in draw_heat_maps(material.results, prompt, material.samples_link)],
        )
        for prompt in material.prompts
    ]
    return fill("heat_maps", {"heat_maps": drawn, "linked": bool(material.browsable)}) if drawn else NOTHING


def _blocks(material: Material, prompt: str) -> list[tuple[str, list[dict[str, Any]]]]:
    """The rows of each cell, behind it of its strata."""
    results = material.results
    return [
        _block(material, prompt, place)
        for cell in results["table"].cells_under(prompt)
        for place in (cell, *strata(results, prompt, cell))
    ]


def _block(material: Material, prompt: str, part: str) -> tuple[str, list[dict[str, Any]]]:
    results = material.results
    rows = [
        {
            "monitor": material.short_names[name],
            "n": numbers["n"].whole,
            "n_unscored": numbers["n_unscored"].whole,
            "numbers": _numbers(numbers, partial(_link, material, name, prompt, part)),
        }
        for name in results["table"].shown_in(part)
        if (numbers := results["table"].lookup(name, prompt, part))
    ]
    return title(results, part), rows


def _link(material: Material, monitor: str, prompt: str, part: str, verdict: str) -> str:
    """The address of the samples that a rate counts; the samples page knows cells, and no strata."""
    is_linked = is_cell(part) and part not in material.results["headline"]
    return material.samples_link(monitor, prompt, cell=part, verdict=verdict) if is_linked else ""


def _numbers(found: Numbers, link: Callable[[str], str]) -> tuple[PageNumber, PageNumber, PageNumber]:
    """Miss rate, false alarm rate, AUROC."""

    def rate(name: str, verdict: str) -> PageNumber:
        bounds = found[f"{name}_bounds"]
        bounds_text = interval_of(bounds) if bounds.low != bounds.high else ""
        return PageNumber(value_of(found[name]), interval_of(found[name]), bounds_text, link(verdict))

    auroc = found["auroc"]
    mark = "inverted" if is_inverted(auroc.value, auroc.interval) else ""
    return (
        rate("miss_rate", "miss"),
        rate("false_alarm_rate", "alarm"),
        PageNumber(value_of(auroc), auroc.missing or interval_of(auroc), mark=mark),
    )
