"""Files that other people wrote, opened by one rule: limits on bytes unpacked, on each line and on time.

Promises: only a regular file is opened; no reader is given more than `most_bytes` of a compressed file, or a
line longer than `MAX_LINE_BYTES`, or reads for longer than `most_seconds`. What is past a limit, or is
broken, is one `UserError` that names the file.
"""

import gzip
import io
import signal
import stat
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn, TypeVar, cast

import monitorbench
from monitorbench.config.base import UserError

MAX_LINE_BYTES = 64 * 2**20
"""Longest line, and largest cell, of a table; parsing takes several times as much memory."""
MAX_DOCUMENT_BYTES = 512 * 2**20
"""Largest JSON document that is read whole."""
MAX_ROWS = 20_000_000
"""Most rows of one file."""
MAX_MEMBERS = 1_000_000
"""Most members of an archive."""
MIN_SECONDS = 300.0
"""Seconds in which any file has to be read; a large file has more."""
COMPRESSED = (".gz", ".zst")
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""Beginnings of a text in UTF-16."""
_NO_TEXT = (b"PK\x03\x04", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1")
_FREE_BYTES = 256 * 2**20
_MAX_RATIO = 100
_BYTES_A_SECOND = 100_000
"""Slowest reading that is waited for: readers here take from 5 MB a second."""
T = TypeVar("T")


def with_compressed(*suffixes: str) -> tuple[str, ...]:
    """Return the endings, and each with `.gz` and `.zst` behind it."""
    return tuple(f"{suffix}{packed}" for packed in ("", *COMPRESSED) for suffix in suffixes)


DELIMITED = with_compressed(".csv", ".tsv")
JSON = with_compressed(".jsonl", ".ndjson", ".json")
PARQUET = (".parquet", ".pq")
TABLES = (*DELIMITED, *JSON, *PARQUET)
"""Endings of files with a row a line, or a row a record."""


class ForeignRow(NamedTuple):
    """A row as it was written."""

    place: str
    """`line 17`, or `row` and `entry` where a file has no lines; the first is 1."""
    fields: dict[str, Any]


class BrokenFile(UserError):
    """A compressed file that is cut off or damaged."""


def most_bytes(packed: int) -> int:
    """Return how much `packed` bytes may unpack to: 256 MiB, or 100 times their size where that is more."""
    return max(_FREE_BYTES, _MAX_RATIO * packed)


def most_seconds(size: int) -> float:
    """Return how long `size` bytes may be read for."""
    return max(MIN_SECONDS, size / _BYTES_A_SECOND)


def in_time(file: Path, parts: Iterable[T]) -> Iterator[T]:
    """The parts of a file as they are read; what is done between them doesn't count.

    Raises `UserError` where reading them takes more than `most_seconds`.
    """
    most = left = most_seconds(file.stat().st_size)
    source = iter(parts)
    while True:
        began = time.monotonic()
        try:
            part = next(source)
        except StopIteration:
            return
        left -= time.monotonic() - began
        if left < 0:
            raise UserError(f"{file}: takes more than {most:,.0f} s to read; expected a part of it")
        yield part


@contextmanager
def interrupted(file: Path, seconds: float) -> Iterator[None]:
    """Run a body that works out what a small file asks for, such as matching its patterns.

    Raises `UserError` where that takes longer, which the main thread alone can tell.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> NoReturn:
        raise UserError(f"{file}: takes more than {seconds:g} s to work out; expected one that asks for less")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def opened(file: Path) -> io.BufferedReader:
    """Open a file to read its bytes, unpacked where its ending is `.gz` or `.zst`.

    Raises `UserError` where it is not there, can't be opened or is no regular file; reading does where it is
    broken or unpacks to too much.
    """
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            raise UserError(f"{file}: no regular file; expected one, not a folder, pipe or device")
        match file.suffix.lower():
            case ".gz":
                return io.BufferedReader(_Limited(file, gzip.open(file)), 2**20)
            case ".zst":
                import pyarrow as pa

                packed = pa.input_stream(str(file), compression="zstd")
                return io.BufferedReader(_Limited(file, cast("io.BufferedIOBase", packed)), 2**20)
            case _:
                return file.open("rb")
    except FileNotFoundError as error:
        raise UserError(f"{file}: no such file{where_looked(file)}") from error
    except OSError as error:
        raise UserError(f"{file}: can't be read ({error.strerror or error})") from error


def where_looked(file: Path) -> str:
    """Say which folder a relative path is of, and where the file is instead; "" of an absolute path."""
    if file.is_absolute():
        return ""
    checkout = Path(monitorbench.__file__).resolve().parents[2]
    hint = f" (there is one in {checkout}: run the command there)" if (checkout / file).exists() else ""
    return f" in {Path.cwd()}, the folder of this command{hint}"


