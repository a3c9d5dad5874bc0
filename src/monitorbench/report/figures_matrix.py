"""The transfer matrix: AUROC of each monitor on each test cell, as an SVG string."""

from collections.abc import Sequence

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from monitorbench.metrics.cells import OVERALL
from monitorbench.metrics.results import Results
from monitorbench.report import reading
from monitorbench.report.figure_style import ink_on, shortened
from monitorbench.report.numbers import DASH, Outcome, outcome, rate, signed
from monitorbench.report.svg import INK, draw


def transfer_matrix(results: Results, prompt: str) -> str:
    """AUROC of each monitor on each test cell; under an adapter's, its difference from the base."""
    label = f"AUROC by monitor and test cell, {prompt} prompt; the same numbers are in the table"
    return draw(f"transfer-{reading.prompts(results).index(prompt)}", label, lambda: _matrix(results, prompt))


def _matrix(results: Results, prompt: str) -> Figure:
    rows, shorts = reading.shown_in(results, ""), reading.short_names(results)
    columns = [OVERALL, *reading.inner_cells(results, OVERALL)]
    labels = [shortened(shorts[name], 26) for name in rows]
    left = 0.25 + 0.075 * max(map(len, labels))
    width, height = left + 0.72 * len(columns) + 0.1, 0.62 + 0.5 * len(rows) + 0.1
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes(
        (left / width, 0.1 / height, 0.72 * len(columns) / width, 0.5 * len(rows) / height)
    )
    axes.set(xlim=(0, len(columns)), ylim=(len(rows), 0), yticks=[i + 0.5 for i in range(len(rows))])
    axes.set_yticklabels(labels)
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    for y, name in enumerate(rows):
        for x, cell in enumerate(columns):
            _matrix_cell(axes, x, y, results, name, prompt, cell)
    for y, name in enumerate(rows):
        for x, cell in enumerate(columns):
            if name in results["transfer"] and reading.is_trained(results, name, cell):
                box = Rectangle((x + 0.04, y + 0.05), 0.92, 0.9, fill=False, ec=INK, lw=1.6, clip_on=False)
                axes.add_patch(box)
    _column_heads(axes, columns)
    return figure


def _matrix_cell(axes: Axes, x: int, y: int, results: Results, name: str, prompt: str, cell: str) -> None:
    found = reading.lookup(results, name, prompt, cell)
    value = found["auroc"] if found else None
    if value is None:
        axes.text(x + 0.5, y + 0.5, DASH, ha="center", va="center")
        return
    red, green, blue, _ = colormaps["RdBu"](0.1 + 0.8 * value)
    axes.add_patch(Rectangle((x + 0.04, y + 0.05), 0.92, 0.9, fc=(red, green, blue), lw=0))
    ink = ink_on(red, green, blue)
    change = results["transfer"].get(name, {}).get(prompt, {}).get(cell)
    if change is None:
        axes.text(x + 0.5, y + 0.5, rate(value), ha="center", va="center", color=ink)
        return
    told = outcome(change["auroc_difference_ci"]) in (Outcome.BETTER, Outcome.WORSE)
    axes.text(x + 0.5, y + 0.34, rate(value), ha="center", va="center", color=ink)
    text = signed(change["auroc_difference"]) + ("*" if told else "")
    weight = "bold" if told else "normal"
    axes.text(x + 0.5, y + 0.69, text, ha="center", va="center", color=ink, fontsize=8, weight=weight)


def _column_heads(axes: Axes, columns: Sequence[str]) -> None:
    """The task over each column, the category over its columns."""
    for x, cell in enumerate(columns):
        axes.text(x + 0.5, -0.1, cell.partition("/")[2] or cell, ha="center", va="bottom", fontsize=8)
    for category in dict.fromkeys(cell.partition("/")[0] for cell in columns if "/" in cell):
        inside = [x for x, cell in enumerate(columns) if cell.startswith(f"{category}/")]
        middle = (inside[0] + inside[-1] + 1) / 2
        name = category.replace("_", "\n")
        axes.text(middle, -0.48, name, ha="center", va="bottom", fontsize=8, linespacing=1.0)
        axes.plot([inside[0] + 0.1, inside[-1] + 0.9], [-0.42, -0.42], color=INK, lw=0.8, clip_on=False)
