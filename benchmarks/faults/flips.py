"""Single flipped bits in every kind of file that a stage reads back, and what its reader makes of them.

A file is read by the function that the next stage uses. `undisturbed`: it gives what the file as written
gives. `refused`: a `UserError`, or `ConfigError`, of one line. `silent`: other content is accepted, any other
exception leaves the reader, or the process dies of it.
"""

import dataclasses
import os
import random
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pydantic import BaseModel

from benchmarks.faults import Ending, Outcome
from monitorbench.config.base import ConfigError, UserError

_ENDS_BYTES = 4096
"""A file's head and foot, where formats keep what everything else hangs on, get half of the flips."""
_SECONDS = 30
_CLOCK_NS = 10**9


class Kind(NamedTuple):
    """A kind of file: one of it, and the reader of the next stage."""

    name: str
    file: Path
    read: Callable[[], Any]


class Flip(NamedTuple):
    """A bit of a file."""

    byte: int
    bit: int


def flipped(kind: Kind, seed: int, numbers: Sequence[int]) -> Iterator[Outcome]:
    """Flip a bit for each number, read, and put the file back; in children, which a reader may take down."""
    content = kind.file.read_bytes()
    left = list(numbers)
    try:
        while left:
            found = list(_in_child(kind, content, seed, left))
            yield from found
            left = left[len(found) :]
            if left:  # what the child died of
                yield _outcome(kind, content, seed, left.pop(0), "silent", "the process that read it died")
    finally:
        _write(kind.file, content, 0)


def flip_of(content: bytes, seed: int, name: str, number: int) -> Flip:
    """The bit that is flipped: in the head or foot of the file as often as anywhere."""
    draw = random.Random(f"{seed} flip {name} {number}")
    size = len(content)
    anywhere = draw.randrange(size)
    near = draw.randrange(min(size, _ENDS_BYTES))
    return Flip(draw.choice((anywhere, anywhere, near, size - 1 - near)), draw.randrange(8))


def _in_child(kind: Kind, content: bytes, seed: int, numbers: Sequence[int]) -> Iterator[Outcome]:
    """The outcomes of as many flips as a forked child survives."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        with os.fdopen(writing, "w", encoding="utf-8") as pipe:
            _silence()
            expected = plain(kind.read())
            for number in numbers:
                signal.alarm(_SECONDS)
                result, reason = _read_flipped(
                    kind, content, flip_of(content, seed, kind.name, number), expected
                )
                pipe.write(f"{number}\t{result}\t{' '.join(reason.split())[:200]}\n")
                pipe.flush()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        for line in pipe:
            name, ending, why = line.rstrip("\n").split("\t")
            yield _outcome(kind, content, seed, int(name), ending, why)
    os.waitpid(pid, 0)


def _silence() -> None:
    """Send a reader's own output nowhere: it is no part of a table."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nowhere, number)


def _outcome(kind: Kind, content: bytes, seed: int, number: int, ending: Any, why: str) -> Outcome:
    where = flip_of(content, seed, kind.name, number)
    return Outcome(
        f"flip {kind.name}", f"{kind.name}:{number}", ending, f"{why} (byte {where.byte}, bit {where.bit})"
    )


def _read_flipped(kind: Kind, content: bytes, flip: Flip, expected: Any) -> tuple[Ending, str]:
    changed = bytearray(content)
    changed[flip.byte] ^= 1 << flip.bit
    _write(kind.file, bytes(changed), flip.byte * 8 + flip.bit + 1)
    try:
        found = plain(kind.read())
    except (UserError, ConfigError) as error:
        return ("silent", f"more than one line: {error}") if "\n" in str(error) else ("refused", str(error))
    except Exception as error:  # whatever else it is, a person would get a traceback
        return "silent", f"a traceback: {type(error).__name__}: {error}"
    return ("undisturbed", "") if found == expected else ("silent", "other content is accepted")


def _write(file: Path, content: bytes, tick: int) -> None:
    """Replace a file, with a time of its own: whoever remembers it by its time has to see that it changed."""
    part = file.with_name(f".{file.name}.flipped")
    part.write_bytes(content)
    stamp = file.stat().st_mtime_ns + _CLOCK_NS + tick
    os.utime(part, ns=(stamp, stamp))
    part.replace(file)


def plain(value: Any) -> Any:
    """A value as lists, mappings and bytes, to be compared with `==` whatever it is made of."""
    match value:
        case BaseModel():
            return value.model_dump_json()
        case Mapping():
            return {key: plain(one) for key, one in value.items()}
        case np.ndarray():
            return value.dtype.str, value.shape, value.tobytes()
        case pa.Array() | pa.ChunkedArray():
            return value.to_pylist()
        case list() | tuple():
            return [plain(one) for one in value]
        case float():
            return repr(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [plain(getattr(value, field.name)) for field in dataclasses.fields(value)]
    return value
