"""Sweeps on a real Slurm: one array, true exit codes, and nothing read but what was frozen."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cluster import Cluster
from launching import few_samples, launch, submitted, until, wait

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

SUBMIT = ("slurm/submit.py", "data_build/build.py", "dataset=jsonl", "dataset.path=mine.jsonl")
"""A real script that takes a second."""


def test_a_failing_run_fails_in_slurm_and_alone_is_resumed(slurm: Cluster, checkout: Path):
    """A failed run that Slurm calls COMPLETED breaks every `afterok`; resuming all of them wastes days."""
    few_samples(checkout / "mine.jsonl")
    sweep = submitted(slurm, checkout, *SUBMIT[:3], "dataset.path=mine.jsonl,late.jsonl", "dataset.seed=0,1")
    assert wait(slurm, sweep.job) == {0: "COMPLETED", 1: "COMPLETED", 2: "FAILED", 3: "FAILED"}
    assert slurm.jobs(sweep.job)[2]["ExitCode"] == "1:0"
    shown = launch(slurm, checkout, "slurm/status.py", str(sweep.sweep)).stdout
    assert "2 done, 0 running, 2 failed, 0 pending" in shown
    assert "late.jsonl does not exist" in (sweep.sweep / "run-002.log").read_text()

    few_samples(checkout / "late.jsonl")
    again = submitted(slurm, checkout, "slurm/resume.py", str(sweep.sweep), "cluster.cpus=1")
    assert wait(slurm, again.job) == {2: "COMPLETED", 3: "COMPLETED"}
    assert slurm.jobs(again.job)[2]["NumCPUs"] == "1"
    assert [one["runs"] for one in again.manifest()["submissions"]] == [[0, 1, 2, 3], [2, 3]]
    assert (
        "4 done, 0 running, 0 failed, 0 pending"
        in launch(slurm, checkout, "slurm/status.py", str(sweep.sweep)).stdout
    )
    assert all((sweep.sweep / f"run-{run:03d}.done" / "manifest.json").is_file() for run in range(4))
    assert launch(slurm, checkout, "slurm/resume.py", str(sweep.sweep)).stdout.startswith(
        "nothing is pending"
    )


def test_a_queued_run_ignores_edited_files_and_a_chain_waits(slurm: Cluster, checkout: Path):
    """Working on the next experiment while jobs wait must not change what they run; and a stage that
    starts before its input is there, or after that failed, computes nothing or nonsense."""
    few_samples(checkout / "mine.jsonl")
    first = submitted(slurm, checkout, *SUBMIT, "cluster.options=[--hold]")
    base = checkout / "conf" / "dataset" / "jsonl.yaml"
    base.write_text(base.read_text().replace("seed: 0", "seed: 7").replace("name: jsonl", "name: other"))
    then = submitted(slurm, checkout, *SUBMIT, "dataset.name=later", "--after", str(first.sweep))
    doomed = submitted(slurm, checkout, *SUBMIT[:3], "dataset.path=none.jsonl", "--after", str(first.job))
    never = submitted(slurm, checkout, *SUBMIT, "dataset.name=never", "--after", str(doomed.sweep))
    shown = launch(slurm, checkout, "slurm/status.py", str(then.sweep)).stdout
    assert "0 done, 0 running, 1 queued, 0 failed, 0 pending" in shown
    assert launch(slurm, checkout, "slurm/resume.py", str(then.sweep)).stdout.startswith("nothing is pending")

    slurm.ask("scontrol", "release", str(first.job))
    assert wait(slurm, first.job) == {0: "COMPLETED"}
    assert (first.sweep / "run-000.done").resolve().name.startswith("jsonl-")
    assert wait(slurm, then.job) == {0: "COMPLETED"}
    ended, started = (slurm.jobs(one.job)[0][key] for one, key in ((first, "EndTime"), (then, "StartTime")))
    assert ended <= started
    assert wait(slurm, doomed.job) == {0: "FAILED"}
    assert wait(slurm, never.job) == {0: "CANCELLED"}
    assert "1 pending" in launch(slurm, checkout, "slurm/status.py", str(never.sweep)).stdout


def test_a_bad_point_is_refused_before_anything_is_submitted(slurm: Cluster, checkout: Path):
    """Learning of a typo when the last of a night's runs starts."""
    done = launch(slurm, checkout, *SUBMIT, "seed=0,-1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "error: run 2 of 2, seed=-1: seed=-1: expected greater than or equal to 0"
    ]
    assert not (checkout / "runs" / "sweeps").exists()
    refused = launch(slurm, checkout, *SUBMIT, "cluster.partition=nowhere")
    assert refused.returncode == 1
    assert "invalid partition" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_two_sweeps_at_once_share_no_gpu(slurm: Cluster, checkout: Path):
    """Two trainings on one card run out of memory, or at half the speed, and nobody sees why."""
    if not slurm.has_gpus:
        pytest.skip("pretend GPUs are character devices, which this user may not make here")
    few_samples(checkout / "mine.jsonl")
    # Each run waits for all four: they are known to hold their cards at the same time.
    met = "touch met.$SLURM_JOB_ID; until test $(ls met.* | wc -l) = 4; do sleep 0.1; done"
    gpus = ("cluster.gpus=1", f"cluster.setup=['echo card $CUDA_VISIBLE_DEVICES', '{met}']")
    both = [
        submitted(slurm, checkout, *SUBMIT, f"dataset.name={name}", "dataset.seed=0,1", *gpus)
        for name in ("here", "there")
    ]
    assert [wait(slurm, one.job) for one in both] == [{0: "COMPLETED", 1: "COMPLETED"}] * 2
    logs = [(one.sweep / f"run-00{run}.log").read_text() for one in both for run in (0, 1)]
    assert len({log.splitlines()[0] for log in logs}) == 4, logs
    assert all(log.startswith("card ") for log in logs)


def test_the_launcher_need_not_live(slurm: Cluster, checkout: Path):
    """A lost connection must not lose a night's runs, nor what became of them."""
    few_samples(checkout / "mine.jsonl")
    # sbatch itself kills whoever called it: nothing after that is ever written down.
    shim = checkout / "bin" / "sbatch"
    shim.parent.mkdir()
    shim.write_text('#!/bin/sh\nPATH="${PATH#*:}" sbatch "$@"\nkill -9 $PPID\n')
    shim.chmod(0o755)
    killed = subprocess.run(
        [sys.executable, *SUBMIT],
        cwd=checkout,
        env={**slurm.environment, "PATH": f"{shim.parent}:{slurm.environment['PATH']}"},
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    (sweep,) = (checkout / "runs" / "sweeps").iterdir()
    until((sweep / "run-000.done").is_symlink, "the run")
    assert (sweep / "run-000.done" / "manifest.json").is_file()
    assert "1 done" in launch(slurm, checkout, "slurm/status.py", str(sweep)).stdout
