"""Raw files row by row: found, checked, decoded; a bad row is an error or a counted, logged skip.

`SourceFiles` is what an adapter is handed. It finds each file (local mirror first, then the download
of `fetch`), refuses a wrong checksum or a truncated archive, and yields rows with their place, so that
whatever is wrong is said in one line: source, file, line, what, what to do.
"""

import csv
import gzip
import hashlib
import io
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import pyarrow as pa

from monitorbench import strict_json, untrusted
from monitorbench.config.base import UserError
from monitorbench.config.sources import Source, SourceFile
from monitorbench.conversations.read import NoChat
from monitorbench.sources.archive import BROKEN, members_sha256, regular_files
from monitorbench.untrusted_csv import RowLines, layout
from monitorbench.untrusted_parquet import parquet_batches

_log = logging.getLogger(__name__)

OnBadRow = Literal["error", "skip"]
MAX_LINE_BYTES = 8 * 1024 * 1024
"""A longer line is a bad row: it is no sample, and reading it whole would cost its size many times over."""

SKIPPED_BY_SETTING = "fix it, or pass over such rows with dataset.on_bad_row=skip"
_LOGGED_PER_FILE = 5
_CHUNK = 1 << 20
T = TypeVar("T")


class BadRow(ValueError):
    """A row that can't be used; the text says what is wrong with it."""


class RawFile(NamedTuple):
    """A file that is there: its place on disk, and the config that names it."""

    path: Path
    config: SourceFile


