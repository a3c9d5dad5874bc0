"""Submits a sweep to Slurm as one array job of frozen studies, and finds the state of each run.

A run's state comes from the markers that its worker leaves, then from the queue, then from what Slurm
remembers. Sites put banners into what Slurm's commands print, and their own text into a job's comment: a
line counts only where it has the form that was asked for and names a job of the manifest. A submission
whose job's id is unknown is looked for by the job's name.
"""

import json
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from monitorbench.config.base import UserError
from monitorbench.config.study import Cluster
from monitorbench.sweeps.sweep import Submission, Sweep, swept

_WIDTH = 80


class State(StrEnum):
    """State of one run."""

    DONE = "done"
    RUNNING = "running"
    QUEUED = "queued"
    FAILED = "failed"
    PENDING = "pending"
    """The run is neither done nor failed, and not in Slurm's hands."""


class RunState(NamedTuple):
    """State of one run, with a note: its exit code, its job, or Slurm's word for its end."""

    state: State
    note: str = ""


_ENDED_BADLY = {"FAILED", "OUT_OF_MEMORY", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "DEADLINE"}
"""Slurm's states of a run that left no marker because its worker was killed too."""
_ENDED = {*_ENDED_BADLY, "COMPLETED", "CANCELLED", "PREEMPTED", "REVOKED"}
"""Slurm's states of a job that has left the queue; some wrappers have squeue list such jobs, too."""
_WAITING = {
    "PENDING",
    "REQUEUED",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "RESV_DEL_HOLD",
    "SPECIAL_EXIT",
    "SUSPENDED",
}


def script_text(sweep: Sweep, cluster: Cluster, runs: Sequence[int], after: Sequence[int] = ()) -> str:
    """Write the sbatch file for some runs of a sweep, to start once the jobs `after` all went well."""
    gres = f"gpu:{cluster.gpu_type}:{cluster.gpus}" if cluster.gpu_type else f"gpu:{cluster.gpus}"
    limit = f"%{cluster.parallel}" if cluster.parallel else ""
    options = [
        f"--job-name={sweep.path.name}",
        f"--comment={sweep.path}",  # for people; a site may put its own text there
        f"--array={_ranges(runs)}{limit}",
        f"--chdir={sweep.manifest.folder}",
        f"--output={sweep.path}/run-%3a.log",
        "--open-mode=append",
        *([f"--partition={cluster.partition}"] if cluster.partition else []),
        *([f"--account={cluster.account}"] if cluster.account else []),
        *([f"--gres={gres}"] if cluster.gpus else []),
        "--nodes=1",
        "--ntasks=1",
        f"--cpus-per-task={cluster.cpus}",
        *([f"--mem={cluster.memory}"] if cluster.memory else []),
        *([f"--time={cluster.time}"] if cluster.time else []),
        f"--signal=B:USR1@{cluster.grace_seconds}",
        "--requeue",
        *(
            [f"--dependency=afterok:{':'.join(map(str, after))}", "--kill-on-invalid-dep=yes"]
            if after
            else []
        ),
        *cluster.options,
    ]
    worker = [sys.executable, "-m", "monitorbench.sweeps.worker", str(sweep.path)]
    return "\n".join(
        [
            "#!/usr/bin/env bash",
            # Quotes around what has blanks or a comment's sign, as sbatch reads it from a file.
            *("#SBATCH " + (f'"{o}"' if re.search(r"[\s#]", o) else o) for o in options),
            "set -euo pipefail",
            "trap '' USR1  # until the worker listens",
            'export OMP_NUM_THREADS="${SLURM_CPUS_PER_TASK:-1}"',
            *cluster.setup,
            f'exec {shlex.join(worker)} "$SLURM_ARRAY_TASK_ID"',
            "",
        ]
    )


