"""Rows of any shape as a table of the columns that are asked for, nested fields under dotted names.

Promises: a column that nobody asked for costs no more than its name; what a cell holds does not depend on
other rows, but that a column of unlike things is text; a conversation is JSON text, with all of its fields.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from monitorbench.config.base import UserError
from monitorbench.conversations.chats import resembles_chat
from monitorbench.sources.read import BadRow, encodable
from monitorbench.strict_json import as_json
from monitorbench.untrusted import ForeignRow, in_time

MAX_COLUMNS = 1000
"""Most columns that an import reads of one file."""


class WantedColumns:
    """Names of the columns that are asked for; `outer.*` asks for all below `outer`, `*` for every column."""

    def __init__(
        self,
        names: Iterable[str],
        lists: Collection[str] = (),
        list_at: str = "",
        whole: Collection[str] = (),
    ) -> None:
        """`lists` are columns with an entry per step, of which only the wanted fields are read.

        The entries of the list `list_at` in each object of a JSON file are the rows; "" where objects are. An
        object in a column of `whole` is kept as its JSON, whatever it is: nobody knows each form of a chat.
        """
        wanted = (*names, *lists)
        self.names = frozenset(name for name in wanted if not name.endswith("*"))
        self.lists, self.list_at, self.whole = frozenset(lists), list_at, frozenset(whole)
        parts = [name.split(".") for name in self.names]
        self.indexed = frozenset(
            ".".join(path[:i]) for path in parts for i, key in enumerate(path) if key.isdigit()
        )
        """Names of lists of which an entry is asked for, as in `choices.0.message`."""
        self._below = tuple(name[:-1] for name in wanted if name.endswith("*"))

    def __contains__(self, name: str) -> bool:
        """Whether a column is asked for."""
        return name in self.names or name.startswith(self._below)

    def holds(self, field: str) -> bool:
        """Whether a field is asked for, or anything inside it."""
        return field in self or any(name.startswith(f"{field}.") for name in (*self.names, *self._below))


EVERYTHING = WantedColumns(["*"])


class ReadTable(NamedTuple):
    """Columns that a reader found in a file."""

    table: pa.Table
    """The columns that were asked for."""
    present: tuple[str, ...]
    """Names of all columns of the file."""
    clashing: frozenset[str] = frozenset()
    """Names that two columns have, so that neither was read."""


class _Object(str):
    """The JSON of an object, for a column in which other rows hold something else."""


class TableBuilder:
    """Takes rows one by one and gives their table."""

    def __init__(self, wanted: WantedColumns, nothing: str | None = None) -> None:
        """`nothing` is a word that stands for no value in a column of numbers."""
        self._wanted, self._nothing = wanted, nothing
        self._columns: dict[str, list[Any] | None] = {}
        """By name the values so far, None where nobody asked for them."""
        self._of_entries: dict[str, None] = {}
        self._clashing: set[str] = set()
        self.n_rows = 0

    def add(self, fields: Mapping[str, Any]) -> None:
        """Take a row; raises `BadRow` where a value can't be stored."""
        n = self.n_rows
        try:
            for name, value in self._leaves(fields):
                column = self._columns.get(name)
                if column is None:
                    if name in self._columns or name not in self._wanted:
                        self._columns[name] = None
                        continue
                    column = self._columns[encodable(name, "a name")] = []
                    if len(self._columns) - list(self._columns.values()).count(None) > MAX_COLUMNS:
                        raise BadRow(f"more than {MAX_COLUMNS} columns are asked for; name those to read")
                if len(column) > n:
                    self._clashing.add(name)
                    continue
                if len(column) < n:
                    column.extend([None] * (n - len(column)))
                column.append(self._cell(name, value))
        except RecursionError as error:
            raise BadRow("nested too deeply; flatten it") from error
        self.n_rows += 1

    def finish(self) -> ReadTable:
        """Return the table of all rows so far."""
        clashing = self._clashing | (self._columns.keys() & self._of_entries.keys())
        columns, present = {}, []
        for name, values in self._columns.items():
            if values is not None and {type(value) for value in values if value is not None} == {_Object}:
                continue  # its fields are columns of their own
            present.append(name)
            if values is not None and name not in clashing:
                values.extend([None] * (self.n_rows - len(values)))
                columns[name] = _column(values, self._nothing)
        table = pa.table(columns) if columns else pa.table({"": pa.nulls(self.n_rows)})
        return ReadTable(table, (*present, *self._of_entries), frozenset(clashing))

    def _leaves(self, fields: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
        """Each value that is no object under its dotted name; an object as well where it is asked for."""
        names = self._wanted.names
        pending = [(f"{prefix}{key}", value) for key, value in reversed([*fields.items()])]
        while pending:
            name, value = pending.pop()
            if isinstance(value, Mapping):
                if name in names:
                    if name in self._wanted.whole or resembles_chat(value):
                        yield name, as_json(value)
                        if not any(other.startswith(f"{name}.") for other in names):
                            continue
                    else:
                        yield name, _Object(as_json(value))
                pending += [(f"{name}.{key}", inner) for key, inner in reversed([*value.items()])]
            else:
                if isinstance(value, list) and name in self._wanted.indexed:
                    pending += [(f"{name}.{i}", inner) for i, inner in reversed([*enumerate(value)])]
                yield name, value

    def _cell(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            return encodable(value, f"field {name!r}")
        if not isinstance(value, list):
            return value
        if name in self._wanted.lists:
            return [self._entry(f"{name}.", entry) for entry in value]
        if any(isinstance(entry, Mapping | list) for entry in value):
            return as_json(value)
        return value

    def _entry(self, prefix: str, entry: Any) -> Any:
        if not isinstance(entry, Mapping):
            return entry
        cells = {}
        for name, value in self._leaves(entry, prefix):
            self._of_entries[name] = None
            if name in self._wanted:
                if name in cells:
                    self._clashing.add(name)
                cells[name] = self._cell(name, value)
        return {name.removeprefix(prefix): value for name, value in cells.items()}


def _column(values: list[Any], nothing: str | None) -> pa.Array:
    """The values in the narrowest type that holds them all, each digit of an integer; else as text.

    A flag is no number: pyarrow would make it one behind a number.
    """
    values = _flags_apart(values)
    try:
        if not _mixes_flags(values):
            return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        pass
    present = [value for value in values if value is not None and value != nothing]
    if all(isinstance(value, float) or (type(value) is int and abs(value) <= 2**53) for value in present):
        return pa.array(
            [None if value is None or value == nothing else float(value) for value in values], pa.float64()
        )
    if draws := _draws(present):
        drawn = iter(draws)
        return pa.array([None if value is None else next(drawn) for value in values], pa.list_(pa.string()))
    return pa.array(
        [value if value is None or isinstance(value, str) else as_json(value) for value in values],
        pa.string(),
    )


def _mixes_flags(values: Iterable[Any]) -> bool:
    """Whether there are flags among other values, or among those in the lists that the values are."""
    values = list(values)
    kinds = set(map(type, values)) - {type(None)}
    if bool in kinds:
        return len(kinds) > 1
    return list in kinds and _mixes_flags(
        entry for value in values if isinstance(value, list) for entry in value
    )


def _flags_apart(values: list[Any]) -> list[Any]:
    """The values; where they are lists of objects, with text in each field with flags among other values."""
    if not all(value is None or isinstance(value, list) for value in values):
        return values
    fields: dict[str, list[Any]] = {}
    for value in values:
        for entry in value or ():
            for name, inner in entry.items() if isinstance(entry, dict) else ():
                fields.setdefault(name, []).append(inner)
    if not (mixed := {name for name, inner in fields.items() if _mixes_flags(inner)}):
        return values
    return [value and [_as_texts(entry, mixed) for entry in value] for value in values]


def _as_texts(entry: Any, names: Collection[str]) -> Any:
    if not isinstance(entry, dict):
        return entry
    return {
        name: value if name not in names or value is None or isinstance(value, str) else as_json(value)
        for name, value in entry.items()
    }


def _draws(present: Sequence[object]) -> list[list[str | None]]:
    """Lists of numbers, some of them text, flags or alone, each as a list of texts; nothing for others."""
    lists = [value if isinstance(value, list) else [value] for value in present]
    entries = [entry for of in lists for entry in of if entry is not None]
    are_scalars = all(type(entry) in (int, float, str, bool) for entry in entries)
    if not are_scalars or not any(type(entry) in (int, float) for entry in entries):
        return []
    if not any(isinstance(value, list) for value in present):
        return []
    return [[None if e is None else e if isinstance(e, str) else as_json(e) for e in of] for of in lists]


def built(file: Path, rows: Iterable[ForeignRow], wanted: WantedColumns) -> ReadTable:
    """Return the table of a file's rows; `UserError` names the place of a bad one."""
    builder = TableBuilder(wanted)
    for place, row in in_time(file, rows):
        try:
            builder.add(row)
        except BadRow as error:
            raise UserError(f"{file}, {place}: {error}") from error
    return builder.finish()
