"""Readers by file format, and all files of an import as one table.

Promises: the columns are the files' own, nested fields under dotted names (`scores.gpt`); every row can be
said in words (`ImportedFiles.where`), so that what is wrong with it can be found. A sample of an Inspect log
that ended in an error, or is marked as invalid, counts nowhere unless a setting takes it (`usable_rows`).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.imports import Import
from monitorbench.interop.imports.readers.columnar import csv_line, read_csv, read_parquet
from monitorbench.interop.imports.readers.table import ReadTable, WantedColumns, built
from monitorbench.interop.inspect import read as inspect
from monitorbench.metrics.bootstrap import IntArray
from monitorbench.runs.files import file_sha256
from monitorbench.sources.files.inspect_archive import NO_LOGS, has_header
from monitorbench.untrusted import DELIMITED, JSON, PARQUET, TABLES, refuse_links_out, where_looked
from monitorbench.untrusted_rows import head, json_rows


@dataclass(frozen=True)
class FileFormat:
    """Reader of one kind of file."""

    suffixes: tuple[str, ...]
    read: Callable[[Path, WantedColumns], ReadTable]
    """The wanted columns under the file's own names."""
    line: Callable[[Path, int, str], str]
    """Place of a row of that table, in words; the last argument is `import.rows`."""


def _json_place(file: Path, row: int, list_at: str) -> str:
    return next((place for place, _ in islice(json_rows(file, list_at), row, None)), f"row {row + 1}")


def _read_json(file: Path, wanted: WantedColumns) -> ReadTable:
    return built(file, json_rows(file, wanted.list_at), wanted)


FORMATS = {
    "csv": FileFormat(DELIMITED, read_csv, lambda file, row, _: csv_line(file, row)),
    "jsonl": FileFormat(JSON, _read_json, _json_place),
    "parquet": FileFormat(PARQUET, read_parquet, lambda _, row, __: f"row {row + 1}"),
    "inspect": FileFormat(inspect.SUFFIXES, inspect.read_log, lambda _, row, __: f"sample {row + 1}"),
}
FILE = "file"
"""Column with the file's name, without its endings, where no column of a file is called so."""


@dataclass(frozen=True)
class ImportedFiles:
    """The files' rows, as far as somebody asks for them."""

    table: pa.Table
    files: tuple[Path, ...]
    sha256: tuple[str, ...]
    """One a file."""
    formats: tuple[str, ...]
    ends: tuple[int, ...]
    """Number of rows up to the end of each file."""
    rows: IntArray
    """[rows of the table]: the row of the files that each is of, where one became several."""
    present: tuple[str, ...]
    """Names of all columns, those that nobody asked for among them."""
    clashing: frozenset[str]
    """Names that several columns of a file have, so that none of these was read."""
    missing: tuple[str, ...]
    """Words for a value that is not there, in lower case."""
    list_at: str = ""
    """The list of each object whose entries are the rows (`import.rows`); "" where objects are rows."""

    def facts(self) -> list[dict[str, str]]:
        """Return what a manifest says of each file: name, hash, format; of a log how its run ended."""
        facts = []
        for file, digest, kind, end in zip(self.files, self.sha256, self.formats, self.ends, strict=True):
            facts.append({"name": file.name, "sha256": digest, "format": kind})
            if kind == "inspect":
                facts[-1]["status"] = self.table["status"][end - 1].as_py()
        return facts

    def file_of(self, row: int) -> int:
        """Return the index of the file that a row of the table is of."""
        of_all = int(self.rows[row])
        return next(i for i, end in enumerate(self.ends) if of_all < end)

    def rows_of(self, name: str) -> IntArray:
        """The rows of the table that are of files of this name."""
        wanted = [i for i, file in enumerate(self.files) if stem_of(file) == name]
        return np.flatnonzero(np.isin(np.searchsorted(self.ends, self.rows, side="right"), wanted))

    def with_column(self, name: str, values: pa.Array) -> "ImportedFiles":
        """Return these files with one more column."""
        return replace(self, table=self.table.append_column(name, values), present=(*self.present, name))

    def where(self, row: int) -> str:
        """A row of the table as a person finds it: `scores.csv, line 17`."""
        number = self.file_of(row)
        of_file = int(self.rows[row]) - (self.ends[number - 1] if number else 0)
        file, line = self.files[number], FORMATS[self.formats[number]].line
        return f"{file}, {line(file, of_file, self.list_at)}"

    def taking(self, table: pa.Table, rows: IntArray) -> "ImportedFiles":
        """Return these files as another table, whose rows are of these rows of this one."""
        return replace(self, table=table, rows=self.rows[rows])


