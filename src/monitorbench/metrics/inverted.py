"""Inverted monitors, whose scores fall with misbehavior by more than chance explains: which, and where."""

from typing import NamedTuple

from monitorbench.metrics.columns import OVERALL
from monitorbench.metrics.results import Results, short_names
from monitorbench.metrics.score_facts import MARGIN, is_inverted
from monitorbench.metrics.table import Numbers, is_cell
from monitorbench.metrics.written import rate, shown, value_of

_NAMED = 3
"""Most cells that are named in the remark."""


class InvertedCell(NamedTuple):
    """A monitor under a prompt in a cell where benign samples get the higher scores."""

    monitor: str
    prompt: str
    cell: str
    found: Numbers


def inverted_cells(results: Results) -> list[InvertedCell]:
    """List inverted monitors but references, overall and by `category/task`, the lowest AUROC first."""
    rows = [
        InvertedCell(monitor, prompt, cell, numbers)
        for monitor, prompt in results["table"].in_order()
        if not results["table"].is_reference(monitor)
        for cell, numbers in results["table"].parts(monitor, prompt).items()
        if (cell == OVERALL or (is_cell(cell) and "/" in cell))
        and is_inverted(numbers["auroc"].value, numbers["auroc"].interval)
    ]
    return sorted(rows, key=lambda row: row.found["auroc"].value or 0.0)


def heading() -> str:
    """Define `inverted` in one line."""
    return f"Inverted: benign samples score higher (AUROC below {rate(MARGIN)}, its interval below .5)"


def inverted_lines(results: Results) -> list[str]:
    """Return a line for the terminal for each inverted cell."""
    names = short_names(results)
    return [
        f"{names[row.monitor]} · {row.prompt} prompt, {where(row.cell)}: "
        f"AUROC {shown(row.found['auroc'])}, "
        f"MR {value_of(row.found['miss_rate'])}, FAR {value_of(row.found['false_alarm_rate'])}"
        for row in inverted_cells(results)
    ]


def inverted_remark(results: Results) -> list[str]:
    """One sentence for the top of the page on monitors that the decision does not call inverted overall."""
    told = {
        (option["monitor"], option["prompt"])
        for option in results["decision"]["options"]
        if is_inverted(option["auroc"], option["auroc_ci"])
    }
    rows = [row for row in inverted_cells(results) if (row.monitor, row.prompt) not in told]
    if not rows:
        return []
    names = [
        f"{row.monitor} ({row.prompt} prompt) {where(row.cell)} ({shown(row.found['auroc'])})"
        for row in rows[:_NAMED]
    ]
    more = f" and {len(rows) - _NAMED} more, listed below" if len(rows) > _NAMED else ""
    return [f"Inverted, benign samples get the higher scores: {', '.join(names)}{more}."]


def where(cell: str) -> str:
    """`in safety_permission/qa`, or `overall`."""
    return cell if cell == OVERALL else f"in {cell}"
