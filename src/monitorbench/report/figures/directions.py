"""Cosines between the directions of linear heads, training by training, as SVG."""

from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from monitorbench.metrics import reading
from monitorbench.metrics.directions import DirectionsFacts
from monitorbench.metrics.results import Results
from monitorbench.report.figures.style import ink_on, shortened
from monitorbench.report.figures.svg import INK, MARK, draw
from monitorbench.report.tables.transfer_signs import direction_rows, share_cells

_CELL = 0.42
"""Inches."""


def directions(results: Results) -> str:
    """The cosines of `results["directions"]`; rows and columns are numbered alike."""
    facts = results["directions"]
    label = f"Cosines between the heads of {len(facts['trainings'])} trainings; the terminal has the same"
    return draw("directions", label, lambda: _figure(results, facts))


def _figure(results: Results, facts: DirectionsFacts) -> Figure:
    rows = direction_rows(facts, reading.short_names(results))
    names = facts["trainings"]
    labels = [f"{shortened(row[1], 30)}  {row[0]}" for row in rows]
    label_width, across = 0.25 + 0.075 * max(map(len, labels)), _CELL * len(rows)
    width, height = label_width + across + 0.1, 0.3 + across + 0.1
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((label_width / width, 0.1 / height, across / width, across / height))
    axes.set(xlim=(0, len(rows)), ylim=(len(rows), 0), yticks=[i + 0.5 for i in range(len(rows))])
    axes.set_yticklabels(labels)
    axes.xaxis.tick_top()
    axes.set_xticks([i + 0.5 for i in range(len(rows))], [row[0] for row in rows])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    for y, row in enumerate(rows):
        for x, text in enumerate(row[2:]):
            value = facts["cosines"][y][x]
            ink = INK
            if value is not None:
                red, green, blue, _ = colormaps["RdBu"](0.5 + 0.4 * value)
                gid = f"{MARK}-{y}" if x == 0 else None
                axes.add_patch(
                    Rectangle((x + 0.04, y + 0.04), 0.92, 0.92, fc=(red, green, blue), lw=0, gid=gid)
                )
                ink = ink_on(red, green, blue)
            axes.text(x + 0.5, y + 0.52, text, ha="center", va="center", color=ink, fontsize=8)
            if x != y and share_cells(results, names[x], names[y]):
                axes.add_patch(Rectangle((x + 0.04, y + 0.04), 0.92, 0.92, fill=False, ec=INK, lw=0.9))
    return figure
