"""A training that Slurm takes its node away from: it goes on elsewhere, and nobody can tell."""

import json
from pathlib import Path

import pytest
from cluster import Cluster
from launching import launch, submitted, until, wait, write_samples
from small_models import planted_samples, tiny_model

pytestmark = pytest.mark.slurm

STEPS = 200


def test_a_preempted_training_ends_with_the_same_adapter(slurm: Cluster, checkout: Path):
    """A preemption that costs the run, or changes its result, makes cheap partitions unusable."""
    from safetensors.numpy import load_file

    model = tiny_model(checkout / "tiny")
    samples = planted_samples(40, seed=0)
    write_samples(
        checkout / "mine.jsonl", [(s.pair_id, s.response[0].content, s.label.value) for s in samples]
    )
    given = f"""slurm/submit.py train/sft.py dataset=jsonl dataset.path=mine.jsonl monitor.path={model}
        training.dtype=float32 training.device=cpu training.batch_size=4 training.learning_rate=0.01
        training.max_steps={STEPS} training.checkpoint_every=100000 training.validate_every=20
        tracking=none cluster.cpus=1"""
    settings = given.split()  # nothing but the preemption itself saves a checkpoint
    disturbed = submitted(slurm, checkout, *settings)
    curves = checkout / "runs" / "train"
    until(
        lambda: [c for c in curves.glob("*/learning_curve.json") if len(json.loads(c.read_text())) > 1],
        "step 20",
    )
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
