"""Training against test cell (AUROC with words, rates) and against training (cosines of heads), as SVG."""

from collections.abc import Sequence

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from monitorbench.metrics.columns import OVERALL
from monitorbench.metrics.marks import SIGN, has_mark
from monitorbench.metrics.registry import Measure
from monitorbench.metrics.results import Results, effects_of, is_trained, n_seeds, short_names, training_of
from monitorbench.metrics.table import Numbers
from monitorbench.metrics.trainings import DirectionsFacts, spread
from monitorbench.metrics.words import Word, counts
from monitorbench.metrics.words import word as word_of
from monitorbench.metrics.written import rate, shown, value_of
from monitorbench.report.figures.drawing import INK, MARK_ID, draw, ink_on, shortened
from monitorbench.report.transfer.effects import cosine, share_cells, short_training

TITLES: dict[Measure, str] = {
    "auroc": "AUROC",
    "miss_rate": "miss rate",
    "false_alarm_rate": "false alarm rate",
    "miss_rate_at_far_5": "miss rate at FAR 5 %",
}
_COLUMN, _ROW = 0.78, 0.5
_WORD = 0.3
"""Inches; a row of the AUROC's matrix is taller by the word."""


def transfer_matrix(results: Results, prompt: str, measure: Measure = "auroc") -> str:
    """A number of each monitor on each test cell; under a training's, its difference from the base.

    Of several seeds it is their mean. AUROC's has the words too.
    """
    label = f"{TITLES[measure]} by monitor and test cell, {prompt} prompt; the same numbers are in the table"
    name = f"transfer-{results['table'].prompts().index(prompt)}-{measure}"
    return draw(name, label, lambda: matrix_figure(results, prompt, measure))


def matrix_figure(results: Results, prompt: str, measure: Measure) -> Figure:
    """Build the matrix, not yet as SVG."""
    shorts = short_names(results)
    rows = list(dict.fromkeys(training_of(results, name) for name in results["table"].shown_in("")))
    columns = [OVERALL, *results["table"].inner_cells(OVERALL)]
    has_words = measure == "auroc" and bool(results["adapters"])
    row = _ROW + (_WORD if has_words else 0)
    seeds = {name: f" ({n} seeds)" if (n := n_seeds(results, name)) > 1 else "" for name in rows}
    labels = [shortened(f"{shorts.get(name, name)}{seeds[name]}", 30) for name in rows]
    effects = effects_of(results)
    figure, axes = _grid(labels, len(columns), _COLUMN, row, 0.62)
    axes.set_xticks([])
    for y, name in enumerate(rows):
        for x, cell in enumerate(columns):
            value = _value(results, name, prompt, cell, measure)
            ink = _tile(axes, x, y, value, "RdBu" if measure == "auroc" else "YlOrRd")
            numbers = effects.get(name, {}).get(prompt, {}).get(cell)
            _write(axes, x, y, ink, value, numbers, measure)
            if name in effects and is_trained(results, name, cell):
                box = Rectangle((x + 0.04, y + 0.05), 0.92, 0.9, fill=False, ec=INK, lw=1.6, clip_on=False)
                axes.add_patch(box)
    _column_heads(axes, results, columns, _ROW / row)
    return figure


def _grid(
    labels: Sequence[str], n_columns: int, column: float, row: float, above: float
) -> tuple[Figure, Axes]:
    """Open a figure of labelled rows, the first at the top; sizes are in inches, `above` that of heads."""
    label_width, across, down = 0.25 + 0.075 * max(map(len, labels)), column * n_columns, row * len(labels)
    width, height = label_width + across + 0.1, above + down + 0.1
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((label_width / width, 0.1 / height, across / width, down / height))
    ticks = [i + 0.5 for i in range(len(labels))]
    axes.set(xlim=(0, n_columns), ylim=(len(labels), 0), yticks=ticks, yticklabels=labels)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return figure, axes


def _value(results: Results, name: str, prompt: str, cell: str, measure: Measure) -> float | None:
    """A monitor's number, or the mean over a training's seeds."""
    table = results["table"]
    if by_seed := results["seeds"].get(name):
        of_seeds = spread([table.value(adapter, prompt, measure, cell) for adapter in by_seed.values()])
        return of_seeds and of_seeds["mean"]
    return table.value(name, prompt, measure, cell)