class SourceFiles:
    """The raw files of one source, and how many of their rows were bad."""

    def __init__(
        self,
        name: str,
        source: Source,
        files: tuple[RawFile, ...],
        on_bad_row: OnBadRow,
        remedy: str = SKIPPED_BY_SETTING,
    ) -> None:
        """Hold files that were found; `fetch.find` makes this. `remedy` ends the error for a bad row."""
        self.name, self.source, self.on_bad_row, self._remedy = name, source, on_bad_row, remedy
        self._files = files
        self.bad_rows: Counter[str] = Counter()
        self.run_statuses: dict[str, str] = {}
        """How the run of each log that was read ended, by the log's name."""
        self._ids: set[str] = set()

    def matching(self, part: str = "") -> list[RawFile]:
        """The files whose name has `part` in it, in the config's order."""
        return [file for file in self._files if part in (file.config.path or file.config.mirror)]

    def only(self, is_one: Callable[[Path], bool]) -> "SourceFiles":
        """The files whose path passes `is_one`, with the same counts of bad rows and the same ids seen."""
        files = tuple(file for file in self._files if is_one(file.path))
        subset = SourceFiles(self.name, self.source, files, self.on_bad_row, self._remedy)
        subset.bad_rows, subset._ids = self.bad_rows, self._ids
        subset.run_statuses = self.run_statuses
        return subset

    def check(self) -> None:
        """Compare every file with its checksum; `UserError` where one differs or breaks off."""
        for file in self._files:
            if not file.config.sha256:
                continue
            if (digest := self.sha256(file)) != file.config.sha256:
                raise UserError(
                    f"{self.name}: {file.path}: sha256 is {digest[:12]}…, expected "
                    f"{file.config.sha256[:12]}… (conf/source/{self.name}.yaml); fetch the file again"
                )

    def identity(self) -> dict[str, Any]:
        """Identity of the files in a dataset's hash: name, revision and each file's SHA-256, in order.

        The checksum is the config's, or where that is empty the file's own. Nothing in it depends on where a
        file lies; `UserError` where one breaks off.
        """
        digests = [file.config.sha256 or self.sha256(file) for file in self._files]
        return {"name": self.name, "revision": self.source.revision, "files": digests}

    def sha256(self, file: RawFile) -> str:
        """Compute the SHA-256 that a file's config would state: unpacked, so that a mirror may compress."""
        return self._members_sha256(file) if file.config.members else self._content_sha256(file)

    def opened(self, file: RawFile) -> io.BufferedReader:
        """The file's bytes, unpacked where its name says so."""
        zipped = file.path.suffix == ".gz" and not _is_tar(file.path)
        if zipped and not file.path.stat().st_size:
            raise UserError(f"{self.name}: {file.path}: breaks off at its beginning; fetch it again")
        return file.path.open("rb") if _is_tar(file.path) else untrusted.opened(file.path)

    def jsonl(self, part: str, parse: Callable[[Mapping[str, Any]], T | None]) -> Iterator[T]:
        """Parse each line of the JSON-lines files that match; None from `parse` passes a row over."""
        for file in self.matching(part):
            for number, line in untrusted.in_time(file.path, self._lines(file)):
                if line.strip():
                    yield from self._parsed(file, f"line {number}", line, parse)

    def json(self, part: str, parse: Callable[[Mapping[str, Any]], T | None]) -> Iterator[T]:
        """Parse each element of the JSON arrays that match."""
        for file in self.matching(part):
            with self.opened(file) as stream:
                text = b"".join(untrusted.in_time(file.path, self._chunks(file, stream)))
            try:
                rows = strict_json.loads(text)
            except ValueError as error:
                raise UserError(
                    f"{self.name}: {file.path}: no JSON ({error}); fetch the file again"
                ) from error
            if not isinstance(rows, list):
                raise UserError(f"{self.name}: {file.path}: expected a JSON array of rows")
            for number, row in enumerate(rows):
                yield from self._parsed(file, f"element {number}", row, parse)

    def csv(self, part: str, parse: Callable[[Mapping[str, Any]], T | None]) -> Iterator[T]:
        """Parse each row of the CSV files that match; a byte-order mark is no part of the first column.

        Raises `UserError` for a quote that hides rows inside a field, whatever `on_bad_row` says.
        """
        for file in self.matching(part):
            delimiter, n_before = layout(file.path)
            csv.field_size_limit(MAX_LINE_BYTES)
            reached = [0]  # the reader counts the lines that it is given, not those that were passed over
            decoded = islice(self._decoded_lines(file, reached), n_before, None)
            lines = RowLines(file.path, decoded, delimiter)
            reader = csv.DictReader(lines, delimiter=delimiter)
            is_named = False
            while True:
                try:
                    if not is_named and reader.fieldnames is not None:
                        lines.row_ends(reached[0])
                        is_named = True
                    row = next(reader, None)
                except csv.Error as error:
                    lines.row_breaks_off()
                    self.bad(f"{file.path.name} line {reached[0]}", f"not CSV: {_one_line(error)}")
                    continue
                if row is None:
                    break
                lines.row_ends(reached[0])
                yield from self._parsed(file, f"line {reached[0]}", row, parse)

    def parquet(self, part: str, parse: Callable[[Mapping[str, Any]], T | None]) -> Iterator[T]:
        """Parse each row of the Parquet files that match."""
        for file in self.matching(part):
            try:
                number = 0
                for batch in parquet_batches(file.path):
                    for row in batch.to_pylist():
                        number += 1
                        yield from self._parsed(file, f"row {number}", row, parse)
            except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
                raise UserError(
                    f"{self.name}: {file.path}: no Parquet ({_one_line(error)}); fetch the file again"
                ) from error

    def tar(self, part: str) -> Iterator[tuple[str, bytes]]:
        """The regular files of the tar and zip archives that match, by name, in the archive's order."""
        for file in self.matching(part):
            try:
                yield from regular_files(file.path)
                self._read_through(file)
            except BROKEN as error:
                raise UserError(
                    f"{self.name}: {file.path}: broken archive ({_one_line(error)}); fetch it again"
                ) from error

    def bad(self, where: str, what: str) -> None:
        """Report a row that can't be used: raise `UserError`, or count and log it, as `on_bad_row` says."""
        if self.on_bad_row == "error":
            raise UserError(f"{self.name}: {where}: {what}; {self._remedy}")
        self.bad_rows[what.split(":")[0]] += 1
        if sum(self.bad_rows.values()) <= _LOGGED_PER_FILE:
            _log.warning("%s: %s: %s; row passed over", self.name, where, what)

    def unique(self, where: str, id_: str) -> bool:
        """Whether an id is new in this source; a repeated one is a bad row."""
        if id_ in self._ids:
            self.bad(where, f"duplicate id: {id_}")
            return False
        self._ids.add(id_)
        return True

    def _parsed(
        self,
        file: RawFile,
        where: str,
        raw: Any,
        parse: Callable[[Mapping[str, Any]], T | None],
    ) -> Iterator[T]:
        try:
            row = strict_json.loads(raw) if isinstance(raw, bytes) else raw
            if not isinstance(row, Mapping):
                raise BadRow("not an object with fields")
            record = parse(row)
        except (BadRow, NoChat) as error:
            self.bad(f"{file.path.name} {where}", str(error))
            return
        except (ValueError, RecursionError) as error:
            self.bad(f"{file.path.name} {where}", f"not valid: {_one_line(error)}")
            return
        if record is None:
            return
        id_ = getattr(record, "id", None)
        if id_ is None or self.unique(f"{file.path.name} {where}", id_):
            yield record

    def _lines(self, file: RawFile) -> Iterator[tuple[int, bytes]]:
        """Lines with their numbers; one that is too long is passed over piece by piece."""
        with self.opened(file) as stream:
            number = 0
            try:
                while line := stream.readline(MAX_LINE_BYTES):
                    number += 1
                    if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n") and stream.peek(1):
                        while (piece := stream.readline(_CHUNK)) and not piece.endswith(b"\n"):
                            pass
                        self.bad(f"{file.path.name} line {number}", f"longer than {MAX_LINE_BYTES} bytes")
                        continue
                    yield number, line
            except untrusted.BrokenFile as error:
                raise UserError(
                    f"{self.name}: {file.path}: breaks off after line {number} ({error.__cause__}); "
                    "fetch it again"
                ) from error

    def _content_sha256(self, file: RawFile) -> str:
        digest = hashlib.sha256()
        with self.opened(file) as stream:
            for chunk in self._chunks(file, stream):
                digest.update(chunk)
        return digest.hexdigest()

    def _members_sha256(self, file: RawFile) -> str:
        try:
            return members_sha256(file.path, file.config.members)
        except BROKEN as error:
            raise UserError(
                f"{self.name}: {file.path}: broken archive ({_one_line(error)}); fetch it again"
            ) from error

    def _chunks(self, file: RawFile, stream: io.BufferedReader) -> Iterator[bytes]:
        try:
            while chunk := stream.read(_CHUNK):
                yield chunk
        except untrusted.BrokenFile as error:
            reason = error.__cause__
            raise UserError(f"{self.name}: {file.path}: breaks off ({reason}); fetch it again") from error

    def _decoded_lines(self, file: RawFile, reached: list[int]) -> Iterator[str]:
        """Lines as text; notes in `reached[0]` which one was given last."""
        for number, line in untrusted.in_time(file.path, self._lines(file)):
            try:
                decoded = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                where = f"{file.path.name} line {number}"
                self.bad(where, f"not UTF-8: {error.reason} at byte {error.start}")
                continue
            reached[0] = number
            yield decoded

    def _read_through(self, file: RawFile) -> None:
        """Read a compressed archive to its end: the checksum that tells of damage comes last."""
        if file.path.name.endswith((".gz", ".tgz")):
            with gzip.open(file.path) as stream:
                while stream.read(_CHUNK):
                    pass