def read_files(files: Sequence[Path], settings: Import, wanted: WantedColumns | None = None) -> ImportedFiles:
    """Read one file, or several of one form, in their order; `wanted` are other columns than an import's.

    Raises `ConfigError` where none is given or an ending says nothing, `UserError` where one can't be read,
    or where the files have no row at all.
    """
    if not files:
        raise ConfigError(
            "from=[]: no file given; expected from=FILE, a CSV, JSON lines, Parquet or Inspect file"
        )
    files = [path for file in files for path in _files_of(file)]
    formats = [format_of(file, "jsonl" if settings.rows else settings.format) for file in files]
    if settings.unusable == "leave_out":
        for kind, file in zip(formats, files, strict=True):
            _refuse_unread_marks(file, kind)
    wanted = wanted_columns(settings) if wanted is None else wanted
    read = [FORMATS[kind].read(file, wanted) for kind, file in zip(formats, files, strict=True)]
    present = tuple(dict.fromkeys(name for source in read for name in source.present))
    tables = _of_one_kind([source.table for source in read])
    ends = np.cumsum([source.num_rows for source in tables]).tolist()
    if not ends[-1]:
        raise UserError(f"{files[0]}: no row in it; expected a row a score")
    try:
        table = tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        reason = " ".join(str(error).split())[:120]
        raise UserError(f"from=[{','.join(map(str, files))}]: columns of unlike kinds ({reason})") from error
    if FILE in wanted and FILE not in present:
        names = pa.array([stem_of(file) for file in files])
        of_row = np.repeat(np.arange(len(files)), np.diff([0, *ends]))
        table, present = table.append_column(FILE, names.take(pa.array(of_row))), (*present, FILE)
    return ImportedFiles(
        table,
        tuple(files),
        tuple(file_sha256(source) for source in files),
        tuple(formats),
        tuple(ends),
        np.arange(ends[-1]),
        present,
        frozenset().union(*(source.clashing for source in read)),
        tuple(lowered(pa.array(settings.missing_values, pa.string())).to_pylist()),
        settings.rows,
    )


def _refuse_unread_marks(file: Path, kind: str) -> None:
    """Raise `ConfigError` for an Inspect log that is to be read as any other JSON, its marks unseen."""
    if kind == "jsonl" and file.name.lower().endswith(inspect.SUFFIXES[1:]) and has_header(file):
        raise ConfigError(
            f"from={file}: an Inspect log, whose samples may be marked as invalid, read as other JSON; "
            "expected import.rows='' and import.format=auto, which leave these out, or import.unusable=take"
        )


def _of_one_kind(tables: Sequence[pa.Table]) -> list[pa.Table]:
    """The tables, with text in each column that is text in one of them and numbers in another."""
    texts = {field.name for table in tables for field in table.schema if field.type == pa.string()}
    return [
        table.cast(
            pa.schema(
                field.with_type(pa.string())
                if field.name in texts and not pa.types.is_nested(field.type)
                else field
                for field in table.schema
            )
        )
        for table in tables
    ]


def lowered(words: pa.Array) -> pa.Array:
    """The texts in lower case: words of settings and of files alike, so that `ß` is itself in both."""
    return pc.utf8_lower(words)


def stem_of(file: Path) -> str:
    """The file's name without its endings: `gpt-4.1` of `gpt-4.1.csv.gz`."""
    endings = sorted((e for e in TABLES if file.name.lower().endswith(e)), key=len)
    return file.name[: -len(endings[-1])] if endings else file.stem


