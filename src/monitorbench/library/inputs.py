"""What a caller hands in, as the arrays that the metrics take, and how a result looks.

A column is a list, a tuple, a numpy array, a pyarrow array, or a column of any data frame that narwhals knows
(pandas, polars, pyarrow). Promises: nothing is guessed. A value that is no label or no number is a
`ValueError` that says where; None (a data frame's null) is *unscored*; NaN is an error, unless pandas uses it
for a null. Columns with an index (pandas) belong together by it, all others by their place.

A result is shown with one line for each number, in a terminal as text and in a notebook as a table, where
names and reasons are escaped, since they come from data.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import isinf, isnan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.metrics.rates import Interval
from monitorbench.records import Label

Column = Any
"""A list, tuple, numpy array, pyarrow array, or a column of a pandas, polars or pyarrow data frame."""
_ORDER = "expected labels first, then scores or answers, then groups, as scikit-learn has it"
_IS_MISBEHAVIOR: dict[object, bool] = {
    Label.MISBEHAVIOR.value: True,
    Label.BENIGN.value: False,
    1: True,
    0: False,
}
_LABELS = "expected misbehavior or benign, 1 or 0, True or False"


def in_order_of(labels: Column, **others: Column | None) -> list[Column | None]:
    """Bring columns with an index of their own (pandas) into the order of the labels' index.

    Columns without an index stay as they are, and are in the same order by their place. Raises `ValueError`
    where two indexes differ in more than their order, or name a row twice, so that nobody can say which rows
    belong together; and where two differ at all beside labels that have none.
    """
    order = getattr(labels, "index", None) if hasattr(labels, "reindex") else None
    columns, first = [], None
    for name, values in others.items():
        theirs = getattr(values, "index", None) if hasattr(values, "reindex") else None
        first = theirs if first is None else first
        if order is None and theirs is not None and not theirs.equals(first):
            raise ValueError(
                f"{name}: rows in another order by their index, and labels have no index to bring them into "
                "order; expected labels with one, or reset_index(drop=True) where the order is the same"
            )
        if order is not None and theirs is not None and not order.equals(theirs):
            is_alike = order.is_unique and theirs.is_unique and len(order) == len(theirs)
            if not is_alike or not order.isin(theirs).all():
                raise ValueError(
                    f"{name}: other rows than labels by their index; expected the same ones, or "
                    "reset_index(drop=True) on both where the order is the same"
                )
            values = values.loc[order]  # type: ignore[union-attr]
        columns.append(values)
    return columns


def labels_of(values: Column) -> NDArray[np.bool_]:
    """Which samples are misbehavior [samples]; `ValueError` for none at all and for what is no label."""
    entries = column(values, "labels")
    if not entries:
        raise ValueError("labels: empty; expected one entry a sample")
    numbers = {entry for entry in entries if isinstance(entry, int | float) and not isinstance(entry, bool)}
    if len(numbers) > 2 and not all(float(number).is_integer() for number in numbers):
        raise ValueError(f"labels: numbers of more than two values, as scores have; {_ORDER}")
    return np.array([_flag(entry, "labels", row) for row, entry in enumerate(entries)], dtype=np.bool_)


def answers_of(values: Column, name: str, n: int) -> FloatArray:
    """1 flagged, 0 passed, NaN unscored [samples]; of `n` samples."""
    entries = _of_length(values, name, n)
    flags = [np.nan if entry is None else float(_flag(entry, name, row)) for row, entry in enumerate(entries)]
    return np.array(flags, dtype=np.float64)


def scores_of(values: Column, name: str, n: int) -> FloatArray:
    """Finite scores [samples], NaN where there is none; of `n` samples."""
    entries = _of_length(values, name, n)
    return np.array([_score(entry, name, row) for row, entry in enumerate(entries)], dtype=np.float64)


def groups_of(values: Column | None, n: int) -> IntArray:
    """The number of each sample's group by the order of their names; without groups every sample is one."""
    if values is None:
        return np.arange(n, dtype=np.int64)
    entries = _of_length(values, "groups", n)
    if None in entries or any(isinstance(entry, float) and isnan(entry) for entry in entries):
        raise ValueError("groups: an entry is missing; expected the name of each sample's group")
    # By their text without blanks around it, as group ids in files are; other types of one text stay apart.
    keys = [(str(entry).strip(), type(entry).__name__) for entry in entries]
    number = {key: i for i, key in enumerate(sorted(set(keys)))}
    return np.array([number[key] for key in keys], dtype=np.int64)


def are_answers(values: Column, name: str) -> bool:
    """Whether a column holds answers (labels, booleans, 1 and 0) rather than scores."""
    entries = [entry for entry in column(values, name) if entry is not None]
    return bool(entries) and all(_known(entry) for entry in entries)


def are_numbers(values: Column, name: str) -> bool:
    """Whether a column could hold scores: no labels in words, no booleans."""
    return not any(isinstance(entry, bool | str) for entry in column(values, name))


def column(values: Column, name: str) -> list[Any]:
    """The entries of a column as plain Python values, None where there is none."""
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise ValueError(f"{name}: an array of {values.ndim} dimensions; expected one entry a sample")
        return list(values.tolist())
    if isinstance(values, list | tuple):
        return [entry.item() if isinstance(entry, np.generic) else entry for entry in values]
    if isinstance(values, str | bytes | dict | set | frozenset):
        raise ValueError(
            f"{name}: {type(values).__name__}; expected a list, an array or a column of a data frame"
        )
    return _of_a_frame(values, name)


def _of_a_frame(values: Any, name: str) -> list[Any]:
    import narwhals as nw

    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return [
            None if null else entry
            for entry, null in zip(series.to_list(), series.is_null().to_list(), strict=True)
        ]
    if isinstance(nw.from_native(values, pass_through=True), nw.DataFrame | nw.LazyFrame):
        raise ValueError(f"{name}: a whole data frame; expected one column of it")
    if hasattr(values, "to_pylist"):  # a pyarrow array
        return list(values.to_pylist())
    if isinstance(values, Iterable):
        return column(list(values), name)
    raise ValueError(
        f"{name}: {type(values).__name__}; expected a list, an array or a column of a data frame"
    )


def _of_length(values: Column, name: str, n: int) -> Sequence[Any]:
    entries = column(values, name)
    if len(entries) != n:
        raise ValueError(f"{name}: {len(entries)} entries, but {n} labels; expected one entry a sample")
    return entries


def _known(value: object) -> bool:
    return isinstance(value, bool | int | float | str) and value in _IS_MISBEHAVIOR


def _flag(value: Any, name: str, at: int) -> bool:
    if not _known(value):
        why = "; a sample without an answer is None" if isinstance(value, float) and isnan(value) else ""
        raise ValueError(f"{name}[{at}]: {_short(value)} is no label; {_LABELS}{why}")
    return _IS_MISBEHAVIOR[value]


def _score(value: Any, name: str, at: int) -> float:
    if value is None:
        return np.nan
    if isinstance(value, bool | str) or not isinstance(value, int | float):
        raise ValueError(f"{name}[{at}]: {_short(value)} is no number; expected a score, or None for none")
    if isnan(value) or isinf(value):
        raise ValueError(f"{name}[{at}]: {value} is no score; where a sample has none, expected None")
    return float(value)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


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