class _Limited(io.RawIOBase):
    """The bytes of a compressed file, as far as the limit."""

    def __init__(self, file: Path, stream: io.BufferedIOBase | gzip.GzipFile) -> None:
        self._file, self._stream = file, stream
        self._left = most_bytes(file.stat().st_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")
        try:
            content = self._stream.read(len(view))
        except (OSError, EOFError, zlib.error) as error:
            raise BrokenFile(
                f"{self._file}: broken {self._file.suffix} file ({error}); get it again"
            ) from error
        self._left -= len(content)
        if self._left < 0:
            most = most_bytes(self._file.stat().st_size) >> 20
            raise UserError(
                f"{self._file}: unpacks to more than {most:,} MiB, {_MAX_RATIO} times its size; "
                "unpack it first if that is right"
            )
        view[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._stream.close()
        super().close()


def members_within(file: Path, members: Iterable[tuple[T, int]]) -> Iterator[T]:
    """The members of an archive, each given with the size that it unpacks to.

    Raises `UserError` where there are too many, or they unpack to too much.
    """
    unpacked = 0
    for number, (member, size) in enumerate(in_time(file, members), 1):
        unpacked += size
        refuse_unpacked(file, unpacked)
        if number > MAX_MEMBERS:
            raise UserError(f"{file}: more than {MAX_MEMBERS:,} members; expected a part of them")
        yield member


def refuse_links_out(folder: Path, file: Path) -> None:
    """Raise `UserError` where a file of a folder is a link to something outside it.

    A snapshot in the hub's cache links to that cache's own files.
    """
    root, target = folder.resolve(), file.resolve()
    in_cache = root.parent.name == "snapshots" and target.is_relative_to(root.parent.parent / "blobs")
    if not (in_cache or target.is_relative_to(root)):
        raise UserError(f"{file}: a link out of {folder}; expected the file itself there, or its own name")


def lines(file: Path) -> Iterator[tuple[int, bytes]]:
    """Each line of a file with its number, from 1; raises `UserError` for one that is too long."""
    with opened(file) as stream:
        number = 0
        while line := stream.readline(MAX_LINE_BYTES + 1):
            number += 1
            _refuse_long(file, number, len(line))
            yield number, line


def text_lines(file: Path, errors: Literal["strict", "replace"] = "strict") -> Iterator[str]:
    """Each line of a text in UTF-8, ends of any kind kept; raises `UserError` for one that is too long.

    Raises `UnicodeDecodeError` for what is no UTF-8, unless `errors` are to be replaced.
    """
    with io.TextIOWrapper(opened(file), encoding="utf-8-sig", errors=errors, newline="") as stream:
        number = 0
        while line := stream.readline(MAX_LINE_BYTES + 1):
            number += 1
            _refuse_long(file, number, len(line))
            yield line


def document(file: Path) -> bytes:
    """Return all of a file that is one JSON document; raises `UserError` where that is too large."""
    with opened(file) as stream:
        content = stream.read(MAX_DOCUMENT_BYTES + 1)
    if len(content) > MAX_DOCUMENT_BYTES:
        raise UserError(
            f"{file}: one JSON document of more than {MAX_DOCUMENT_BYTES >> 20} MiB; "
            "expected JSON lines, one object a line"
        )
    return content


def _refuse_long(file: Path, number: int, length: int) -> None:
    if length > MAX_LINE_BYTES:
        raise UserError(
            f"{file}, line {number}: longer than {MAX_LINE_BYTES >> 20} MiB; expected a row a line"
        )


def refuse_rows(file: Path, n_rows: int) -> None:
    """Raise `UserError` where a file has more rows than are read."""
    if n_rows > MAX_ROWS:
        raise UserError(f"{file}: more than {MAX_ROWS:,} rows; expected a part of them")


def refuse_unpacked(file: Path, unpacked: int) -> None:
    """Raise `UserError` where a file unpacks to more bytes than it may."""
    if unpacked > (most := most_bytes(file.stat().st_size)):
        raise UserError(
            f"{file}: unpacks to more than {most >> 20:,} MiB; expected a part of it, or shorter texts in it"
        )


def no_utf8(file: Path) -> UserError:
    """The error for a text in another encoding: its first byte that is no UTF-8, by line and column."""
    with opened(file) as stream:
        for number, line in enumerate(iter(partial(stream.readline, MAX_LINE_BYTES), b""), 1):
            if number == 1 and line.startswith(UTF_16):
                return UserError(f"{file}: UTF-16; save it as UTF-8 (of a spreadsheet: 'CSV UTF-8')")
            if number == 1 and line.startswith(_NO_TEXT):
                return UserError(f"{file}: packed (zip, gzip, zstd or Parquet), no text; unpack or rename it")
            try:
                line.decode()
            except UnicodeDecodeError as error:
                column, byte = len(line[: error.start].decode()) + 1, line[error.start]
                return UserError(
                    f"{file}, line {number}, column {column}: the byte 0x{byte:02X} is no UTF-8; save the "
                    "file as UTF-8 (`iconv -f latin1 -t utf8`, or a spreadsheet's 'CSV UTF-8')"
                )
    return UserError(f"{file}: not UTF-8; save it as UTF-8")
