"""What became of every run of a sweep: its markers, then the queue, then what Slurm remembers."""

import json
import os
import re
import socket
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from monitorbench.config.base import UserError
from monitorbench.sweeps.expand import swept
from monitorbench.sweeps.manifest import Sweep
from monitorbench.sweeps.sbatch import ask

_WIDTH = 80


class State(StrEnum):
    """Of one run."""

    DONE = "done"
    RUNNING = "running"
    QUEUED = "queued"
    FAILED = "failed"
    PENDING = "pending"
    """Neither done nor failed, and not in Slurm's hands."""


class RunState(NamedTuple):
    """One run's state, and a word on it: an exit code, a job, what Slurm calls its end."""

    state: State
    note: str = ""


_ENDED_BADLY = {"FAILED", "OUT_OF_MEMORY", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "DEADLINE"}
"""Slurm's states of a run that left no marker because its worker was killed too."""


def states(sweep: Sweep) -> list[RunState]:
    """The state of each run.

    Raises:
        UserError: where runs without a marker were submitted and the queue can't be read.

    """
    runs = range(len(sweep.manifest.points))
    marked = [_from_markers(sweep, run) for run in runs]
    if all(one is not None for one in marked):
        return [one for one in marked if one]
    # A launcher that was killed may have submitted without writing the job's id down.
    handed_over = bool(sweep.manifest.submissions) or any(sweep.path.glob("submit-*.sbatch"))
    queue = _queue(sweep.path) if handed_over else {}
    ended = _ended([one.job for one in sweep.manifest.submissions])
    return [marked[run] or queue.get(run) or ended.get(run) or RunState(State.PENDING) for run in runs]


def failed_or_pending(sweep: Sweep) -> list[int]:
    """The runs that failed or never ran."""
    return [run for run, (state, _) in enumerate(states(sweep)) if state in (State.FAILED, State.PENDING)]


def overview(sweep: Sweep, found: Sequence[RunState]) -> str:
    """The counts and a line a run, at most 80 columns wide."""
    counts = {state: sum(one.state is state for one in found) for state in State}
    counted = ", ".join(f"{n} {state}" for state, n in counts.items() if n or state is not State.QUEUED)
    notes = max(len(one.note) for one in found)
    lines = [sweep.path.name, counted, ""]
    for run, (one, overrides) in enumerate(zip(found, swept(sweep.manifest.points), strict=True)):
        lines.append(f"{run:03d}  {one.state:<7}  {one.note:<{notes}}  {' '.join(overrides)}".rstrip())
    return "\n".join(line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…" for line in lines)


def _from_markers(sweep: Sweep, run: int) -> RunState | None:
    if sweep.file(run, "done").is_symlink():
        return RunState(State.DONE)
    try:
        running = json.loads(sweep.file(run, "running").read_text())
    except FileNotFoundError:
        running = None
    # Elsewhere it's for Slurm to say; a worker that was killed leaves this marker behind.
    if running and running["host"] == socket.gethostname() and _is_worker(running["pid"], sweep.path):
        return RunState(State.RUNNING, f"job {running['job']}" if running["job"] else f"pid {running['pid']}")
    try:
        return RunState(State.FAILED, f"exit {sweep.file(run, 'failed').read_text().strip()}")
    except FileNotFoundError:
        return None


def _is_worker(pid: int, sweep: Path) -> bool:
    """Whether that process is still the worker; its number may have gone to another one."""
    try:
        return os.fsencode(sweep) in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _queue(sweep: Path) -> dict[int, RunState]:
    """The runs that Slurm has running or waiting."""
    found: dict[int, RunState] = {}
    asked = ["squeue", "--noheader", "--array", f"--user={os.getuid()}", "--format=%K|%T|%F|%k"]
    for line in ask(asked).splitlines():
        task, state, job, comment = line.split("|", 3)
        if comment == str(sweep) and task.isdigit():
            is_waiting = state in ("PENDING", "REQUEUED", "REQUEUE_HOLD", "SUSPENDED")
            note = f"job {job}" + ("" if state in ("PENDING", "RUNNING") else f" {state.lower()}")
            found[int(task)] = RunState(State.QUEUED if is_waiting else State.RUNNING, note)
    return found


def _ended(jobs: Sequence[int]) -> dict[int, RunState]:
    """What Slurm remembers of runs that left the queue; the last submission counts."""
    found: dict[int, RunState] = {}
    for job in jobs:
        for run, state in _remembered(job):
            bad = state in _ENDED_BADLY
            found[run] = RunState(State.FAILED if bad else State.PENDING, state.lower())
    return found


def _remembered(job: int) -> list[tuple[int, str]]:
    try:
        asked = ask(["sacct", "-n", "-P", "-X", "-j", str(job), "--format=JobID,State"])
        pattern = r"^\d+_(\d+)\|([A-Z_]+)"
    except UserError:  # no accounting here: the controller itself remembers for a while
        try:
            asked = ask(["scontrol", "show", "job", "--oneliner", str(job)])
        except UserError:
            return []
        pattern = r"\bArrayTaskId=(\d+) .*?\bJobState=([A-Z_]+)"
    return [(int(run), state) for run, state in re.findall(pattern, asked, flags=re.MULTILINE)]