def submit(sweep: Sweep, cluster: Cluster, runs: Sequence[int], after: Sequence[int]) -> int:
    """Submit some runs as one array job; returns the job's id.

    The submission stands in the manifest before sbatch is called, without an id: whoever resumes then
    knows of it, also where this process is killed meanwhile.

    Raises:
        UserError: with Slurm's own words where it refuses; with what sbatch printed where that has no id.

    """
    path = sweep.path / f"submit-{len(list(sweep.path.glob('submit-*.sbatch')))}.sbatch"
    path.write_text(script_text(sweep, cluster, runs, after), encoding="utf-8")
    sweep.submitted(runs)
    try:
        printed = _ask("sbatch", "--parsable", str(path))
    except UserError:
        path.unlink()
        sweep.write()
        raise
    lines = [line.strip() for line in printed.splitlines()]
    ids = [match for line in lines if (match := _JOB_ID.fullmatch(line))]
    if not ids:
        raise UserError(
            f"sbatch: printed {' '.join(printed.split()) or 'nothing'}; expected a job's id. The runs may "
            f"be queued: `squeue --me --name={sweep.path.name}` shows them, and resuming asks for that name"
        )
    job = int(ids[-1]["job"])
    sweep.submitted(runs, job, ids[-1]["cluster"])
    return job


_JOB_ID = re.compile(r"(?:Submitted batch job )?(?P<job>\d+)(?:(?:;| on cluster )(?P<cluster>[\w.-]+))?")
"""A line of sbatch's with the job's id: `4242`, `4242;CLUSTER`, or what it prints without --parsable."""


def states(sweep: Sweep) -> list[RunState]:
    """Find the state of each run.

    Raises:
        UserError: where runs without a marker were submitted and the queue can't be read.

    """
    runs = range(len(sweep.manifest.points))
    marked = [_from_markers(sweep, run) for run in runs]
    if all(state is not None for state in marked):
        return [state for state in marked if state]
    queued, ended = dict[int, RunState](), dict[int, RunState]()
    for cluster in dict.fromkeys(submission.cluster for submission in sweep.manifest.submissions):
        queued |= _in_queue(sweep, cluster)
    for submission in sweep.manifest.submissions:  # the last one counts
        for run, word in _remembered(sweep, submission):
            note = "" if word == "PENDING" else word.lower()
            ended[run] = RunState(State.FAILED if word in _ENDED_BADLY else State.PENDING, note)
    return [marked[run] or queued.get(run) or ended.get(run) or RunState(State.PENDING) for run in runs]


def failed_or_pending(sweep: Sweep) -> list[int]:
    """List the runs that failed or never ran."""
    return [run for run, (state, _) in enumerate(states(sweep)) if state in (State.FAILED, State.PENDING)]


