"""Training on two processes: the same run as on one, written once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from accelerate.commands.config.config_args import ClusterConfig
from small_runs import curve, distance, fp32, losses, settings

from monitorbench.config.errors import UserError
from monitorbench.training import processes, sft

ROOT = Path(__file__).resolve().parents[2]
SHORT = fp32(3, "batch_size=8", "micro_batch_size=2", "checkpoint_every=2")


def on_two(root: Path, weights: Path, *overrides: str) -> subprocess.CompletedProcess[str]:
    """Two processes of torchrun, on the CPU."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    script = str(ROOT / "tests" / "training" / "small_runs.py")
    return subprocess.run(
        [*launcher, script, str(root), str(weights), *overrides],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("batching", ["length_grouped", "packed"])
def test_two_processes_train_as_one(planted, tiny, batching):
    """If it failed: the same study would give another monitor on another number of GPUs."""
    short = (*SHORT, f"training.batching={batching}")
    alone = sft.train(settings(planted / "alone", tiny, *short))
    ran = on_two(planted, tiny, *short)
    assert ran.returncode == 0, ran.stderr[-2000:]
    together = Path(ran.stdout.split()[-1])
    assert together.name == alone.name, "the number of processes is no part of the result"
    assert together != alone
    assert losses(together) == pytest.approx(losses(alone), abs=1e-5)
    assert [p["auroc"] for p in curve(together)] == pytest.approx(
        [p["auroc"] for p in curve(alone)], abs=1e-4
    )
    assert distance(together, alone) < 2e-4
    assert ran.stdout.split().count(str(together)) == 2


def test_a_step_that_cant_be_shared_out_is_refused(monkeypatch):
    """If it failed: one process would wait for ever for a forward pass that the other has."""
    monkeypatch.setenv(processes.N_PROCESSES, "3")
    study = settings(Path("x"), Path("x"), "training.batch_size=8", "training.micro_batch_size=2")
    with pytest.raises(UserError, match="is 4 forward passes a step, not to be divided among 3 processes"):
        processes.join(study.training)


@pytest.mark.parametrize("name", ["ddp", "fsdp"])
def test_the_shipped_configs_are_what_accelerate_reads(name):
    """If it failed: `accelerate launch` would refuse the file on the cluster, after the wait in the queue."""
    file = ROOT / "slurm" / "accelerate" / f"{name}.yaml"
    config = ClusterConfig.from_yaml_file(str(file))
    assert config.num_processes == 8
    assert set(yaml.safe_load(file.read_text())) <= set(vars(config))
