"""Template process inside the sandbox, which starts two locked processes for every program.

`run.py` starts it under `python -s -P -S`, and takes monitorbench and its place out of the import system
before `main`: a candidate finds the standard library alone. For every program it forks twice, because a fork
costs a tenth of a new interpreter: once for the candidate and once for its check (`sides`).

The template neither runs nor holds foreign code: it is told sizes and limits. Each fork reads its own part
from a pipe of its own, and the check's answer goes to the caller past the template. So no memory that a
candidate's process is a copy of ever held a check, of this program or of those before. Each fork owns the
order of things:

1. read its part, close the pipes that aren't its own, limit resources, and (Linux) install a seccomp filter
   that lets through the system calls of `lock` and no others;
2. import the standard modules the program names, then install a second filter that also takes away
   opening files;
3. only now run code that isn't ours.
"""

import ctypes
import gc
import importlib
import os
import select
import signal
import struct
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

from monitorbench.sandbox import lock, sides, values

REQUEST = struct.Struct("=QQddQ")
"""Bytes of the candidate's and of the check's part; seconds by the clock, CPU seconds, bytes of memory."""
REPLY = struct.Struct("=ii?")
"""Exit codes of check and candidate, and whether the clock ran out."""
STILL_RUNNING = 1000
"""Stand-in for the exit code of a candidate that closed its pipe and went on."""

_GRACE_SECONDS = 0.2
# Always there, whatever a program names: else one program's outcome would depend on those before it.
_LOADED_ONCE = (
    "_strptime", "array", "bisect", "cmath", "collections", "copy", "datetime", "decimal", "fractions",
    "functools", "hashlib", "heapq", "itertools", "json", "math", "operator", "random", "re", "statistics",
    "string", "typing",
)  # fmt: skip
_DIE_WITH_PARENT = 1


class Inherited(NamedTuple):
    """Pipes between the caller and the forks: where each fork's part comes from, where the check answers."""

    candidates: int
    checks: int
    answers: int


class _Limits(NamedTuple):
    """Limits of a program, in seconds and bytes."""

    clock_seconds: float
    cpu_seconds: float
    memory_bytes: int


def _start(
    side: Callable[[bytes], int], part: "tuple[int, int]", closes: "set[int]", limits: _Limits
) -> "int":
    """Fork a process that runs `side` on its part and ends with what it returns; the process's id.

    `part` is the pipe it comes through and its size. The process closes the pipes in `closes` first.
    """
    child = os.fork()
    if child:
        return child
    status = 0
    try:
        # Whole, and before any limit: a rest left in the pipe would be taken for the next program.
        content = values.read_exactly(*part)
        for descriptor in closes:
            os.close(descriptor)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, ctypes.c_ulong(signal.SIGKILL))
        # The limit counts whole seconds and is the backstop; the timer ends the process before.
        lock.limit_resources(int(limits.cpu_seconds) + 1, limits.memory_bytes)
        signal.setitimer(signal.ITIMER_PROF, limits.cpu_seconds)
        status = side(content)
    finally:
        os._exit(status)


def _run_program(
    sizes: "tuple[int, int]", limits: _Limits, inherited: Inherited, private: "set[int]"
) -> "tuple[int, int, bool]":
    """Run one program; exit codes of check and candidate, and whether the clock ran out."""
    calls, results, over = os.pipe(), os.pipe(), os.pipe()
    everything = {*calls, *results, *over, *inherited, *private}
    reads, writes = sides.Pipes(calls[0], results[1]), sides.Pipes(results[0], calls[1])
    candidate = _start(
        lambda part: sides.answer_calls(part, reads),
        (inherited.candidates, sizes[0]),
        everything - {*reads},
        limits,
    )
    judge = _start(
        lambda part: sides.judge(part, writes, inherited.answers),
        (inherited.checks, sizes[1]),
        everything - {*writes, inherited.answers, over[1]},
        limits,
    )
    for descriptor in (*calls, *results, over[1]):
        os.close(descriptor)
    # The check's process alone holds the other end, which the kernel closes when it ends.
    waiting = select.poll()
    waiting.register(over[0])
    out_of_time = not waiting.poll(limits.clock_seconds * 1000)
    os.close(over[0])
    judged = _end(judge)
    ended = _status_within(candidate, _GRACE_SECONDS) if judged == sides.GONE else None
    if ended is None:
        _end(candidate)
        ended = STILL_RUNNING
    return judged, ended, out_of_time


def _end(child: int) -> int:
    """Kill a process where it still runs; its exit code."""
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _status_within(child: int, seconds: float) -> "int | None":
    """The exit code of a process whose pipe was closed, or None where it goes on."""
    deadline = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= deadline:
            return None
        time.sleep(0.001)


def _private(descriptor: int) -> int:
    """Move one of the caller's pipes out of the candidate's standard streams."""
    private = os.dup(descriptor)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, descriptor)
    os.close(null)
    return private


def main(inherited: Inherited) -> None:
    """Answer requests from what was stdin to what was stdout, one at a time, until the caller closes it."""
    requests, replies = _private(0), _private(1)
    for name in _LOADED_ONCE:
        importlib.import_module(name)
    # Numbers of any length are written and read; how much that may cost is limited by the CPU time.
    sys.set_int_max_str_digits(0)
    gc.freeze()
    while True:
        try:
            *sizes, clock, cpu, memory = REQUEST.unpack(values.read_exactly(requests, REQUEST.size))
        except EOFError:
            return
        limits = _Limits(clock, cpu, memory)
        ended = _run_program((sizes[0], sizes[1]), limits, inherited, {requests, replies})
        os.write(replies, REPLY.pack(*ended))
