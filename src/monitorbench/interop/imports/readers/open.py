"""Which reader a file has, and all files of an import as one table.

Promises: the columns are the files' own, nested fields under dotted names (`scores.gpt`); every row can be
said in words (`Read.where`), so that what is wrong with it can be found.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.imports import Import
from monitorbench.interop.imports.readers import delimited, json_lines, parquet
from monitorbench.interop.imports.readers.chat_columns import chats_as_text
from monitorbench.interop.inspect import read as inspect
from monitorbench.metrics.bootstrap import IntArray
from monitorbench.runs.files import file_sha256
from monitorbench.sources.files.inspect_archive import NO_LOGS


@dataclass(frozen=True)
class FileFormat:
    """How one kind of file is read."""

    suffixes: tuple[str, ...]
    read: Callable[[Path], pa.Table]
    """Raw columns under the file's own names."""
    line: Callable[[Path, int], str]
    """Where a row of that table is, in words."""
    rows: Callable[[Path, Sequence[str]], Iterable[Mapping[str, Any]]] | None = None
    """Rows with at least these fields, each as the file has it; None where all values are plain."""


FORMATS = {
    "csv": FileFormat(delimited.SUFFIXES, delimited.read, delimited.line),
    "jsonl": FileFormat(json_lines.SUFFIXES, json_lines.read, json_lines.line, json_lines.rows),
    "parquet": FileFormat(parquet.SUFFIXES, parquet.read, parquet.line, parquet.rows),
    "inspect": FileFormat(inspect.SUFFIXES, inspect.read, inspect.line),
}


@dataclass(frozen=True)
class ImportedFiles:
    """The files' rows."""

    table: pa.Table
    files: tuple[Path, ...]
    sha256: tuple[str, ...]
    """One a file."""
    formats: tuple[str, ...]
    ends: tuple[int, ...]
    """How many rows there are up to the end of each file."""
    rows: IntArray
    """[rows of the table]: the row of the files that each is of, where one became several."""

    def where(self, row: int) -> str:
        """A row of the table as a person finds it: `scores.csv, line 17`."""
        of_all = int(self.rows[row])
        at = next(i for i, end in enumerate(self.ends) if of_all < end)
        before = self.ends[at - 1] if at else 0
        return f"{self.files[at]}, {FORMATS[self.formats[at]].line(self.files[at], of_all - before)}"

    def taking(self, table: pa.Table, rows: IntArray) -> "ImportedFiles":
        """The same files as another table, whose rows are of these rows of this one."""
        return ImportedFiles(table, self.files, self.sha256, self.formats, self.ends, self.rows[rows])


def read_files(files: Sequence[Path], settings: Import) -> ImportedFiles:
    """Read one file, or several of one form, in their order.

    Raises `ConfigError` where none is given or an ending says nothing, `UserError` where one can't be read,
    or where the files have no row at all.
    """
    if not files:
        raise ConfigError(
            "from=[]: no file given; expected from=FILE, a CSV, JSON lines, Parquet or Inspect file"
        )
    files = [found for file in files for found in _files_of(file)]
    formats = [format_of(file, settings.format) for file in files]
    tables = [_flat(_read(file, FORMATS[kind], settings)) for kind, file in zip(formats, files, strict=True)]
    ends = np.cumsum([one.num_rows for one in tables]).tolist()
    if not ends[-1]:
        raise UserError(f"{files[0]}: no row in it; expected a row a score")
    try:
        table = tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        reason = " ".join(str(error).split())[:120]
        raise UserError(f"from=[{','.join(map(str, files))}]: columns of unlike kinds ({reason})") from error
    return ImportedFiles(
        table,
        tuple(files),
        tuple(file_sha256(one) for one in files),
        tuple(formats),
        tuple(ends),
        np.arange(ends[-1]),
    )


def _files_of(given: Path) -> list[Path]:
    """The file itself; of a folder all files below it of a known ending, of a pattern those that fit."""
    if given.is_file():
        return [given]
    if given.is_dir():
        known = tuple(end for kind in FORMATS.values() for end in kind.suffixes)
        below = (file for file in given.rglob("*") if file.name.lower().endswith(known))
        if files := sorted(file for file in below if file.is_file() and file.name not in NO_LOGS):
            return files
        raise UserError(
            f"from={given}: a folder without a file to import; expected {', '.join(known)} below it"
        )
    if "*" in given.name and (
        files := sorted(file for file in given.parent.glob(given.name) if file.is_file())
    ):
        return files
    raise UserError(f"from={given}: no such file; expected a CSV, JSON lines, Parquet or Inspect file")


def _read(file: Path, kind: FileFormat, settings: Import) -> pa.Table:
    table = kind.read(file)
    if kind.rows is None:
        return table
    return chats_as_text(table, partial(kind.rows, file), settings.actions)


def format_of(file: Path, asked: str) -> str:
    """The name of a format: what was asked for, or by the ending; a JSON array is read as JSON lines are."""
    if asked != "auto":
        return asked
    if json_lines.is_array(file):
        return "jsonl"
    for name, kind in FORMATS.items():
        if file.name.lower().endswith(kind.suffixes):
            return name
    endings = ", ".join(end for kind in FORMATS.values() for end in kind.suffixes)
    raise ConfigError(
        f"from={file}: no ending that says what it is; expected one of {endings}, or "
        f"import.format={'|'.join(FORMATS)}"
    )


def flat(table: pa.Table) -> pa.Table:
    """Fields of objects as columns of their own; columns of which several have one name are left out.

    Their names are in the schema's metadata (`clashing`), for the message to who asks for one.
    """
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    counts = Counter(table.column_names)
    twice = sorted(name for name, n in counts.items() if n > 1)
    if not twice:
        return table
    table = table.select([i for i, name in enumerate(table.column_names) if counts[name] == 1])
    return table.replace_schema_metadata({"clashing": json.dumps([*clashing(table), *twice])})


def clashing(table: pa.Table) -> list[str]:
    """Names that several columns of the file have, so that none of these was read."""
    return list(json.loads((table.schema.metadata or {}).get(b"clashing", b"[]")))


def _flat(table: pa.Table) -> pa.Table:
    """Fields of objects as columns of their own, `outer.inner`."""
    table = flat(table)
    # Categories of data frames are their values.
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, pc.cast(table.column(i), field.type.value_type))
    return table