def overview(sweep: Sweep, run_states: Sequence[RunState]) -> str:
    """Show the counts and a line for each run, at most 80 columns wide."""
    counts = {state: sum(run.state is state for run in run_states) for state in State}
    counted = ", ".join(f"{n} {state}" for state, n in counts.items() if n or state is not State.QUEUED)
    width = max(len(run.note) for run in run_states)
    lines = [sweep.path.name, counted, ""]
    for number, (run, overrides) in enumerate(zip(run_states, swept(sweep.manifest.points), strict=True)):
        lines.append(f"{number:03d}  {run.state:<7}  {run.note:<{width}}  {' '.join(overrides)}".rstrip())
    return "\n".join(line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…" for line in lines)


def _from_markers(sweep: Sweep, run: int) -> RunState | None:
    """Read what the run's worker left behind; None where it left nothing that decides."""
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
    """Whether that process is still the worker; its number may have gone to another process."""
    try:
        return os.fsencode(sweep) in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _in_queue(sweep: Sweep, cluster: str | None) -> dict[int, RunState]:
    """Find the runs that Slurm has running or waiting on a cluster, by default its own."""
    submitted = [entry for entry in sweep.manifest.submissions if entry.cluster == cluster]
    by_job = {entry.job: entry.runs for entry in submitted if entry.job is not None}
    unknown = [run for entry in submitted if entry.job is None for run in entry.runs]
    states_of_runs: dict[int, RunState] = {}
    where = [f"--clusters={cluster}"] if cluster else []
    asked = ["--noheader", "--array", f"--user={os.getuid()}", "--format=%K|%T|%F|%j|%k"]
    for line in _ask("squeue", *where, *asked).splitlines():
        task, word, job, name, comment = [*(field.strip() for field in line.split("|")), *[""] * 4][:5]
        match = re.fullmatch(r"(\d+)(?:_([^;]*))?(?:[+;].*)?", job)
        if not match or not re.fullmatch(r"[A-Z_]+", word) or word in _ENDED:
            continue
        runs = by_job.get(int(match[1]))
        # The same study may be submitted from another folder: its jobs have the same name.
        if runs is None and unknown and name == sweep.path.name and not _is_of_another(comment, sweep.path):
            runs = tuple(unknown)
        note = f"job {match[1]}" + ("" if word in ("PENDING", "RUNNING") else f" {word.lower()}")
        state = RunState(State.QUEUED if word in _WAITING else State.RUNNING, note)
        for run in _tasks(task if re.search(r"\d", task) else match[2] or "", runs or ()):
            # Of a run that is listed twice, as an array not yet split up and as a task, the task counts.
            if run not in states_of_runs or task.isdigit():
                states_of_runs[run] = state
    return states_of_runs


def _is_of_another(comment: str, sweep: Path) -> bool:
    """Whether a job's comment names a sweep of the same name in another folder."""
    return comment != str(sweep) and comment.endswith(f"/sweeps/{sweep.name}")


def _tasks(text: str, runs: Collection[int]) -> list[int]:
    """List those of `runs` that `3`, `0-3%2` or `[0,2-8:2]` names; all where `...` ends the text."""
    text = text.strip("[]").partition("%")[0]
    if text.endswith("..."):
        return list(runs)
    tasks = set[int]()
    for span in text.split(","):
        if not (match := re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", span)):
            return []
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        tasks |= set(runs) & set(range(first, min(last, max(runs, default=0)) + 1, max(step, 1)))
    return sorted(tasks)


def _remembered(sweep: Sweep, submission: Submission) -> Iterator[tuple[int, str]]:
    """Find Slurm's words for a submission's runs: sacct's, else those of its controller, which forgets."""
    answers: list[tuple[int, str, str]] = []
    where = [f"--clusters={submission.cluster}"] if submission.cluster else []
    job, name = submission.job, sweep.path.name
    since = datetime.fromisoformat(submission.at).astimezone()
    named = [f"--name={name}", f"--starttime={since:%Y-%m-%dT%H:%M:%S}"]
    try:
        asked = [f"--jobs={job}"] if job else named
        text = _ask("sacct", *where, "-n", "-P", "-X", *asked, "--format=JobID,State")
        rows = re.findall(r"^\s*(\d+)_([^|\s]+)\s*\|\s*([A-Z_]+)", text, re.MULTILINE)
        answers = [(int(array), tasks, word) for array, tasks, word in rows]
    except UserError:  # no accounting here
        pass
    if not answers:
        try:
            text = _ask("scontrol", *where, "show", "job", "--oneliner", *([str(job)] if job else []))
        except UserError:
            return
        for row in text.splitlines():
            facts = dict(re.findall(r"(?:^|\s)(ArrayJobId|ArrayTaskId|JobName|JobState|Comment)=(\S+)", row))
            is_named = facts.get("JobName") == name and not _is_of_another(
                facts.get("Comment", ""), sweep.path
            )
            if {"ArrayTaskId", "JobState"} <= facts.keys() and (job or is_named):
                array = facts.get("ArrayJobId", str(job or 0))
                answers.append((int(array), facts["ArrayTaskId"], facts["JobState"]))
    others = {entry.job for entry in sweep.manifest.submissions} - {job}
    for array, tasks, word in answers:
        if array not in others and job in (None, array):
            yield from ((run, word) for run in _tasks(tasks, submission.runs))


def _ask(command: str, *arguments: str) -> str:
    """Ask one of Slurm's commands what it prints; `UserError` where it is missing or fails.

    A person's defaults for squeue and sacct would hide jobs from us.
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SQUEUE_", "SACCT_"))}
    try:
        done = subprocess.run(
            [command, *arguments],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            env=environment,
        )
    except FileNotFoundError as error:
        raise UserError(f"{command}: no Slurm on this machine; --local runs a sweep without it") from error
    if done.returncode:
        reason = " ".join((done.stderr or done.stdout).split()) or f"exit code {done.returncode}"
        raise UserError(f"{command}: {reason.removeprefix(f'{command}: error: ')}")
    return done.stdout


def _ranges(runs: Sequence[int]) -> str:
    """Write `0,2-4` for [0, 2, 3, 4]."""
    ordered = sorted(runs)
    starts = [ordered[0], *(b for a, b in pairwise(ordered) if b != a + 1)]
    ends = [*(a for a, b in pairwise(ordered) if b != a + 1), ordered[-1]]
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))
