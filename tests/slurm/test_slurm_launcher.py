"""`-m hydra/launcher=slurm` on a real Slurm: one array, and the same command again does what is missing."""

from pathlib import Path

import pytest
from cluster import Cluster
from launching import few_samples, launch, submitted, until, wait

pytestmark = [pytest.mark.slurm, pytest.mark.slow]


def test_a_killed_run_alone_is_started_again_by_the_same_command(slurm: Cluster, tmp_path: Path):
    """Of three seeds one is killed: a sweep that starts all three again pays for two of them twice."""
    few_samples(tmp_path / "mine.jsonl")
    # The second run waits until somebody lets it go.
    gate = "until [ $SLURM_ARRAY_TASK_ID != 1 ] || [ -e go ]; do sleep 0.1; done"
    command = (
        *(
            "-m",
            "monitorbench.cli",
            "build",
            "dataset=jsonl",
            "dataset.path=mine.jsonl",
            "dataset.seed=0,1,2",
        ),
        *(f"cluster.setup=['{gate}']", "cluster.cpus=1", "-m", "hydra/launcher=slurm"),
    )
    sweep = submitted(slurm, tmp_path, *command)
    first = ("COMPLETED", "RUNNING", "COMPLETED")
    until(lambda: tuple(slurm.states(sweep.job).get(run) for run in range(3)) == first, "two of three runs")
    queued = launch(slurm, tmp_path, *command)
    assert queued.stdout.startswith("nothing is pending"), "a run in the queue is not submitted again"
    slurm.ask("scancel", "--signal=KILL", f"{sweep.job}_1")
    until(lambda: slurm.states(sweep.job)[1] not in ("RUNNING", "COMPLETING"), "the end of the killed run")

    (tmp_path / "go").touch()
    again = submitted(slurm, tmp_path, *command)
    assert again.sweep == sweep.sweep
    assert wait(slurm, again.job) == {1: "COMPLETED"}
    assert [entry["runs"] for entry in again.manifest()["submissions"]] == [[0, 1, 2], [1]]
    assert all((sweep.sweep / f"run-00{run}.done" / "manifest.json").is_file() for run in range(3))
    log = (sweep.sweep / "run-001.log").read_text().splitlines()
    assert log.count("run 2 of 3, dataset.seed=1") == 1, log
    assert len(list(sweep.sweep.glob("submit-*.sbatch"))) == 2
