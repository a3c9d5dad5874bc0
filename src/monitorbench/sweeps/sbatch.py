"""What is submitted to Slurm: one array job that reads frozen studies only; and queries about it."""

import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from monitorbench.config.base import UserError
from monitorbench.config.cluster import Cluster
from monitorbench.sweeps.manifest import Sweep


def script_text(sweep: Sweep, cluster: Cluster, runs: Sequence[int], after: Sequence[int] = ()) -> str:
    """The sbatch file for some runs of a sweep, to start once the jobs `after` all went well."""
    gres = f"gpu:{cluster.gpu_type}:{cluster.gpus}" if cluster.gpu_type else f"gpu:{cluster.gpus}"
    limit = f"%{cluster.parallel}" if cluster.parallel else ""
    options = [
        f"--job-name={sweep.path.name}",
        f"--comment={sweep.path}",  # how status.py finds it, even where the launcher died at once
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
            *(f"#SBATCH {_quoted(option)}" for option in options),
            "set -euo pipefail",
            "trap '' USR1  # until the worker listens",
            'export OMP_NUM_THREADS="${SLURM_CPUS_PER_TASK:-1}"',
            *cluster.setup,
            f'exec {shlex.join(worker)} "$SLURM_ARRAY_TASK_ID"',
            "",
        ]
    )


def submit(path: Path) -> int:
    """Hand an sbatch file over; returns the array job's id. `UserError` with Slurm's own words."""
    job = ask(["sbatch", "--parsable", str(path)])
    return int(job.strip().split(";")[0])


def ask(command: Sequence[str]) -> str:
    """What one of Slurm's commands prints; `UserError` where it is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise UserError(f"{command[0]}: no Slurm on this machine; --local runs a sweep without it") from error
    if done.returncode:
        raise UserError(f"{command[0]}: {' '.join(done.stderr.split()) or f'exit code {done.returncode}'}")
    return done.stdout


def _ranges(runs: Sequence[int]) -> str:
    """`0,2-4` for [0, 2, 3, 4]."""
    ordered = sorted(runs)
    starts = [ordered[0], *(b for a, b in pairwise(ordered) if b != a + 1)]
    ends = [*(a for a, b in pairwise(ordered) if b != a + 1), ordered[-1]]
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


def _quoted(option: str) -> str:
    """An option as sbatch reads it from a file: quotes around what has blanks or a comment's sign."""
    return f'"{option}"' if re.search(r"[\s#]", option) else option