def word(numbers: Numbers) -> str:
    """The word of a cell, and where no difference was found the smallest AUROC difference it would show."""
    in_a_word = word_of(numbers)
    if in_a_word is not Word.NO_DIFFERENCE_FOUND:
        return in_a_word or ""
    least = numbers["detectable_auroc_difference"]
    return "none found\n" + (f"sees {shown(least)}" if least.value is not None else "sees none")


def _tile(axes: Axes, x: int, y: int, value: float | None, colours: str) -> str:
    """Colour a cell by a value in [0, 1], and return the colour of text on it."""
    if value is None:
        return INK
    red, green, blue, _ = colormaps[colours](0.1 + 0.8 * value if colours == "RdBu" else 0.9 * value)
    # On a phone the cells behind the first column, overall, are reached by scrolling.
    gid = f"{MARK_ID}-{y}" if x == 0 else None
    axes.add_patch(Rectangle((x + 0.04, y + 0.05), 0.92, 0.9, fc=(red, green, blue), lw=0, gid=gid))
    return ink_on(red, green, blue)


def _write(
    axes: Axes, x: int, y: int, ink: str, value: float | None, numbers: Numbers | None, measure: Measure
) -> None:
    """Write a cell's number and, below it, the difference from the base and the word."""
    lines = [(rate(value), 9.0, "normal")]
    moved = numbers and numbers[f"{measure}_difference"]
    if value is not None and numbers and moved and moved.value is not None:
        is_clear = counts(numbers, measure)
        lines.append((value_of(moved) + ("*" if is_clear else ""), 8, "bold" if is_clear else "normal"))
        if measure == "auroc" and (in_a_word := word(numbers)):
            text = in_a_word if "\n" in in_a_word else in_a_word.replace(" ", "\n", 1)
            lines.append((text, 6.5, "normal"))
    places = {1: (0.5,), 2: (0.34, 0.69), 3: (0.21, 0.45, 0.75)}[len(lines)]
    for place, (text, size, weight) in zip(places, lines, strict=True):
        axes.text(
            x + 0.5,
            y + place,
            text,
            ha="center",
            va="center",
            color=ink,
            fontsize=size,
            weight=weight,
            linespacing=1.0,
        )


def _column_heads(axes: Axes, results: Results, columns: Sequence[str], inch: float) -> None:
    """The task over each column, the category over its columns; `inch`: a usual row's height in rows."""
    for x, cell in enumerate(columns):
        name = (cell.partition("/")[2] or cell) + (SIGN if has_mark(results, cell) else "")
        axes.text(x + 0.5, -0.1 * inch, name, ha="center", va="bottom", fontsize=8)
    for category in dict.fromkeys(cell.partition("/")[0] for cell in columns if "/" in cell):
        inside = [x for x, cell in enumerate(columns) if cell.startswith(f"{category}/")]
        middle = (inside[0] + inside[-1] + 1) / 2
        name = category.replace("_", "\n")
        axes.text(middle, -0.48 * inch, name, ha="center", va="bottom", fontsize=8, linespacing=1.0)
        ends = [inside[0] + 0.1, inside[-1] + 0.9]
        axes.plot(ends, [-0.42 * inch, -0.42 * inch], color=INK, lw=0.8, clip_on=False)


_CELL = 0.42
"""Inches."""


def draw_directions(results: Results) -> str:
    """The cosines of `results["directions"]`; rows and columns are numbered alike."""
    facts = results["directions"]
    label = f"Cosines between the heads of {len(facts['trainings'])} trainings"
    return draw("directions", label, lambda: _directions_figure(results, facts))


def _directions_figure(results: Results, facts: DirectionsFacts) -> Figure:
    names, shorts = facts["trainings"], short_names(results)
    numbers = [str(i + 1) for i in range(len(names))]
    shown = [shortened(short_training(name, shorts), 30) for name in names]
    labels = [f"{name}  {number}" for name, number in zip(shown, numbers, strict=True)]
    figure, axes = _grid(labels, len(names), _CELL, _CELL, 0.3)
    axes.xaxis.tick_top()
    axes.set_xticks([i + 0.5 for i in range(len(names))], numbers)
    for y, row in enumerate(facts["cosines"]):
        for x, value in enumerate(row):
            ink = _tile(axes, x, y, None if value is None else (1 + value) / 2, "RdBu")
            axes.text(x + 0.5, y + 0.52, cosine(value), ha="center", va="center", color=ink, fontsize=8)
            if x != y and share_cells(results, names[x], names[y]):
                axes.add_patch(Rectangle((x + 0.04, y + 0.04), 0.92, 0.92, fill=False, ec=INK, lw=0.9))
    return figure
