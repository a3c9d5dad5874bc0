"""The file that Slurm gets."""

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from monitorbench.config.study import Cluster
from monitorbench.sweeps.slurm import script_text
from monitorbench.sweeps.sweep import Manifest, Sweep

CLUSTER = Cluster(
    name="h100",
    partition="gpu",
    account="lab",
    gpus=2,
    gpu_type="h100",
    cpus=12,
    memory="120G",
    time="1-12:00:00",
    grace_seconds=300,
    parallel=4,
    options=("--constraint=nvlink&ib",),
    setup=("module load cuda/12.8",),
)


def _sweep(folder: str = "/shared/my study") -> Sweep:
    manifest = Manifest(
        script=f"{folder}/train/sft.py", folder=Path(folder), overrides=(), points=(), git_commit=None
    )
    return Sweep(Path(f"{folder}/runs/sweeps/sft-0123456789ab"), manifest)


def test_everything_the_cluster_config_says_is_asked_for():
    """A setting that never reaches Slurm is a job that waits for, or is billed to, the wrong thing."""
    text = script_text(_sweep(), CLUSTER, range(6), after=(41, 42))
    asked = re.findall(r'^#SBATCH "?(--.*?)"?$', text, flags=re.MULTILINE)
    assert {
        "--partition=gpu",
        "--account=lab",
        "--gres=gpu:h100:2",
        "--cpus-per-task=12",
        "--mem=120G",
        "--time=1-12:00:00",
        "--signal=B:USR1@300",
        "--requeue",
        "--open-mode=append",
        "--array=0-5%4",
        "--dependency=afterok:41:42",
        "--kill-on-invalid-dep=yes",
        "--constraint=nvlink&ib",
        "--chdir=/shared/my study",
        "--output=/shared/my study/runs/sweeps/sft-0123456789ab/run-%3a.log",
    } <= set(asked)
    lines = text.splitlines()
    assert lines[0] == "#!/usr/bin/env bash"
    assert lines.index("set -euo pipefail") < lines.index("module load cuda/12.8") < len(lines) - 1
    assert all('"' in line for line in lines if line.startswith("#SBATCH") and "my study" in line)
    checked = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_what_is_not_set_is_left_to_the_cluster():
    """An empty `--partition=` is an error to Slurm, not its default."""
    bare = CLUSTER.model_copy(
        update=dict.fromkeys(("partition", "account", "memory", "time", "parallel", "gpu_type")) | {"gpus": 0}
    )
    text = script_text(_sweep(), bare, [0])
    assert not re.search(r"--(partition|account|mem|time|gres|dependency)|None|%\d*\n", text)
    assert "--array=0\n" in text


@given(st.sets(st.integers(0, 400), min_size=1))
def test_an_array_holds_exactly_the_runs(runs: set[int]):
    """A range that covers one run too many does a finished one again; one too few forgets it."""
    (array,) = re.findall(r"--array=(\S+)%4", script_text(_sweep(), CLUSTER, sorted(runs)))
    ends = [[int(end) for end in part.split("-")] for part in array.split(",")]
    assert [run for part in ends for run in range(part[0], part[-1] + 1)] == sorted(runs)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("time", "soon"),
        ("memory", "much"),
        ("gpus", -1),
        ("options", ["-p"]),
        ("setup", ["a\nb"]),
        ("cpus", 0),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(key: str, value: object):
    """sbatch would say so too, but later, and of some only after the job has waited."""
    with pytest.raises(ValidationError):
        Cluster.model_validate({**CLUSTER.model_dump(), key: value})
