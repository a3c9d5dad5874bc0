"""An append-only JSONL file of records found again by key: what verdict and answer logs have in common.

Promises: one line per key, whole or not there. On opening, a torn last line is cut off (its work is pending
again); any other line that is no record, or repeats a key, is an error. A second process on the same log
is refused. A line that could not be written whole, on a full disk for one, is taken back.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Generic, Protocol, Self, TypeVar

from pydantic import ValidationError

from monitorbench.config.base import UserError
from monitorbench.runs.files import make_folder, unwritable


class KeyedRecord(Protocol):
    """What a line of such a log is: a pydantic model with the key it is found by."""

    @property
    def key(self) -> str:
        """What decided the record's content, hashed."""

    def model_dump_json(self) -> str:
        """The line."""

    @classmethod
    def model_validate_json(cls, json_data: bytes) -> Self:
        """The record of a line; `ValidationError` where it is none."""


T = TypeVar("T", bound=KeyedRecord)

_open_streams: set[int] = set()


def _close_in_child() -> None:
    for stream in _open_streams:
        os.close(stream)
    _open_streams.clear()


# An engine's worker process may outlive a killed parent, and would hold its lock.
os.register_at_fork(after_in_child=_close_in_child)


class KeyedLog(Generic[T]):
    """An open log: what it holds by key, and a way to append."""

    def __init__(self, path: Path, stream: int, entries: dict[str, T]) -> None:
        self._path = path
        self._stream = stream
        self.entries = entries

    def append(self, record: T) -> None:
        """Add one line; refuses a key that is there already (`ValueError`).

        Raises `UserError` where it can't be written; what was written of it is taken back.
        """
        if record.key in self.entries:
            raise ValueError(f"{self._path}: key {record.key} is there already")
        view = memoryview((record.model_dump_json() + "\n").encode())
        size = os.fstat(self._stream).st_size
        try:
            while view:
                view = view[os.write(self._stream, view) :]
        except OSError as error:
            raise unwritable(self._path, error) from error
        finally:
            if view:
                # Where this fails as well, the next opening cuts the line off.
                with suppress(OSError):
                    os.ftruncate(self._stream, size)
        self.entries[record.key] = record


def read_log(path: Path, kind: type[T]) -> list[T]:
    """All whole lines of a log, the last one left out when torn; `UserError` on a foreign line."""
    records, _ = _parse(path, kind)
    return records


@contextmanager
def open_log(path: Path, kind: type[T]) -> Iterator[KeyedLog[T]]:
    """Open for appending, alone; on leaving, everything is on disk.

    Raises `UserError` when another process holds the log, when a line is no record of this kind or
    repeats a key, or when the log can't be written.
    """
    make_folder(path.parent)
    try:
        stream = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    except OSError as error:
        raise unwritable(path, error) from error
    _open_streams.add(stream)
    try:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(f"{path}: another process is writing to it; wait for it or end it") from error
        records, whole_bytes = _parse(path, kind)
        os.ftruncate(stream, whole_bytes)
        yield KeyedLog(path, stream, {record.key: record for record in records})
        try:
            os.fsync(stream)
        except OSError as error:
            raise unwritable(path, error) from error
    finally:
        if stream in _open_streams:  # not in a forked child
            _open_streams.discard(stream)
            os.close(stream)


def _parse(path: Path, kind: type[T]) -> tuple[list[T], int]:
    """The records of all whole lines, and how many bytes these are."""
    numbers: dict[str, int] = {}
    records: list[T] = []
    # Not `splitlines`: a carriage return in a foreign line would pass for the torn end.
    content = path.read_bytes()
    *lines, torn = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        try:
            record = kind.model_validate_json(line)
        except ValidationError as error:
            raise UserError(
                f"{path}:{number}: no {kind.__name__}; remove the line to have it done again"
            ) from error
        if numbers.setdefault(record.key, number) != number:
            raise UserError(
                f"{path}:{number}: repeats the key of line {numbers[record.key]}; remove one of the two"
            )
        records.append(record)
    return records, len(content) - len(torn)
