"""An append-only log of sealed lines that is only written: a server's, of which nothing is kept in memory.

Promises: a line is whole or not there; a torn last line is cut off on opening; another process on the same
file is refused; lines reach the disk within about a second; once it is closed nothing is written any more,
whoever still holds it. `read_lines` is the way back.
"""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from monitorbench.config.base import UserError
from monitorbench.runs.files import locked, unsealed_line
from monitorbench.runs.keyed_log import append_line, synced

_PIECE = 2**16


class AppendedLog:
    """An open log; several threads may append."""

    def __init__(self, path: Path, stream: int) -> None:
        self._path, self._stream = path, stream
        self._lock = threading.Lock()
        self._is_closed = False

    def append(self, line: str) -> None:
        """Add a JSON object; `UserError` where it can't be written, or where the log is closed."""
        with self._lock:
            if self._is_closed:  # the descriptor may be another file's by now
                raise UserError(f"{self._path}: closed, as its server is ending")
            append_line(self._path, self._stream, line)

    def close(self) -> None:
        """Take nothing any more."""
        with self._lock:
            self._is_closed = True


@contextmanager
def open_appended(path: Path) -> Iterator[AppendedLog]:
    """Open for appending, alone; on leaving, everything is on disk. Raises what `locked` raises."""
    with locked(path) as stream:
        _cut_torn(stream)
        with synced(path, stream):
            log = AppendedLog(path, stream)
            try:
                yield log
            finally:
                log.close()


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of all whole lines; `UserError` on one that is not as it was written."""
    *lines, _ = path.read_bytes().split(b"\n")
    objects = []
    for number, line in enumerate(lines, 1):
        body = unsealed_line(line)
        if body is None:
            raise UserError(f"{path}:{number}: not as it was written, edited or damaged; remove the line")
        objects.append(json.loads(body))
    return objects


def _cut_torn(stream: int) -> None:
    """Cut off what follows the last line's end."""
    end = os.fstat(stream).st_size
    position = end
    while position > 0:
        begin = max(0, position - _PIECE)
        newline = os.pread(stream, position - begin, begin).rfind(b"\n")
        if newline >= 0:
            position = begin + newline + 1
            break
        position = begin
    if position != end:
        os.ftruncate(stream, position)
