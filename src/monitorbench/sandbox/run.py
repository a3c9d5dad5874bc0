"""Runs Python that nobody vouches for, in a process of its own, and says whether its check passed.

Every program gets a process of its own, forked from an interpreter that ran no foreign code and ignores
the user's site, with no environment of ours, no stdin, an empty working directory, a session apart, and
limits on CPU, memory, files and processes.

Promised, on Linux (x86-64, ARM64): before a line of the program runs, a seccomp filter has taken away
sockets, opening files (to read or to write), new processes and threads, and signals to other processes.
No privilege and no namespace is needed, so it holds in containers too. Where the kernel refuses the
filter, `run` raises `SandboxUnavailable`; it never runs a program without it. On macOS the system's
`sandbox_init` takes away network, writing and new processes; files stay readable and memory isn't limited.

Promised about results: a program passes by right answers only. Candidate and check run in two processes,
and the candidate's never held the check, nor did any that it is a copy of: there is no expected answer to be
read. The check calls the candidate over a pipe, what comes back is plain data built anew on the check's side,
and equality is decided there. Printing, exiting early by any means, crashing and running out of time never
count as passed, nor do objects that claim to equal everything. Standard modules named by a literal `import`
statement can be used, and a fixed few are always there; others can't be loaded.

What a check can't do: hand a candidate functions of its own, or look into objects that are no plain data.
"""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import monitorbench
from monitorbench.sandbox import sides, template

_START = """\
import sys
sys.path.insert(0, {place!r})
from monitorbench.sandbox import template
del sys.path[0]
for name in [name for name in sys.modules if name.partition(".")[0] == "monitorbench"]:
    del sys.modules[name]
template.main(template.Inherited{pipes!r})
"""
_WALL_CLOCK_FACTOR = 6
_LEAST_WALL_CLOCK = 2.0
_PIPE_SIZE = 2**20


class SandboxUnavailable(RuntimeError):
    """This machine can't isolate foreign code; nothing was run."""


class ProgramStatus(StrEnum):
    """How a program ended."""

    PASSED = "passed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CRASHED = "crashed"


class Program(NamedTuple):
    """A candidate and the statements that check it; `check` can call and read the names `code` defined.

    Names of builtins stay the check's own, except `entry`, the function that is checked.
    """

    code: str
    check: str
    entry: str = ""


class RunResult(NamedTuple):
    """How a program ended, and one line why: the exception of a failure, the signal of a crash."""

    status: ProgramStatus
    detail: str = ""

    @property
    def passed(self) -> bool:
        """Whether candidate and check both ran to their end without an exception."""
        return self.status is ProgramStatus.PASSED


def run(
    programs: Sequence[Program],
    *,
    timeout_seconds: float = 3.0,
    memory_mib: int = 512,
    workers: int = 2,
) -> list[RunResult]:
    """Run every program in a sandbox of its own; outcomes are in the order of the programs.

    `timeout_seconds` limits CPU time; six times that, and two seconds at least, are allowed on the
    clock, so that a busy machine changes no outcome. Hash seed and `random` are fixed: the same program
    ends the same way twice. A program costs two forks, about 5 ms; a call of `run`, an interpreter's start
    for every worker.

    Raises:
        SandboxUnavailable: where the platform can't take away network and files.

    """
    if not programs:
        return []
    clock = max(_LEAST_WALL_CLOCK, timeout_seconds * _WALL_CLOCK_FACTOR)

    def run_one(program: Program) -> RunResult:
        started = idle.get()
        try:
            return started.run(program, clock, timeout_seconds, memory_mib * 2**20)
        finally:
            idle.put(started)

    idle = queue.SimpleQueue[_Template]()
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="sandbox-"))
        for _ in range(min(workers, len(programs))):
            idle.put(stack.enter_context(_Template(directory)))
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(run_one, programs))


def _command(pipes: template.Inherited) -> list[str]:
    if sys.platform not in ("linux", "darwin"):
        raise SandboxUnavailable(f"no sandbox for {sys.platform!r}: foreign code runs on Linux or macOS only")
    # -I without -E: an isolated interpreter ignores PYTHONHASHSEED, and with it a mutant that iterates
    # over a set could fail today and pass tomorrow. The environment holds nothing else.
    place = str(Path(monitorbench.__file__).parent.parent)
    return [sys.executable, "-s", "-P", "-S", "-B", "-c", _START.format(place=place, pipes=tuple(pipes))]


class _Template:
    """The process that forks one locked process after the other; `with` ends it and what it runs."""

    def __init__(self, directory: str) -> None:
        (candidates, self._candidates), (checks, self._checks) = os.pipe(), os.pipe()
        self._answers, answers = os.pipe()
        os.set_blocking(self._answers, False)
        inherited = template.Inherited(candidates, checks, answers)
        self._process = subprocess.Popen(
            _command(inherited),
            pass_fds=inherited,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=directory,
            env={"PYTHONHASHSEED": "0"},
            start_new_session=True,
        )
        for descriptor in inherited:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Before `wait`, while the identifier can't belong to anyone else. The fork is in the same group.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()
        for descriptor in (self._candidates, self._checks, self._answers):
            os.close(descriptor)

    def run(self, program: Program, clock_seconds: float, cpu_seconds: float, memory_bytes: int) -> RunResult:
        """Run one program. Each of its processes is sent its own part, which the template never reads."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        reply = b""
        with contextlib.suppress(BrokenPipeError):
            candidate, check = sides.part_of_candidate(program.code), sides.part_of_check(*program)
            sizes = len(candidate), len(check)
            self._process.stdin.write(template.REQUEST.pack(*sizes, clock_seconds, cpu_seconds, memory_bytes))
            self._process.stdin.flush()
            _write_all(self._candidates, candidate)
            _write_all(self._checks, check)
            reply = self._process.stdout.read(template.REPLY.size)
        if len(reply) < template.REPLY.size:
            raise SandboxUnavailable(
                "foreign code was not run: the sandbox's interpreter ended early; "
                f"does {sys.executable} -s -P -S start?"
            )
        answer = b""
        # Both processes have ended; whatever they had to say is in the pipe, and its size is the limit.
        with contextlib.suppress(BlockingIOError):
            answer = os.read(self._answers, _PIPE_SIZE)
        return _outcome(answer, *template.REPLY.unpack(reply))


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _outcome(answer: bytes, judged: int, ended: int, out_of_time: bool) -> RunResult:
    """Interpret a program's end; `judged` and `ended` are the exit codes of check and candidate."""
    word, _, detail = answer.decode("utf-8", "replace").partition("\n")
    too_long = (-signal.SIGXCPU, -signal.SIGPROF)
    is_gone = judged == sides.GONE
    if word == "unavailable":
        raise SandboxUnavailable(f"foreign code was not run: {' '.join(detail.split())}")
    if word in (ProgramStatus.PASSED, ProgramStatus.FAILED):
        return RunResult(ProgramStatus(word), " ".join(detail.split()))
    if out_of_time or judged in too_long or (is_gone and ended in too_long):
        return RunResult(ProgramStatus.TIMED_OUT)
    if is_gone and ended == template.STILL_RUNNING:
        return RunResult(ProgramStatus.CRASHED, "closed its pipe before its check was over")
    code = ended if is_gone else judged
    if code < 0:
        return RunResult(ProgramStatus.CRASHED, f"killed by {signal.Signals(-code).name}")
    return RunResult(ProgramStatus.CRASHED, f"exited with status {code} before its check was over")