def text(row: Mapping[str, Any], field: str) -> str:
    """A field that has to be text; `BadRow` where it is missing or something else."""
    if field not in row:
        raise BadRow(f"missing field {field!r}")
    value = row[field]
    if not isinstance(value, str):
        raise BadRow(f"field {field!r} is not text")
    return encodable(value, f"field {field!r}")


def encodable(text: str, where: str) -> str:
    """Return the text, or raise `BadRow` where it can't be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadRow(f"{where}: half a surrogate pair at character {error.start}; no valid text") from error
    return text


def filled(row: Mapping[str, Any], field: str) -> str:
    """A field that has to be text with something in it; `BadRow` otherwise."""
    value = text(row, field)
    if not value.strip():
        raise BadRow(f"field {field!r} is empty")
    return value


def exchange(row: Mapping[str, Any]) -> tuple[str, str]:
    """The texts of `messages`, which are a user's turn and an assistant's; `BadRow` otherwise."""
    messages = row.get("messages")
    if not isinstance(messages, list) or not all(isinstance(message, Mapping) for message in messages):
        raise BadRow("field 'messages' is no list of messages")
    if [message.get("role") for message in messages] != ["user", "assistant"]:
        raise BadRow("field 'messages' is not one turn of the user and one of the assistant")
    return filled(messages[0], "content"), filled(messages[1], "content")


def short_hash(*parts: str) -> str:
    """Sixteen hex digits that name a row by its content, where upstream gives it no id."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _is_tar(path: Path) -> bool:
    return path.name.endswith((".tar.gz", ".tgz", ".tar.xz", ".tar"))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:160]
