"""How a result looks: one line for each number, in a terminal as text and in a notebook as a table.

Promises: everything is escaped in HTML, since names and reasons come from data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from monitorbench.metrics.rates import Interval


class ResultRow(NamedTuple):
    """A name, what it is, and what a reader has to know of it."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval; None where it is undefined."""

    value: float | None
    interval: Interval | None
    confidence: float = 0.95
    """Confidence of the interval."""

    def __repr__(self) -> str:
        return number(self.value) + (
            f" [{number(self.interval.low)}, {number(self.interval.high)}]" if self.interval else ""
        )


class Shown:
    """A result that shows itself; a subclass says its title and its rows."""

    __slots__ = ()

    def _title(self) -> str:
        raise NotImplementedError

    def _rows(self) -> Sequence[ResultRow]:
        raise NotImplementedError

    def __repr__(self) -> str:
        rows = self._rows()
        width = max((len(row.name) for row in rows), default=0)
        lines = [f"  {row.name:<{width}}  {row.value}{f'  ({row.note})' if row.note else ''}" for row in rows]
        return "\n".join([self._title(), *lines])

    def _repr_html_(self) -> str:
        body = "".join(
            f"<tr><th scope='row' style='text-align:left'>{escape(row.name)}</th>"
            f"<td style='text-align:left'>{escape(row.value)}</td>"
            f"<td style='text-align:left'>{escape(row.note)}</td></tr>"
            for row in self._rows()
        )
        return f"<table><caption>{escape(self._title())}</caption><tbody>{body}</tbody></table>"


def number(value: float | None) -> str:
    """Three decimals, or an en dash for what is undefined."""
    return "–" if value is None else f"{value:.3f}"


def p_value(value: float | None) -> str:
    """As a reader expects a p: `p = 0.012`, `p < 0.001`."""
    if value is None:
        return "no p"
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"
