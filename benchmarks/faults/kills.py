"""Kills at random system calls, and single failing writes, each followed by the same command again.

`strace` counts the writing calls of an undisturbed run, and then kills a run at one of them, drawn at random:
before a write, a rename, an fsync, a truncation, a folder made or removed. The same command is started again,
perhaps killed again, until it ends; then its results have to be those of the undisturbed run.
"""

import ctypes
import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from benchmarks.faults import Outcome
from benchmarks.faults.stages import (
    Ran,
    Stage,
    difference,
    error_line,
    not_one_line,
    results_of,
    run_script,
)

CALLS = (
    "write,writev,pwrite64,rename,renameat,renameat2,fsync,fdatasync,ftruncate,mkdir,mkdirat,"
    "unlink,unlinkat,rmdir"
)
_LINE = re.compile(r"^(?P<call>\w+)\((?P<arguments>.*)$")
_ERRORS = ("ENOSPC", "EIO")
_SHARE_OF_CHAINS = 0.3
_SECONDS = 120.0
_SECONDS_TO_END = 5.0
_PR_SET_CHILD_SUBREAPER = 36


class Call(NamedTuple):
    """A system call of a run's main thread: the n-th of its name, and whether it is on the stage's files."""

    name: str
    number: int
    on_files: bool


class Undisturbed(NamedTuple):
    """A stage's run without faults."""

    calls: list[Call]
    results: dict[str, Any]
    seconds: float


class Ended(NamedTuple):
    """How one start of a command ended."""

    ran: Ran
    log: str
    """The log of strace."""
    left_running: str
    """A process of the command's that outlived it; empty where none did."""


def missing_tool() -> str:
    """Why there can be no kills here; empty where there can."""
    if shutil.which("strace") is None:
        return "strace is missing: make system-deps (Debian's package strace)"
    return ""


def undisturbed(stage: Stage, folder: Path) -> Undisturbed:
    """Run a stage once, and note its calls and results. Raises `RuntimeError` where it fails by itself."""
    root = _fresh(stage, folder)
    began = time.monotonic()
    ended = _start(stage, root, folder, "")
    seconds = time.monotonic() - began
    if ended.ran.code:
        raise RuntimeError(f"{stage.name} fails without any fault: {ended.ran.said[-500:]}")
    return Undisturbed(_calls(ended.log, root), results_of(root), seconds)


def kill(stage: Stage, expected: Undisturbed, seed: int, number: int, folder: Path) -> Outcome:
    """Kill a stage, once or in a chain, and start it again until it ends."""
    kind, case = f"kill {stage.name}", f"{stage.name}:{number}"
    draw = random.Random(f"{seed} kill {case}")
    root = _fresh(stage, folder)
    hit: list[str] = []
    left = ""
    while True:
        fault = ""
        if not hit or (len(hit) < 4 and draw.random() < _SHARE_OF_CHAINS):
            call = _drawn(expected.calls, draw)
            fault = f"{call.name}:signal=SIGKILL:when={call.number}"
        ended = _start(stage, root, folder, fault)
        if ended.ran.code != -signal.SIGKILL:
            break
        hit.append(fault)
        left = left or ended.left_running
    why = f"left running: {left}" if left else _fault_of(ended, root, expected.results)
    where = " then ".join(hit) or "not hit"
    return Outcome(kind, case, "silent" if why else "undisturbed", f"{why}; {where}" if why else where)


def kills_in(outcome: Outcome) -> int:
    """How many kills of a chain hit."""
    return outcome.why.count("signal=SIGKILL")


def failing_write(stage: Stage, expected: Undisturbed, seed: int, number: int, folder: Path) -> Outcome:
    """Let one call on a stage's files fail as on a full or broken disk, then run the command again."""
    case = f"disk {stage.name}:{number}"
    draw = random.Random(f"{seed} {case}")
    root = _fresh(stage, folder)
    call = draw.choice([call for call in expected.calls if call.on_files])
    fault = f"{call.name}:error={draw.choice(_ERRORS)}:when={call.number}"
    kind = f"disk {stage.name}"
    first = _start(stage, root, folder, fault)
    last = _start(stage, root, folder, "") if first.ran.code else first
    why = _fault_of(last, root, expected.results)
    if first.ran.code and not why:
        why = not_one_line(first.ran.said)
    if why:
        return Outcome(kind, case, "silent", f"{why}; {fault}")
    return Outcome(kind, case, "refused" if first.ran.code else "undisturbed", fault)


def _drawn(calls: Sequence[Call], draw: random.Random) -> Call:
    """A call: every kind of call on the stage's files alike, so that rare ones are hit too; else any."""
    own = [call for call in calls if call.on_files]
    if draw.random() < 0.25 or not own:
        return draw.choice(calls)
    name = draw.choice(sorted({call.name for call in own}))
    return draw.choice([call for call in own if call.name == name])


def _fault_of(last: Ended, root: Path, expected: Mapping[str, Any]) -> str:
    """Say what is wrong after the last start; empty where nothing is."""
    if last.ran.code:
        return f"the same command again ends with {last.ran.code}: {error_line(last.ran.said)}"
    return difference(results_of(root), expected)


def _fresh(stage: Stage, folder: Path) -> Path:
    """An empty folder for a stage, of one name for all cases: some results name their place."""
    root = folder / "root"
    shutil.rmtree(folder, ignore_errors=True)
    root.mkdir(parents=True)
    stage.before(root)
    return root


def _start(stage: Stage, root: Path, folder: Path, fault: str) -> Ended:
    """Start the stage's command with a fault, or only with strace's eyes on it, and wait for its end."""
    log = folder / "strace"
    log.write_bytes(b"")
    tracers = []

    def attach(pid: int) -> None:
        # Not the threads and children: those that die with the stage are looked after below.
        command = ["strace", "-y", "-s", "0", "-o", str(log), "-e", f"trace={CALLS}", "-p", str(pid)]
        command += ["-e", f"inject={fault}"] if fault else []
        nowhere = subprocess.DEVNULL
        tracers.append(subprocess.Popen(command, stdin=nowhere, stderr=nowhere))
        _wait_for_tracer(pid, tracers[0])

    ran = run_script(stage.script, stage.arguments(root), folder / "said", _SECONDS, attach)
    tracers[0].wait()
    return Ended(ran, log.read_text(errors="replace"), _left_running())


def _wait_for_tracer(pid: int, tracer: "subprocess.Popen[bytes]") -> None:
    status = Path(f"/proc/{pid}/status")
    while "TracerPid:\t0\n" in status.read_text():
        if tracer.poll() is not None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise RuntimeError("strace can't attach to a process here")
        time.sleep(0.002)


def _calls(log: str, root: Path) -> list[Call]:
    """The calls in a log of strace's, numbered as its `when=` counts them: by name."""
    counts: Counter[str] = Counter()
    found = []
    for line in log.splitlines():
        if match := _LINE.match(line):
            counts[match["call"]] += 1
            found.append(Call(match["call"], counts[match["call"]], str(root) in match["arguments"]))
    return found


def adopt_orphans() -> None:
    """Have the children of killed stages become this process's, so that it sees who outlives them."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _left_running() -> str:
    """Wait for the children of an ended stage to end, too; the command line of one that doesn't."""
    _, alive = psutil.wait_procs(psutil.Process().children(), _SECONDS_TO_END)
    for one in alive:
        one.kill()
    psutil.wait_procs(alive, 1)
    return " ".join(alive[0].cmdline()) if alive else ""
