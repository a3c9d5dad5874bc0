"""Training on two processes: the same run as on one, written once."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType

import pytest
import yaml
from accelerate.commands.config.config_args import ClusterConfig
from small_runs import curve, drift, fp32, losses, settings

from monitorbench.config.base import UserError
from monitorbench.engines.open import adapter_change, open_engine
from monitorbench.engines.protocol import Decoding
from monitorbench.training import processes, sft

ROOT = Path(__file__).resolve().parents[2]
SHORT = fp32(3, "batch_size=8", "micro_batch_size=2", "checkpoint_every=100")


def on_two(
    root: Path,
    weights: Path,
    *overrides: str,
    tell: tuple[int, int] | None = None,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.CompletedProcess[str]:
    """Two processes of torchrun, on the CPU; `tell` names a rank and the step in which it is told to stop.

    `settings` are variables of the environment, such as `accelerate launch` sets.
    """
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    script = str(ROOT / "tests" / "training" / "small_runs.py")
    return subprocess.run(
        [*launcher, script, str(root), str(weights), *overrides],
        env={
            **os.environ,
            "PYTHONPATH": path,
            "OMP_NUM_THREADS": "1",
            "TELL": json.dumps(tell),
            **settings,
        },
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("batching", "tell"), [("packed", None), ("length_grouped", (1, 2))], ids=["undisturbed", "preempted"]
)
def test_two_processes_train_as_one(planted, tiny, batching, tell):
    """If it failed: the same study would give another monitor on another number of GPUs.

    Or one process would be told to stop, save and end, and the other wait for it for ever.
    """
    short = (*SHORT, f"training.batching={batching}")
    alone = sft.train(settings(planted / "alone", tiny, *short))
    if tell:
        stopped = on_two(planted, tiny, *short, tell=tell)
        assert stopped.returncode != 0
        assert "stopped after step 2 of 3" in stopped.stderr
        assert list(planted.glob("runs/train/*/checkpoints/checkpoint-2"))
    ran = on_two(planted, tiny, *short)
    assert ran.returncode == 0, ran.stderr[-2000:]
    together = Path(ran.stdout.split()[-1])
    assert together.name == alone.name, "the number of processes is no part of the result"
    assert together != alone
    assert losses(together) == pytest.approx(losses(alone), rel=1e-5)
    assert [p["auroc"] for p in curve(together)] == pytest.approx(
        [p["auroc"] for p in curve(alone)], abs=1e-4
    )
    assert drift(together, alone) < 1e-2
    assert ran.stdout.split().count(str(together)) == 2


def sharded() -> dict[str, str]:
    """What `accelerate launch --config_file slurm/accelerate/fsdp.yaml` hands to every process."""
    file = ROOT / "slurm" / "accelerate" / "fsdp.yaml"
    config = yaml.safe_load(file.read_text())["fsdp_config"]
    return {processes.SHARDED: "true", **{key.upper(): str(value).lower() for key, value in config.items()}}


@pytest.mark.slow
def test_sharded_weights_train_as_whole_ones_and_their_adapter_is_heard(planted, tiny):
    """If it failed: an adapter of a sharded base would be stored under names that nobody loads.

    Or the base would be put whole on every GPU before it is sharded.
    """
    short = (*SHORT, "training.batching=packed")
    alone = sft.train(settings(planted / "alone", tiny, *short))
    stopped = on_two(planted, tiny, *short, settings=sharded(), tell=(1, 2))
    assert "stopped after step 2 of 3" in stopped.stderr, stopped.stderr[-2000:]
    ran = on_two(planted, tiny, *short, settings=sharded())
    assert ran.returncode == 0, ran.stderr[-2000:]
    together = Path(ran.stdout.split()[-1])
    assert "step 2: every weight is sharded" in ran.stderr
    assert losses(together) == pytest.approx(losses(alone), abs=1e-4)
    assert [p["auroc"] for p in curve(together)] == pytest.approx(
        [p["auroc"] for p in curve(alone)], abs=1e-3
    )
    assert drift(together, alone) < 1e-2, "also: the same names"
    engine = settings(planted, tiny, "engine.dtype=float32").engine
    with closing(open_engine(engine, tiny, [together / "adapter"], context_tokens=64)) as loaded:
        loaded.take(together / "adapter")
        assert adapter_change(loaded, [5, 6, 7], Decoding(1, (2,), (5, 6))) > 0


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


STUBS = {
    "srun": """shift
echo "$WORLD_SIZE $MASTER_ADDR"
for i in 0 1; do SLURM_PROCID=$i SLURM_LOCALID=$i "$@"; done""",
    "scontrol": 'echo "asked to $*"',
    "sleep": "true",
    "python": 'echo "rank $RANK $LOCAL_RANK: $*"; exit $EXIT',
}


@pytest.mark.parametrize("code", [0, 1, 75])
def test_the_multi_node_file_starts_every_rank_and_keeps_the_exit_code(tmp_path, code):
    """If it failed: processes would wait for each other for ever, or a failed training be COMPLETED."""
    for name, body in STUBS.items():
        (tmp_path / name).write_text(f"#!/usr/bin/env bash\n{body}\n")
        (tmp_path / name).chmod(0o755)
    given = {"SLURMD_NODENAME": "node-a", "SLURM_JOB_ID": "7", "SLURM_NTASKS": "2", "EXIT": str(code)}
    ran = subprocess.run(
        [ROOT / "slurm" / "multi_node.sbatch", "seed=1", "a b"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "PYTHON": str(tmp_path / "python"), **given},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == code, ran.stderr
    ranks = [f"rank {i} {i}: train/sft.py seed=1 a b" for i in range(2)]
    requeued = ["asked to requeue 7"] if code == 75 else []
    assert ran.stdout.splitlines() == ["2 node-a", *ranks, *requeued]
