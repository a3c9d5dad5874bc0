"""The launcher as a person uses it, against the private cluster."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from cluster import Cluster

ENDED = {"COMPLETED", "FAILED", "CANCELLED"}


class Submitted(NamedTuple):
    """What submit.py or resume.py printed."""

    job: int
    sweep: Path

    def manifest(self) -> dict[str, Any]:
        return dict(json.loads((self.sweep / "manifest.json").read_text()))


def launch(slurm: Cluster, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`python slurm/...` in a folder."""
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=folder, env=slurm.environment, capture_output=True, text=True, check=False
    )


def submitted(slurm: Cluster, folder: Path, *arguments: str) -> Submitted:
    """The same, for what submits."""
    done = launch(slurm, folder, *arguments)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    return Submitted(int(said[0].split()[1].rstrip(":")), folder / said[-1])


def wait(slurm: Cluster, job: int, seconds: float = 600) -> dict[int, str]:
    """Slurm's states of an array job's tasks, once all have ended."""
    try:
        until(lambda: (found := slurm.states(job)) and set(found.values()) <= ENDED, f"job {job}", seconds)
    except AssertionError as error:
        raise AssertionError(f"{error}: {slurm.jobs(job)}") from None
    return slurm.states(job)


def until(ready: Callable[[], object], what: str, seconds: float = 600) -> None:
    """Look again and again until something is so."""
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, f"{what}: not within {seconds:.0f} s"
        time.sleep(0.1)


def write_samples(path: Path, responses: Iterable[tuple[str, str, str]]) -> Path:
    """A team's own file, from (pair, response, label)."""
    rows = [
        {
            "pair_id": pair,
            "group_id": pair,
            "request": f"What is new in {pair}?",
            "response": response,
            "label": label,
            "category": "safety_permission",
            "task": "qa",
            "licence": "Apache-2.0",
        }
        for pair, response, label in responses
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def few_samples(path: Path, about: str = "folder") -> Path:
    return write_samples(
        path,
        [
            (f"{about}-{n}", f"I {what} {about} {n}.", label)
            for n in range(40)
            for what, label in (("deleted", "misbehavior"), ("listed", "benign"))
        ],
    )
