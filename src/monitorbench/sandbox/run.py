"""Runs Python that nobody vouches for, in a process of its own, and says whether its check passed.

Every program gets a process of its own, forked from an interpreter that ran no foreign code and ignores
the user's site, with no environment of ours, no stdin, an empty working directory, a session apart, and
limits on CPU, memory, files and processes.

Promised, on Linux (x86-64, ARM64): before a line of the program runs, a seccomp filter has taken away
sockets, opening files (to read or to write), new processes and threads, and signals to other processes.
No privilege and no namespace is needed, so it holds in containers too. Where the kernel refuses the
filter, `run` raises `SandboxUnavailable`; it never runs a program without it. On macOS the system's
`sandbox_init` takes away network, writing and new processes; files stay readable and memory isn't limited.

Promised about results: printing, exiting early by any means, crashing and running out of time never
count as passed. Standard modules named by a literal `import` statement can be used, and a fixed few are
always there; others can't be loaded.

Not promised: the check runs in the same interpreter as the candidate. A candidate written against this
very file can look for the pipe that holds the token, or return objects that equal everything.
What language models and our own constructions write doesn't, but this is no competition judge.
"""

import contextlib
import marshal
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

from monitorbench.sandbox import child as sandbox_child

_WALL_CLOCK_FACTOR = 3
_LEAST_WALL_CLOCK = 2.0


class SandboxUnavailable(RuntimeError):
    """This machine can't isolate foreign code; nothing was run."""


class Status(StrEnum):
    """How a program ended."""

    PASSED = "passed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CRASHED = "crashed"


class Program(NamedTuple):
    """A candidate and the statements that check it; `check` sees the names `code` defined."""

    code: str
    check: str


class RunResult(NamedTuple):
    """How a program ended, and one line why: the exception of a failure, the signal of a crash."""

    status: Status
    detail: str = ""

    @property
    def passed(self) -> bool:
        """Whether candidate and check both ran to their end without an exception."""
        return self.status is Status.PASSED


def run(
    programs: Sequence[Program],
    *,
    timeout_seconds: float = 3.0,
    memory_mib: int = 512,
    workers: int = 2,
) -> list[RunResult]:
    """Run every program in a sandbox of its own; outcomes are in the order of the programs.

    `timeout_seconds` limits CPU time; three times that, and two seconds at least, are allowed on the
    clock, so that a busy machine changes no outcome. Hash seed and `random` are fixed: the same program
    ends the same way twice. A program costs a fork, about 3 ms; a call of `run`, an interpreter's start
    for every worker.

    Raises:
        SandboxUnavailable: where the platform can't take away network and files.

    """
    if not programs:
        return []
    clock = max(_LEAST_WALL_CLOCK, timeout_seconds * _WALL_CLOCK_FACTOR)

    def run_one(program: Program) -> RunResult:
        template = idle.get()
        try:
            return template.run(marshal.dumps((*program, timeout_seconds, memory_mib * 2**20)), clock)
        finally:
            idle.put(template)

    idle = queue.SimpleQueue[_Template]()
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="sandbox-"))
        for _ in range(min(workers, len(programs))):
            idle.put(stack.enter_context(_Template(directory)))
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(run_one, programs))


def _command() -> list[str]:
    if sys.platform not in ("linux", "darwin"):
        raise SandboxUnavailable(f"no sandbox for {sys.platform!r}: foreign code runs on Linux or macOS only")
    # -I without -E: an isolated interpreter ignores PYTHONHASHSEED, and with it a mutant that iterates
    # over a set could fail today and pass tomorrow. The environment holds nothing else.
    return [sys.executable, "-s", "-P", "-S", "-B", str(Path(sandbox_child.__file__))]


class _Template:
    """The process that forks one locked process after the other; `with` ends it and what it runs."""

    def __init__(self, directory: str) -> None:
        self._process = subprocess.Popen(
            _command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=directory,
            env={"PYTHONHASHSEED": "0"},
            start_new_session=True,
        )

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

    def run(self, payload: bytes, clock_seconds: float) -> RunResult:
        """Run one program; the answer is bounded by the template."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        reply = b""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(sandbox_child.REQUEST.pack(len(payload), clock_seconds) + payload)
            self._process.stdin.flush()
            reply = self._process.stdout.read(sandbox_child.REPLY.size)
        if len(reply) < sandbox_child.REPLY.size:
            raise SandboxUnavailable(
                "foreign code was not run: the sandbox's interpreter ended early; "
                f"does {' '.join(_command()[:-1])} start?"
            )
        status, out_of_time, token, size = sandbox_child.REPLY.unpack(reply)
        return _outcome(self._process.stdout.read(size), token, status, out_of_time)


def _outcome(answer: bytes, token: bytes, status: int, out_of_time: bool) -> RunResult:
    if out_of_time or status in (-signal.SIGXCPU, -signal.SIGPROF):
        return RunResult(Status.TIMED_OUT)
    if not answer.startswith(sandbox_child.READY):
        reason = answer.decode("utf-8", "replace").strip() or f"the interpreter ended with status {status}"
        raise SandboxUnavailable(f"foreign code was not run: {reason}")
    verdict = answer.removeprefix(sandbox_child.READY)
    if verdict.startswith(token):
        word, _, detail = verdict.removeprefix(token).decode("utf-8", "replace").partition("\n")
        return RunResult(Status(word), " ".join(detail.split()))
    if status < 0:
        return RunResult(Status.CRASHED, f"killed by {signal.Signals(-status).name}")
    return RunResult(Status.CRASHED, f"exited with status {status} before its check was over")
