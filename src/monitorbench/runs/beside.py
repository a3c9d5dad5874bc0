"""Work that a copy of this process does beside it, where a second core would be idle."""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_MOST_SECONDS = 300
"""Seconds after which a copy is given up, whatever it waits for."""


def can_copy() -> bool:
    """Whether this process can be copied: by Linux's fork, to a second core, and while no thread runs.

    A lock that a thread holds would stay locked in the copy.
    """
    return sys.platform == "linux" and threading.active_count() == 1 and len(os.sched_getaffinity(0)) > 1


def beside(work: Callable[[], T]) -> Callable[[], T]:
    """Begin some work in a copy of this process; the function that is returned waits for its result.

    Where there can be no copy, or it fails, that function does the work here, and raises what it raises.
    """
    if not can_copy():
        return work
    here, there = multiprocessing.get_context("fork").Pipe(duplex=False)
    pid = os.fork()
    if not pid:
        try:
            here.close()  # else sending what nobody takes would wait for ever
            there.send(work())
        finally:
            os._exit(0)
    there.close()

    def result() -> T:
        try:
            if here.poll(_MOST_SECONDS):
                done: T = here.recv()
                return done
        except (EOFError, OSError):  # it ended before, or while it sent
            pass
        finally:
            here.close()
            os.kill(pid, signal.SIGKILL)  # it has ended, or hangs
            os.waitpid(pid, 0)
        return work()

    return result
