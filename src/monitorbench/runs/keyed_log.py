"""An append-only JSONL file of records found again by key, as verdicts, failed requests and answers are kept.

Promises: one line per key with a checksum, whole or not there. On opening, a torn last line is cut off (its
work is pending again); any other line that is no record, is not as it was written, or repeats a key, is an
error. A second process on the same log is refused. A line that could not be written whole, on a full disk for
one, is taken back. A line reaches the disk within about a second: a power cut loses no more than that.

A judge's run has `verdicts.jsonl`, one line per sample and judge, and `failures.jsonl` beside it. A verdict's
key hashes what the model was given and which model it was: token ids, weights, adapter, decoding, dtype,
engine; never a threshold. A request that failed on the way to an endpoint has no verdict: each attempt is a
line of `failures.jsonl`, and its question stays pending.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Generic, Protocol, Self, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from monitorbench.config.base import UserError
from monitorbench.records import Verdict
from monitorbench.runs.files import locked, sealed_line, unsealed_line, unwritable
from monitorbench.untrusted import lines

VERDICTS, FAILURES = "verdicts.jsonl", "failures.jsonl"
_SECONDS_BETWEEN_SYNCS = 1.0


class KeyedRecord(Protocol):
    """A line of such a log: a pydantic model with the key that it is found by."""

    @property
    def key(self) -> str:
        """Hash of what decided the record's content."""

    def model_dump_json(self) -> str:
        """The line."""

    @classmethod
    def model_validate_json(cls, json_data: bytes) -> Self:
        """The record of a line; `ValidationError` where it is none."""


T = TypeVar("T", bound=KeyedRecord)


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
        append_line(self._path, self._stream, record.model_dump_json())
        self.entries[record.key] = record


def append_line(path: Path, stream: int, line: str) -> None:
    """Add a JSON object as one sealed line; `UserError` where it can't be, what was written is taken back."""
    view = memoryview(sealed_line(line) + b"\n")
    size: int | None = None
    try:
        size = os.fstat(stream).st_size
        while view:
            view = view[os.write(stream, view) :]
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        if view and size is not None:
            # Where this fails as well, the next opening cuts the line off.
            with suppress(OSError):
                os.ftruncate(stream, size)


def read_log(path: Path, kind: type[T]) -> list[T]:
    """All whole lines of a log, the last one left out when torn.

    Raises `UserError` on a foreign or changed line.
    """
    return list(each_record(path, kind))


def each_record(path: Path, kind: type[T]) -> Iterator[T]:
    """Read a log as `read_log` does, with one line in memory at a time."""
    return (record for record, _ in _parse(path, kind))


@contextmanager
def open_log(path: Path, kind: type[T]) -> Iterator[KeyedLog[T]]:
    """Open for appending, alone; on leaving, everything is on disk.

    Raises `UserError` when another process holds the log, when a line is no record of this kind, was
    changed, or repeats a key, or when the log can't be written.
    """
    with locked(path) as stream:
        records = list(_parse(path, kind))
        whole_bytes = records[-1][1] if records else 0
        if os.fstat(stream).st_size != whole_bytes:
            try:
                os.ftruncate(stream, whole_bytes)
            except OSError as error:
                raise unwritable(path, error) from error
        with synced(path, stream):
            yield KeyedLog(path, stream, {record.key: record for record, _ in records})


@contextmanager
def synced(path: Path, stream: int) -> Iterator[None]:
    """Flush a log to the disk every second while the body runs, and when it ends well.

    Raises `UserError` when the body has ended well where the disk refused once.
    """
    ended = threading.Event()
    refused: list[OSError] = []  # the kernel tells of a lost block only once

    # Not in the thread, which may begin when the first line is there.
    opened_with = os.fstat(stream).st_size

    def sync() -> None:
        synced = opened_with
        while not ended.wait(_SECONDS_BETWEEN_SYNCS):
            if (size := os.fstat(stream).st_size) != synced:
                _fsync(stream, refused)
                synced = size

    syncing = threading.Thread(target=sync, name=f"sync {path.name}", daemon=True)
    syncing.start()
    try:
        yield
        _fsync(stream, refused)
        if refused:
            raise unwritable(path, refused[0]) from refused[0]
    finally:
        ended.set()
        syncing.join()


def _fsync(stream: int, refused: list[OSError]) -> None:
    try:
        os.fsync(stream)
    except OSError as error:
        refused.append(error)


def _parse(path: Path, kind: type[T]) -> Iterator[tuple[T, int]]:
    """The record of each whole line, and how many bytes the log has up to its end."""
    numbers: dict[str, int] = {}
    n_bytes = 0
    for number, line in lines(path):
        if not line.endswith(b"\n"):
            return  # torn
        n_bytes += len(line)
        body = unsealed_line(line[:-1])
        if body is None:
            raise UserError(
                f"{path}:{number}: no {kind.__name__} as it was written, edited or damaged; remove the "
                "line to have it done again"
            )
        try:
            record = kind.model_validate_json(body)
        except ValidationError as error:
            raise UserError(
                f"{path}:{number}: no {kind.__name__}; remove the line to have it done again"
            ) from error
        if numbers.setdefault(record.key, number) != number:
            raise UserError(
                f"{path}:{number}: repeats the key of line {numbers[record.key]}; remove one of the two"
            )
        yield record, n_bytes


class Failure(BaseModel):
    """A request that got no answer: what a verdict would say of it (reason, detail, cost); which attempt."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    attempt: Annotated[int, Field(ge=1)]
    """Which run of `evaluate.py` asked this, from 1; retries within a run count as one."""
    verdict: Verdict

    @property
    def key(self) -> str:
        """The question's key with the attempt."""
        return f"{self.verdict.key}-{self.attempt}"


VerdictLog: TypeAlias = KeyedLog[Verdict]
FailureLog: TypeAlias = KeyedLog[Failure]


def read_verdicts(path: Path) -> list[Verdict]:
    """All whole lines of a log, the last one left out when torn; `UserError` on a foreign line."""
    return read_log(path, Verdict)


def read_failures(path: Path) -> dict[str, Verdict]:
    """Last failed request of each sample, as a verdict, by sample id; empty where there is no such log.

    Raises `UserError` on a foreign line.
    """
    failures = read_log(path, Failure) if path.is_file() else []
    return {failure.verdict.sample_id: failure.verdict for failure in failures}


def read_run(directory: Path) -> dict[str, Verdict]:
    """Verdicts of a run by sample id; a sample without an answer has its last failure, which is unscored."""
    verdicts = {verdict.sample_id: verdict for verdict in read_verdicts(directory / VERDICTS)}
    return read_failures(directory / FAILURES) | verdicts


def open_verdict_log(path: Path) -> AbstractContextManager[VerdictLog]:
    """Open for appending, alone. Raises what `open_log` raises."""
    return open_log(path, Verdict)


def open_failure_log(path: Path) -> AbstractContextManager[FailureLog]:
    """Open for appending, alone. Raises what `open_log` raises."""
    return open_log(path, Failure)
