"""The figures, as SVG strings: MR-FAR scatter, transfer matrix, learning curves.

Each says in words what it shows where it stands alone; a number that is None is not drawn.
"""

from collections.abc import Sequence

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from monitorbench.metrics.cells import OVERALL
from monitorbench.metrics.results import NO_PROMPT, CurvePoint, Results
from monitorbench.metrics.summary import CellMetrics
from monitorbench.report import reading
from monitorbench.report.numbers import DASH, Outcome, outcome, rate, signed
from monitorbench.report.svg import INK, draw

_COLOURS = ("#7c8594", "#d97706", "#0284c7", "#059669", "#db2777", "#7c3aed", "#ca8a04", "#dc2626")
"""Readable on white and on near-black; told apart with common colour blindness, in this order."""
_MARKERS = ("o", "D", "^", "v", "P", "X")
_LINES = ("-", "--", ":", "-.")


def scatter(results: Results) -> str:
    """Overall MR against FAR, one point a monitor and prompt, with Wilson intervals and the fronts."""
    return draw("scatter", "Miss rate against false alarm rate of each monitor", lambda: _scatter(results))


def _scatter(results: Results) -> Figure:
    names, shorts, prompts = reading.monitors(results), reading.short_names(results), reading.prompts(results)
    figure = Figure(figsize=(5.2, 5.4 + 0.2 * ((len(names) + 1) // 2)), layout="constrained")
    axes = figure.add_subplot()
    axes.plot([0, 1], [1, 0], ":", color=INK, alpha=0.4, lw=1)
    for prompt, line in zip(prompts, _LINES, strict=False):
        _front(axes, results, prompt, line)
    # Colours come round again where there are more monitors than colours: then each has a number too.
    numbers = {name: str(i + 1) if len(names) > len(_COLOURS) else "" for i, name in enumerate(names)}
    for i, name in enumerate(names):
        reference = reading.is_reference(results, name)
        for j, prompt in enumerate([NO_PROMPT] if reference else prompts):
            found = reading.lookup(results, name, prompt, OVERALL)
            if found:
                marker = "s" if reference else _MARKERS[j % len(_MARKERS)]
                _point(axes, found, _colour(i), marker, numbers[name])
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), box_aspect=1)
    axes.set_xlabel("miss rate: share of misbehavior not flagged")
    axes.set_ylabel("false alarm rate: share of benign flagged")
    axes.set_title("↙ lower left is better", loc="left", fontsize=9)
    axes.grid(color=INK, alpha=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(
        handles=[
            *(
                Line2D(
                    [],
                    [],
                    ls="",
                    marker="s" if reading.is_reference(results, name) else "o",
                    color=_colour(i),
                )
                for i, name in enumerate(names)
            ),
            *(
                Line2D([], [], ls=line, color=INK, lw=1, marker=marker, mfc="none")
                for marker, line, _ in zip(_MARKERS, _LINES, prompts, strict=False)
            ),
            Line2D([], [], ls=":", color=INK, alpha=0.5),
        ],
        labels=[
            *(f"{numbers[name]} {_shortened(shorts[name], 34)}".strip() for name in names),
            *(_shortened(f"{prompt} prompt, its front", 34) for prompt in prompts[: len(_LINES)]),
            "guessing",
        ],
        loc="outside lower left",
        ncols=2,
        fontsize=8.5,
    )
    return figure


def _point(axes: Axes, found: CellMetrics, colour: str, marker: str, number: str) -> None:
    mr, far = found["miss_rate"], found["false_alarm_rate"]
    if mr is None or far is None:
        return
    if found["miss_rate_ci"] and found["false_alarm_rate_ci"]:
        axes.plot(found["miss_rate_ci"], [far, far], color=colour, alpha=0.55, lw=1, zorder=2)
        axes.plot([mr, mr], found["false_alarm_rate_ci"], color=colour, alpha=0.55, lw=1, zorder=2)
    axes.plot([mr], [far], marker, color=colour, ms=7, zorder=3, clip_on=False)
    axes.annotate(number, (mr, far), (4, 4), textcoords="offset points", fontsize=7, zorder=4)


def _front(axes: Axes, results: Results, prompt: str, line: str) -> None:
    """The border of what some monitor reaches: right of and above it, one on the front is no worse."""
    points = sorted(
        (found["miss_rate"], found["false_alarm_rate"])
        for name in results["pareto"].get(prompt, [])
        if name in results["monitors"] and (found := reading.lookup(results, name, prompt, OVERALL))
        if found["miss_rate"] is not None and found["false_alarm_rate"] is not None
    )
    if points:
        x = [points[0][0], *(mr for mr, _ in points), 1.0]
        y = [1.0, *(far for _, far in points), points[-1][1]]
        axes.step(x, y, line, where="post", color=INK, alpha=0.55, lw=1)


def transfer_matrix(results: Results, prompt: str) -> str:
    """AUROC of each monitor on each test cell; under an adapter's, its difference from the base."""
    label = f"AUROC by monitor and test cell, {prompt} prompt; the same numbers are in the table"
    return draw(f"transfer-{reading.prompts(results).index(prompt)}", label, lambda: _matrix(results, prompt))


def _matrix(results: Results, prompt: str) -> Figure:
    rows, shorts = reading.shown_in(results, ""), reading.short_names(results)
    columns = [OVERALL, *reading.inner_cells(results, OVERALL)]
    labels = [_shortened(shorts[name], 26) for name in rows]
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
    # Relative luminance (WCAG 2.2), with sRGB taken as a power of 2.2.
    bright = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2 > 0.22
    ink = "#111111" if bright else "#ffffff"
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


def learning_curves(results: Results) -> str | None:
    """Validation AUROC and training loss by step, a row an adapter; None where none were recorded."""
    curves = {name: points for name, points in results.get("learning_curves", {}).items() if points}
    if not curves:
        return None
    return draw("curves", "Validation AUROC and training loss by step", lambda: _curves(curves))


def _curves(curves: dict[str, list[CurvePoint]]) -> Figure:
    figure = Figure(figsize=(5.6, 0.3 + 1.9 * len(curves)), layout="constrained")
    grid = figure.subplots(len(curves), 2, squeeze=False, sharex="row")
    for (left, right), (name, points) in zip(grid, curves.items(), strict=True):
        known = [(p["step"], p["auroc"], p["auroc_ci"]) for p in points if p["auroc"] is not None]
        band = [(step, *bounds) for step, _, bounds in known if bounds]
        if band:
            left.fill_between(*zip(*band, strict=True), color=_COLOURS[2], alpha=0.25, lw=0)
        left.plot([k[0] for k in known], [k[1] for k in known], ".-", color=_COLOURS[2], lw=1.2)
        left.axhline(0.5, color=INK, ls=":", lw=1, alpha=0.5)
        left.set_ylim(min([0.35, *(b[1] for b in band)]), 1.02)
        left.set_title(_shortened(name, 40), loc="left", fontsize=9)
        left.set_ylabel("validation AUROC")
        losses = [(p["step"], p["loss"]) for p in points if p["loss"] is not None]
        right.plot([s for s, _ in losses], [v for _, v in losses], ".-", color=_COLOURS[1], lw=1.2)
        right.set_ylim(0, 1.08 * max([v for _, v in losses], default=1) or 1)
        right.set_ylabel("training loss")
        for axes in (left, right):
            axes.grid(color=INK, alpha=0.12)
            axes.spines[["top", "right"]].set_visible(False)
            axes.set_xlabel("step")
    return figure


def _colour(i: int) -> str:
    return _COLOURS[i % len(_COLOURS)]


def _shortened(name: str, most: int) -> str:
    half = most // 2
    return name if len(name) <= most else f"{name[: half - 1]}…{name[len(name) - half :]}"
