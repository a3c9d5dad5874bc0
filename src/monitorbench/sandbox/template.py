"""What runs inside the sandbox: a template process that starts two locked processes for every program.

`run.py` starts it under `python -s -P -S`, and takes monitorbench and its place out of the import system
before `main`: a candidate finds the standard library alone. The template runs no foreign code. For every
program it forks twice, because a fork costs a tenth of a new interpreter: once for the candidate and once
for its check (`sides`). Each fork owns the order of things:

1. limit resources, close the pipes that aren't its own, and (Linux) install a seccomp filter that lets
   through the system calls of `lock` and no others;
2. import the standard modules the program names, then install a second filter that also takes away
   opening files;
3. only now run code that isn't ours.
"""

import ctypes
import gc
import importlib
import marshal
import os
import select
import signal
import struct
import sys
import time

from monitorbench.sandbox import lock, sides

REQUEST = struct.Struct("=Qd")
"""Bytes of the program that follows, and the seconds it may take by the clock."""
REPLY = struct.Struct("=ii?Q")
"""Exit codes of check and candidate, whether the clock ran out, and bytes of the answer that follows."""
STILL_RUNNING = 1000
"""In place of a candidate's exit code: it closed its pipe and went on."""

_ANSWER_LIMIT = 4096
_GRACE_SECONDS = 0.2
# Always there, whatever a program names: else one program's outcome would depend on those before it.
_LOADED_ONCE = (
    "_strptime", "array", "bisect", "cmath", "collections", "copy", "datetime", "decimal", "fractions",
    "functools", "hashlib", "heapq", "itertools", "json", "math", "operator", "random", "re", "statistics",
    "string", "typing",
)  # fmt: skip
_DIE_WITH_PARENT = 1


def _fork(keep: "set[int]", everything: "set[int]", limits: "tuple[float, int]") -> int:
    """Fork; in the child, close the pipes that are not its own and limit its resources. 0 in the child."""
    child = os.fork()
    if child == 0:
        for descriptor in everything - keep:
            os.close(descriptor)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, ctypes.c_ulong(signal.SIGKILL))
        cpu_seconds, memory_bytes = limits
        # The limit counts whole seconds and is the backstop; the timer ends the process before.
        lock.limit_resources(int(cpu_seconds) + 1, memory_bytes)
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    return child


def _answer_of(payload: bytes, seconds: float, private: "set[int]") -> "tuple[int, int, bool, bytes]":
    """Run one program; exit codes of check and candidate, whether the clock ran out, and the answer."""
    code, check, entry, cpu_seconds, memory_bytes = marshal.loads(payload)
    names, modules = sides.used_names(check, entry), lock.imported_modules(code)
    limits = (cpu_seconds, memory_bytes)
    calls, results, answers = os.pipe(), os.pipe(), os.pipe()
    everything = {*calls, *results, *answers, *private}
    candidate = _fork({calls[0], results[1]}, everything, limits)
    if candidate == 0:
        try:
            sides.answer_calls(code, names, sides.Pipes(calls[0], results[1]))
        finally:
            os._exit(0)
    judge = _fork({calls[1], results[0], answers[1]}, everything, limits)
    if judge == 0:
        try:
            sides.judge(check, names, modules, sides.Pipes(results[0], calls[1]), answers[1])
        finally:
            os._exit(0)
    for descriptor in (*calls, *results, answers[1]):
        os.close(descriptor)
    answer, out_of_time = _read_until(answers[0], time.monotonic() + seconds)
    os.close(answers[0])
    ended = _status_within(candidate, _GRACE_SECONDS) if answer.startswith(sides.GONE) else None
    for child in (judge, *([] if ended is not None else [candidate])):
        os.kill(child, signal.SIGKILL)
    judged = os.waitstatus_to_exitcode(os.waitpid(judge, 0)[1])
    if ended is None:
        os.waitpid(candidate, 0)
        ended = STILL_RUNNING
    return judged, ended, out_of_time, answer


def _read_until(descriptor: int, deadline: float) -> "tuple[bytes, bool]":
    """What comes through a pipe until it is closed; True where the deadline came first."""
    answer = b""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    while len(answer) < _ANSWER_LIMIT:
        if not waiting.poll(max(0.0, deadline - time.monotonic()) * 1000):
            return answer, True
        part = os.read(descriptor, _ANSWER_LIMIT)
        if not part:
            break
        answer += part
    return answer, False


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


def _read_exactly(descriptor: int, size: int) -> bytes:
    parts = []
    while size:
        part = os.read(descriptor, size)
        if not part:
            raise EOFError("the caller closed the pipe early")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _private(descriptor: int) -> int:
    """Move one of the caller's pipes out of the candidate's standard streams."""
    private = os.dup(descriptor)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, descriptor)
    os.close(null)
    return private


def main() -> None:
    """Answer requests from what was stdin to what was stdout, one at a time, until the caller closes it."""
    requests, replies = _private(0), _private(1)
    for name in _LOADED_ONCE:
        importlib.import_module(name)
    # Numbers of any length are written and read; how much that may cost is limited by the CPU time.
    sys.set_int_max_str_digits(0)
    gc.freeze()
    while True:
        try:
            size, seconds = REQUEST.unpack(_read_exactly(requests, REQUEST.size))
            payload = _read_exactly(requests, size)
        except EOFError:
            return
        judged, ended, out_of_time, answer = _answer_of(payload, seconds, {requests, replies})
        _write_all(replies, REPLY.pack(judged, ended, out_of_time, len(answer)) + answer)