def wanted_columns(settings: Import, also: Sequence[str] = ()) -> WantedColumns:
    """The columns that the settings ask for, those of usual names, and `also` these."""
    usual = [name for names in settings.columns.looked_for().values() for name in names]
    before = ["", *(f"{action}." for action in settings.actions)]
    monitors = (settings.monitors or {}).values()
    spoken = [settings.columns.request or "request", settings.columns.response or "response"]
    return WantedColumns(
        [
            *settings.columns.named().values(),
            *(name for names in settings.columns.joined().values() for name in names),
            *monitors,
            *(name.partition("/")[2] for name in monitors),
            *settings.where,
            *also,
            *(f"{prefix}{name}" for prefix in before for name in usual),
            "unusable",
            "status",
        ],
        settings.actions,
        settings.rows,
        [f"{prefix}{name}" for prefix in before for name in spoken],
    )


def _files_of(given: Path) -> list[Path]:
    """The file itself; of a folder all files below it of a known ending, of a pattern those that fit."""
    if given.is_file():
        return [given]
    pattern = str(given.relative_to(given.anchor))
    if given.is_dir():
        suffixes = tuple(dict.fromkeys(end for kind in FORMATS.values() for end in kind.suffixes))
        below = (file for file in given.rglob("*") if file.name.lower().endswith(suffixes))
        if files := _data_files(below):
            for file in files:
                refuse_links_out(given, file)
            return files
        raise UserError(
            f"from={given}: a folder without a file to import; expected {', '.join(suffixes)} below it"
        )
    if "*" in pattern and (files := _data_files(Path(given.anchor or ".").glob(pattern))):
        return files
    raise UserError(
        f"from={given}: no such file{where_looked(given)}; "
        "expected a CSV, JSON lines, Parquet or Inspect file"
    )


def _data_files(files: Iterable[Path]) -> list[Path]:
    return sorted(file for file in files if file.is_file() and file.name not in NO_LOGS)


def format_of(file: Path, asked: str) -> str:
    """The name of a format: what was asked for, or by the ending; a JSON array is read as JSON lines are."""
    if asked != "auto":
        return asked
    if file.name.lower().endswith(inspect.SUFFIXES[1:]):
        beginning = head(file)
        is_log = b'"eval"' in beginning or (b'"samples"' in beginning and has_header(file))
        return "inspect" if is_log else "jsonl"
    for name, kind in FORMATS.items():
        if file.name.lower().endswith(kind.suffixes):
            return name
    if file.suffix.lower() in (".xlsx", ".xls", ".ods"):
        raise ConfigError(f"from={file}: a spreadsheet; expected its sheet, saved as CSV in UTF-8")
    endings = ", ".join(dict.fromkeys(end for kind in FORMATS.values() for end in kind.suffixes))
    raise ConfigError(
        f"from={file}: no ending that says what it is; expected one of {endings}, or "
        f"import.format={'|'.join(FORMATS)}"
    )


UNUSABLE = "unusable"
"""Column of a log's rows with the reason, null where a sample tells something."""


class UsableRows(NamedTuple):
    """Rows of files without those that their log gives up."""

    read: ImportedFiles
    left_out: IntArray
    """The rows, of the table before, that are left out."""
    first: str
    """Why the first of them is; "" where none is."""


def usable_rows(read: ImportedFiles, remedy: str) -> UsableRows:
    """Leave out the rows of Inspect logs whose sample tells nothing; rows of other files all stay.

    Raises `UserError`, which ends in `remedy`, where none is left.
    """
    logs = [i for i, kind in enumerate(read.formats) if kind == "inspect"]
    if not logs:
        return UsableRows(read, np.arange(0), "")
    reasons = read.table.column(UNUSABLE)
    is_of_log = np.isin(np.searchsorted(read.ends, read.rows, side="right"), logs)
    is_left_out = is_of_log & pc.is_valid(reasons).to_numpy()
    left_out, rows = np.flatnonzero(is_left_out), np.flatnonzero(~is_left_out)
    if not len(left_out):
        return UsableRows(read, left_out, "")
    first = str(reasons[int(left_out[0])].as_py())
    if not len(rows):
        raise UserError(f"{read.where(0)}: {first}, as all {len(left_out)} samples; expected {remedy}")
    return UsableRows(read.taking(read.table.take(rows), rows), left_out, first)
