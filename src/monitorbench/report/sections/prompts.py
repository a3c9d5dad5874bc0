"""The section of one monitor under several prompts: how far its numbers move with the wording alone.

Its figure has a dot and an interval for each prompt, the chosen one marked; a number that is None is not
drawn.
"""

from collections.abc import Mapping
from typing import Literal, get_args

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from monitorbench.metrics.prompts import shared_numbers
from monitorbench.metrics.table import Numbers
from monitorbench.report.drawing import COLOURS, INK, MARK_ID, draw, shortened
from monitorbench.report.sections.section import NOTHING, Material, fill
from monitorbench.report.tables.prompts import COLUMNS, in_words, prompt_blocks

Measure = Literal["auroc", "miss_rate", "false_alarm_rate"]
_TITLES: dict[Measure, str] = {
    "auroc": "AUROC",
    "miss_rate": "miss rate",
    "false_alarm_rate": "false alarms",
}
_WIDTH, _LEFT, _PANEL, _BETWEEN = 4.5, 1.6, 0.86, 0.13
_HEAD, _ROW, _FOOT = 0.26, 0.21, 0.24
"""Inches."""
_NAME = 22
"""Characters that a prompt's name has room for."""


def wordings(identity: str, monitor: str, by_prompt: Mapping[str, Numbers], chosen: str | None) -> Markup:
    """AUROC, MR and FAR of a monitor under each of its prompts, with 95 % intervals.

    `identity` tells the figure from others of the page; `chosen` is the prompt that validation chose, None
    where there was no choice.
    """
    marked = f"; {chosen} was chosen on the validation split" if chosen else ""
    label = f"AUROC, miss rate and false alarm rate of {monitor} by prompt{marked}; the table has the numbers"
    return draw(identity, label, lambda: _wordings_figure(by_prompt, chosen))


def _wordings_figure(by_prompt: Mapping[str, Numbers], chosen: str | None) -> Figure:
    """Build the figure of wordings, not yet as SVG."""
    prompts = list(by_prompt)
    names = [f"{'▸ ' if name == chosen else ''}{shortened(name, _NAME)}" for name in prompts]
    down = len(prompts) * _ROW
    height = _HEAD + down + _FOOT
    figure = Figure(figsize=(_WIDTH, height))
    for i, measure in enumerate(get_args(Measure)):
        panel_left = _LEFT + i * (_PANEL + _BETWEEN)
        axes = figure.add_axes((panel_left / _WIDTH, _FOOT / height, _PANEL / _WIDTH, down / height))
        _panel(axes, by_prompt, measure, prompts.index(chosen) if chosen in prompts else None)
        axes.set_yticks(range(len(prompts)), names if i == 0 else [""] * len(prompts))
    return figure


def _panel(axes: Axes, by_prompt: Mapping[str, Numbers], measure: Measure, chosen: int | None) -> None:
    axes.set(xlim=(-0.03, 1.03), ylim=(len(by_prompt) - 0.5, -0.5), xticks=[0, 0.5, 1])
    axes.set_xticklabels(["0", ".5", "1"], fontsize=8)
    axes.set_title(_TITLES[measure], fontsize=9, pad=4)
    axes.tick_params(length=0, pad=3, labelsize=8.5)
    axes.spines[:].set_visible(False)
    axes.grid(axis="x", color=INK, alpha=0.12)
    if measure == "auroc":
        axes.axvline(0.5, color=INK, ls=":", lw=1, alpha=0.6)
    if chosen is not None:
        axes.axhspan(chosen - 0.5, chosen + 0.5, color=COLOURS[1], alpha=0.13, lw=0)
    for y, metrics in enumerate(by_prompt.values()):
        value, bounds = metrics[measure].value, metrics[measure].interval
        shade = COLOURS[1] if y == chosen else COLOURS[2]
        if value is None:
            continue
        if bounds:
            axes.plot(bounds, [y, y], color=shade, alpha=0.7, lw=1.6, solid_capstyle="round")
        (mark,) = axes.plot([value], [y], "D" if y == chosen else "o", color=shade, ms=5.5, zorder=3)
        mark.set(clip_on=False, gid=f"{MARK_ID}-{measure}-{y}")


def by_prompt(material: Material) -> Markup:
    """Each monitor under its prompts on the same samples: the spread, a figure, and paired differences.

    Where the prompt was chosen on the validation split, which one and by how much.
    """
    results, names = material.results, material.short_names
    choices, table = results.get("wordings", {}), results["table"]
    monitors = [name for name in table.monitors() if shared_numbers(table, name)]
    if not (choices or monitors):
        return NOTHING
    drawn = []
    for number, (monitor, block) in enumerate(zip(monitors, prompt_blocks(results), strict=True)):
        choice = choices.get(monitor)
        chosen = choice["chosen"] if choice else None
        figure = wordings(f"wordings-{number}", block.monitor, shared_numbers(table, monitor), chosen)
        drawn.append((block, chosen, figure))
    values = {
        "drawn": drawn,
        "columns": COLUMNS,
        "choices": [(names[monitor], in_words(choice)) for monitor, choice in choices.items()],
    }
    return fill("prompts", values)
