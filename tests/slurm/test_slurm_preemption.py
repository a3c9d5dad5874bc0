"""A training that Slurm takes its node away from, for whichever reason: it goes on, and nobody can tell."""

import json
import re
from pathlib import Path

import pytest
from cluster import N_CPUS, Cluster
from launching import ENDED, Submitted, few_samples, launch, submitted, until, wait, write_samples
from small_models import planted_samples, tiny_model

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

STEPS = 200


def training(checkout: Path, steps: int) -> list[str]:
    """What submits a small training; nothing but a preemption saves a checkpoint of it."""
    model = tiny_model(checkout / "tiny")
    samples = planted_samples(40, seed=0)
    write_samples(
        checkout / "mine.jsonl", [(s.pair_id, s.response[0].content, s.label.value) for s in samples]
    )
    given = f"""slurm/submit.py train/sft.py dataset=jsonl dataset.path=mine.jsonl monitor.path={model}
        training.dtype=float32 training.device=cpu training.batch_size=4 training.learning_rate=0.01
        training.max_steps={steps} training.checkpoint_every=100000 training.validate_every=20
        tracking=none cluster.cpus=1"""
    return given.split()


def test_a_preempted_training_ends_with_the_same_adapter(slurm: Cluster, checkout: Path):
    """A preemption that costs the run, or changes its result, makes cheap partitions unusable."""
    from safetensors.numpy import load_file

    settings = training(checkout, STEPS)
    disturbed = submitted(slurm, checkout, *settings)
    curves = checkout / "runs" / "train"
    until(lambda: _reached(checkout) >= 20, "step 20")
    slurm.ask("scancel", "--batch", "--signal=USR1", f"{disturbed.job}_0")
    until(lambda: slurm.jobs(disturbed.job)[0]["Restarts"] == "1", "the requeue")
    (checkpoint,) = curves.glob("*/checkpoints/checkpoint-*")
    assert 20 <= int(checkpoint.name.rpartition("-")[2]) < STEPS
    assert (
        "0 done, 0 running, 1 queued, 0 failed, 0 pending"
        in launch(slurm, checkout, "slurm/status.py", str(disturbed.sweep)).stdout
    )
    # In the second in which it was killed Slurm refuses to start it again: "Job credential revoked".
    slurm.ask("scontrol", "update", f"JobId={disturbed.job}_0", "StartTime=now+3")
    assert wait(slurm, disturbed.job) == {0: "COMPLETED"}
    log = (disturbed.sweep / "run-000.log").read_text()
    assert f"resuming from step {checkpoint.name.rpartition('-')[2]}" in log

    undisturbed = submitted(slurm, checkout, *settings, "paths.runs=quiet")
    assert wait(slurm, undisturbed.job) == {0: "COMPLETED"}
    one, other = ((s.sweep / "run-000.done").resolve() for s in (disturbed, undisturbed))
    assert one.name == other.name
    assert one != other
    got, expected = (load_file(d / "adapter" / "adapter_model.safetensors") for d in (one, other))
    assert got.keys() == expected.keys()
    assert max(abs(got[key] - expected[key]).max() for key in expected) < 1e-6
    assert any(abs(value).max() > 1e-3 for value in expected.values())
    assert json.loads((one / "learning_curve.json").read_text()) == json.loads(
        (other / "learning_curve.json").read_text()
    )


ENDLESS = 1_000_000
"""Steps that no machine does in a minute: such a training ends by being cancelled."""


def _reached(checkout: Path) -> int:
    """The last step on the training's curve."""
    found = [json.loads(c.read_text()) for c in checkout.glob("runs/train/*/learning_curve.json")]
    return max((points[-1]["step"] for points in found), default=0)


def _goes_on(slurm: Cluster, run: Submitted, checkout: Path) -> None:
    """The run was put back into the queue, and goes on from a checkpoint; then it is cancelled."""
    log = run.sweep / "run-000.log"
    hurried = set()

    def resumed() -> bool:
        # Told to stop before its first step it has saved nothing, and goes round once more.
        facts = slurm.jobs(run.job)[0]
        if facts["JobState"] == "PENDING" and facts["Restarts"] not in {"0", *hurried}:
            hurried.add(facts["Restarts"])
            slurm.ask("scontrol", "update", f"JobId={run.job}_0", "StartTime=now+3", "TimeLimit=60")
        assert facts["JobState"] not in ENDED, (facts, log.read_text())
        return log.is_file() and "resuming from step" in log.read_text()

    until(resumed, "the start from a checkpoint", 900)
    step = int(re.findall(r"resuming from step (\d+)", log.read_text())[-1])
    assert step > 0
    until(lambda: _reached(checkout) > step, "a step beyond the checkpoint")
    slurm.ask("scancel", str(run.job))
    assert wait(slurm, run.job) == {0: "CANCELLED"}


def test_a_time_limit_is_told_beforehand(slurm: Cluster, checkout: Path):
    """Where the limit is shorter than the run, each of its jobs would otherwise begin at step 0 again."""
    run = submitted(
        slurm,
        checkout,
        *training(checkout, ENDLESS),
        *("cluster.time=01:00:00", "cluster.grace_seconds=10"),
    )
    until(lambda: _reached(checkout) >= 20, "step 20")
    # Now the limit is near. Slurm looks every half minute, and tells the run as much earlier.
    minutes = slurm.jobs(run.job)[0]["RunTime"].split(":")
    limit = 60 * int(minutes[0]) + int(minutes[1]) + 1
    slurm.ask("scontrol", "update", f"JobId={run.job}_0", f"TimeLimit={limit}")
    _goes_on(slurm, run, checkout)
    assert ": stopped, to be resumed\n" in (run.sweep / "run-000.log").read_text()


def test_a_preempting_partition_gets_its_node_and_gives_it_back(slurm: Cluster, checkout: Path):
    """On cheap partitions a run is put out again and again: it has to save itself without being asked to."""
    run = submitted(slurm, checkout, *training(checkout, ENDLESS), "cluster.partition=cheap")
    until(lambda: _reached(checkout) >= 20, "step 20")
    few_samples(checkout / "urgent.jsonl")
    urgent = submitted(
        slurm,
        checkout,
        *("slurm/submit.py", "data_build/build.py", "dataset=jsonl", "dataset.path=urgent.jsonl"),
        *("cluster.partition=urgent", f"cluster.cpus={N_CPUS}"),
    )
    assert wait(slurm, urgent.job) == {0: "COMPLETED"}
    assert slurm.jobs(run.job)[0]["Restarts"] == "1"  # nothing but the other job asked it to go
    (checkpoint,) = checkout.glob("runs/train/*/checkpoints/checkpoint-*")
    _goes_on(slurm, run, checkout)
    log = (run.sweep / "run-000.log").read_text()
    assert f"resuming from step {checkpoint.name.rpartition('-')[2]}" in log
