"""Hidden states kept on disk: extracted once per weights, dtype and prompt, and found again by any head.

A folder holds `states.f16` or `states.i8`, units of one size one behind another, which is memory-mapped, and
`rows.jsonl`, which says which units are whose: one for a prompt whose states are pooled, one for each window,
or one for each token of its response. Promises: a prompt's states are there whole, or not; what was
interrupted goes on with the prompts that are missing; states that changed on disk are an error.
"""

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from monitorbench.config.base import UserError
from monitorbench.config.training import Storage
from monitorbench.runs.files import DIRECTORY_LOCK, locked, unwritable
from monitorbench.runs.keyed_log import KeyedLog, open_log

ROWS = "rows.jsonl"
STATES: dict[Storage, str] = {"float16": "states.f16", "int8": "states.i8"}
Shape = tuple[int, int, int]
"""Layers, positions, hidden size."""


class StatesEntry(BaseModel):
    """Place of a prompt's states in the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    """Hash of the prompt: its token ids and where in them the response is."""
    row: Annotated[int, Field(ge=0)]
    """The first of its units."""
    n: Annotated[int, Field(ge=1)] = 1
    """How many they are."""
    crc32: Annotated[int, Field(ge=0)]
    seconds: Annotated[float, Field(ge=0)]
    """Seconds that the extraction took."""


class StateStore:
    """An open folder of states; see `open_states`."""

    def __init__(
        self, file: Path, shape: Shape, storage: Storage, stream: int, log: KeyedLog[StatesEntry]
    ) -> None:
        self._file, self._shape, self._stream, self._log = file, shape, stream, log
        self._unit = _unit(shape, storage)
        self._end = _end(log)
        self._kept = np.empty(0, np.uint8)

    def __contains__(self, key: str) -> bool:
        return key in self._log.entries

    def append(self, key: str, states: NDArray[np.float16], seconds: float) -> None:
        """Keep a prompt's states, [units, layers, positions, hidden].

        Raises `UserError` where they can't be written.
        """
        if states.shape[1:] != self._shape or not len(states):
            raise ValueError(f"states of shape {states.shape}, the folder's are {self._shape}")
        content = _encoded(states, self._unit)
        view, offset = memoryview(content), self._end * self._unit.itemsize
        try:
            while view:
                written = os.pwrite(self._stream, view, offset)
                view, offset = view[written:], offset + written
        except OSError as error:
            raise unwritable(self._file, error) from error
        # Behind the states, which it vouches for.
        self._log.append(
            StatesEntry(
                key=key,
                row=self._end,
                n=len(states),
                crc32=zlib.crc32(content),
                seconds=round(seconds, 4),
            )
        )
        self._end += len(states)

    def read(self, key: str) -> NDArray[np.float16]:
        """[units, layers, positions, hidden] of a prompt; `KeyError` for one that is not there.

        Raises `UserError` where they are not as they were written.
        """
        row, size = self._log.entries[key], self._unit.itemsize
        start, end = row.row * size, (row.row + row.n) * size
        if len(self._kept) < end:  # of before the last were added
            if self._file.stat().st_size < end:
                raise self._damaged()
            self._kept = np.memmap(self._file, np.uint8, "r")
        content = self._kept[start:end].tobytes()
        if zlib.crc32(content) != row.crc32:
            raise self._damaged()
        return _decoded(content, self._unit).reshape(row.n, *self._shape)

    def seconds(self, key: str) -> float:
        """Seconds that the extraction of a prompt's states took."""
        return self._log.entries[key].seconds

    def _damaged(self) -> UserError:
        folder = self._file.parent
        return UserError(f"{self._file}: not as it was written; remove {folder}, its states are made again")


@contextmanager
def open_states(folder: Path, shape: Shape, storage: Storage) -> Iterator[StateStore]:
    """Open a folder of states for reading and adding; another process waits until it is closed.

    Raises `UserError` where it can't be written, or its list of rows was changed.
    """
    file = folder / STATES[storage]
    with locked(folder / DIRECTORY_LOCK, wait=True), open_log(folder / ROWS, StatesEntry) as log:
        try:
            stream = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise unwritable(file, error) from error
        try:
            vouched_for = _end(log) * _unit(shape, storage).itemsize
            if os.fstat(stream).st_size > vouched_for:  # by an interrupted process, in front of its line
                os.ftruncate(stream, vouched_for)
            yield StateStore(file, shape, storage, stream, log)
            os.fsync(stream)
        finally:
            os.close(stream)


def _end(log: KeyedLog[StatesEntry]) -> int:
    """How many units the lines vouch for."""
    return max((row.row + row.n for row in log.entries.values()), default=0)


def _unit(shape: Shape, storage: Storage) -> np.dtype[Any]:
    """How a unit lies on disk."""
    if storage == "float16":
        return np.dtype(("<f2", (int(np.prod(shape)),)))
    return np.dtype([("scale", "<f4", shape[:2]), ("value", "i1", shape)])


def _encoded(states: NDArray[np.float16], unit: np.dtype[Any]) -> bytes:
    """Encode states; in int8 a vector's scale is its largest absolute value over 127, and 1 for zero."""
    if unit.names is None:
        return states.astype("<f2").tobytes()
    wide = states.astype(np.float32)
    scales = np.abs(wide).max(-1) / 127
    scales[scales == 0] = 1
    units = np.empty(len(states), unit)
    units["scale"] = scales
    units["value"] = np.rint(wide / scales[..., None])
    return units.tobytes()


def _decoded(content: bytes, unit: np.dtype[Any]) -> NDArray[np.float16]:
    if unit.names is None:
        return np.frombuffer(content, "<f2").astype(np.float16, copy=False)
    units = np.frombuffer(content, unit)
    return np.asarray(units["value"] * units["scale"][..., None], np.float16)


def as_stored(states_NH: NDArray[np.float16], storage: Storage) -> NDArray[np.float16]:
    """The vectors as reading would give them back, for a head that is handed them without the disk."""
    if storage == "float16":
        return states_NH
    unit = _unit((1, 1, states_NH.shape[1]), storage)
    return _decoded(_encoded(states_NH[:, None, None], unit), unit)[:, 0, 0]
