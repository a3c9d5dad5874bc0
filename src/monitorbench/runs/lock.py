"""Locks that one process holds on a file: a second one is refused, or waits.

Promises: a lock ends with its process, however that ends, and is not inherited by a forked child.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from monitorbench.config.base import UserError
from monitorbench.runs.files import make_folder, unwritable

DIRECTORY_LOCK = ".lock"
"""The file whose lock is one on the folder that it lies in."""
_held: set[int] = set()


def _close_in_child() -> None:
    for stream in _held:
        os.close(stream)
    _held.clear()


# An engine's worker process may outlive a killed parent, and would hold its lock.
os.register_at_fork(after_in_child=_close_in_child)


@contextmanager
def locked(path: Path, *, wait: bool = False) -> Iterator[int]:
    """Open a file for reading and appending and hold the lock on it; yields its file descriptor.

    Raises `UserError` where another process holds it and `wait` is False, or where it can't be written.
    """
    make_folder(path.parent)
    try:
        stream = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    except OSError as error:
        raise unwritable(path, error) from error
    _held.add(stream)
    try:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owned = path.parent if path.name == DIRECTORY_LOCK else path
            raise UserError(f"{owned}: another process is writing to it; wait for it or end it") from error
        except OSError as error:  # a file system without locks
            raise unwritable(path, error) from error
        yield stream
    finally:
        if stream in _held:  # not in a forked child
            _held.discard(stream)
            os.close(stream)


def is_locked(directory: Path) -> bool:
    """Whether a process is writing to a run's directory now; False where nobody ever did."""
    try:
        stream = os.open(directory / DIRECTORY_LOCK, os.O_RDONLY)
    except OSError:
        return False
    try:
        # Shared, so that two who ask don't see each other; it is let go at once.
        fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    finally:
        os.close(stream)
    return False
