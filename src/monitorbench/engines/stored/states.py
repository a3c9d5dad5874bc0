"""Hidden states kept on disk: extracted once per weights, dtype and prompt, and found again by any head.

A folder holds `states.f16`, rows of float16 one behind another, which is memory-mapped, and `rows.jsonl`,
which says whose row is which. Promises: a row is there whole, or not; what was interrupted goes on with the
rows that are missing; a row that changed on disk is an error.
"""

import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from monitorbench.config.base import UserError
from monitorbench.runs.files import unwritable
from monitorbench.runs.keyed_log import KeyedLog, open_log
from monitorbench.runs.lock import DIRECTORY_LOCK, locked

STATES, ROWS = "states.f16", "rows.jsonl"
Shape = tuple[int, int, int]
"""Layers, positions, hidden size."""


class Row(BaseModel):
    """Where a prompt's states are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    """Of the prompt: its token ids and where in them the response is."""
    row: Annotated[int, Field(ge=0)]
    crc32: Annotated[int, Field(ge=0)]
    seconds: Annotated[float, Field(ge=0)]
    """What the extraction took."""


class StateStore:
    """An open folder of states; see `open_states`."""

    def __init__(self, folder: Path, shape: Shape, stream: int, log: KeyedLog[Row]) -> None:
        self._folder, self._shape, self._stream, self._log = folder, shape, stream, log
        self._row_bytes = int(np.prod(shape)) * 2

    def __contains__(self, key: str) -> bool:
        return key in self._log.entries

    def append(self, key: str, states: NDArray[np.float16], seconds: float) -> None:
        """Keep the states of one prompt; `UserError` where they can't be written."""
        if states.shape != self._shape:
            raise ValueError(f"states of shape {states.shape}, the folder's are {self._shape}")
        content = states.astype("<f2").tobytes()
        row = len(self._log.entries)
        view, offset = memoryview(content), row * self._row_bytes
        try:
            while view:
                written = os.pwrite(self._stream, view, offset)
                view, offset = view[written:], offset + written
        except OSError as error:
            raise unwritable(self._folder / STATES, error) from error
        # Behind the states, which it vouches for.
        self._log.append(Row(key=key, row=row, crc32=zlib.crc32(content), seconds=round(seconds, 4)))

    def read(self, keys: Sequence[str]) -> NDArray[np.float16]:
        """[keys, layers, positions, hidden]; `KeyError` for one that is not there.

        Raises `UserError` where a row is not as it was written.
        """
        rows = [self._log.entries[key] for key in keys]
        if not rows:
            return np.empty((0, *self._shape), np.float16)
        n_rows = len(self._log.entries)
        file = self._folder / STATES
        if file.stat().st_size < n_rows * self._row_bytes:
            raise self._damaged(file)
        kept = np.memmap(file, "<f2", "r", shape=(n_rows, *self._shape))
        found = np.empty((len(rows), *self._shape), np.float16)
        for number, row in enumerate(rows):
            found[number] = kept[row.row]
            if zlib.crc32(found[number].tobytes()) != row.crc32:
                raise self._damaged(file)
        return found

    def seconds(self, key: str) -> float:
        """What the extraction of a prompt's states took."""
        return self._log.entries[key].seconds

    def _damaged(self, file: Path) -> UserError:
        return UserError(f"{file}: not as it was written; remove {self._folder}, its states are made again")


@contextmanager
def open_states(folder: Path, shape: Shape) -> Iterator[StateStore]:
    """Open a folder of states for reading and adding; another process waits until it is closed.

    Raises `UserError` where it can't be written, or its list of rows was changed.
    """
    with locked(folder / DIRECTORY_LOCK, wait=True), open_log(folder / ROWS, Row) as log:
        try:
            stream = os.open(folder / STATES, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise unwritable(folder / STATES, error) from error
        try:
            vouched_for = len(log.entries) * int(np.prod(shape)) * 2
            if os.fstat(stream).st_size > vouched_for:  # by an interrupted process, in front of its line
                os.ftruncate(stream, vouched_for)
            yield StateStore(folder, shape, stream, log)
            os.fsync(stream)
        finally:
            os.close(stream)
