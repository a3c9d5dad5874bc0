"""An append-only JSONL file of records found again by key: what verdict and answer logs have in common.

Promises: one line per key, whole or not there. On opening, a torn last line is cut off (its work is owed
again); any other line that is no record is an error. A second process on the same log is refused.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, Protocol, Self, TypeVar

from pydantic import ValidationError

from monitorbench.config.errors import UserError


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


class KeyedLog(Generic[T]):
    """An open log: what it holds by key, and a way to append."""

    def __init__(self, path: Path, stream: int, held: dict[str, T]) -> None:
        self._path = path
        self._stream = stream
        self.held = held

    def append(self, record: T) -> None:
        """Add one line; refuses a key that is there already (`ValueError`)."""
        if record.key in self.held:
            raise ValueError(f"{self._path}: key {record.key} is there already")
        view = memoryview((record.model_dump_json() + "\n").encode())
        while view:
            view = view[os.write(self._stream, view) :]
        self.held[record.key] = record


def read_log(path: Path, kind: type[T]) -> list[T]:
    """All whole lines of a log, the last one left out when torn; `UserError` on a foreign line."""
    records, _ = _parse(path, kind)
    return records


@contextmanager
def open_log(path: Path, kind: type[T]) -> Iterator[KeyedLog[T]]:
    """Open for appending, alone; on leaving, everything is on disk.

    Raises `UserError` when another process holds the log, or when a line is no record of this kind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    stream = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(f"{path}: another process is writing to it; wait for it or end it") from error
        records, whole_bytes = _parse(path, kind)
        os.ftruncate(stream, whole_bytes)
        yield KeyedLog(path, stream, {record.key: record for record in records})
        os.fsync(stream)
    finally:
        os.close(stream)


def _parse(path: Path, kind: type[T]) -> tuple[list[T], int]:
    records: list[T] = []
    whole_bytes = 0
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), 1):
        if not line.endswith(b"\n"):
            break
        try:
            records.append(kind.model_validate_json(line))
        except ValidationError as error:
            raise UserError(
                f"{path}:{number}: no {kind.__name__}; remove the line to have it done again"
            ) from error
        whole_bytes += len(line)
    return records, whole_bytes
