"""Training runs of seconds: a planted signal, a tiny model, and what one reads from a run.

Run as a script it is one process of a run on several: `small_runs.py ROOT WEIGHTS OVERRIDES…`.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import load_file
from sealed import seal
from small_models import planted_samples
from studies import study

from monitorbench.config.study import Study
from monitorbench.corpus.store import write_split
from monitorbench.records import Split


def plant(root: Path) -> Path:
    """Write the data set of the planted phrase; returns its directory, `data/planted-0` below `root`."""
    directory = root / "data" / "planted-0"
    for split, (n_pairs, seed) in {
        Split.TRAIN: (100, 1),
        Split.VALIDATION: (4, 2),
        Split.TEST: (20, 3),
    }.items():
        write_split(directory, split, planted_samples(n_pairs, seed))
    seal(directory)
    return directory


def settings(root: Path, weights: Path, *more: str) -> Study:
    """A study whose files lie below `root`."""
    paths = [f"paths.{name}={root / name}" for name in ("data", "runs", "models")]
    return study(*paths, f"monitor.path={weights}", *more)


def fp32(steps: int, *more: str) -> tuple[str, ...]:
    """Overrides of a short exact run with a point of the curve, and so a loss, at every step."""
    return (
        f"training.max_steps={steps}",
        "training.validate_every=1",
        "training.dtype=float32",
        "training.device=cpu",
        "training.learning_rate=1e-2",
        *(f"training.{one}" for one in more),
    )


def losses(run: Path) -> list[float]:
    """The training loss of every step."""
    return [point["loss"] for point in curve(run)[1:]]


def curve(run: Path) -> list[dict[str, Any]]:
    """The points of the learning curve."""
    points: list[dict[str, Any]] = json.loads((run / "learning_curve.json").read_text())
    return points


def results(run: Path) -> dict[str, Any]:
    """What the manifest says."""
    found: dict[str, Any] = json.loads((run / "manifest.json").read_text())["results"]
    return found


def distance(one: Path, other: Path) -> float:
    """The largest difference between two adapters' weights."""
    ours, theirs = (load_file(run / "adapter" / "adapter_model.safetensors") for run in (one, other))
    assert ours.keys() == theirs.keys()
    return float(np.max([(tensor - theirs[name]).abs().max().item() for name, tensor in ours.items()]))


def drift(one: Path, other: Path) -> float:
    """How far apart two adapters ended, as a share of the way that training went.

    Adam makes a whole step out of a gradient of 1e-9, whose sign is rounding and differs between kinds of
    CPU: a single weight may be far off, their sum of squares isn't. B starts at zero: its norm is the way.
    """
    ours, theirs = (load_file(run / "adapter" / "adapter_model.safetensors") for run in (one, other))
    assert ours.keys() == theirs.keys()
    apart = sum((tensor - theirs[name]).square().sum().item() for name, tensor in ours.items())
    way = sum(tensor.square().sum().item() for name, tensor in ours.items() if "lora_B" in name)
    return float(np.sqrt(apart / way))


def tell_to_stop(rank: int, step: int) -> None:
    """Have one process be told to stop in that step, as by a signal."""
    from monitorbench.config import ending
    from monitorbench.training.trainer import LabelTrainer

    def training_step(self: Any, *given: Any, real: Any = LabelTrainer.training_step) -> Any:
        ending._is_signalled |= self.state.global_step + 1 == step and os.environ["RANK"] == str(rank)
        return real(self, *given)

    LabelTrainer.training_step = training_step  # type: ignore[method-assign]


def shard_on_the_cpu() -> None:
    """Have accelerate shard on the CPU as it would on GPUs; by itself it refuses the CPU."""
    from accelerate.state import AcceleratorState, PartialState
    from accelerate.utils import DistributedType
    from torch.distributed.tensor import DTensor

    from monitorbench.training.trainer import LabelTrainer

    def begin(self: Any, *given: Any, real: Any = AcceleratorState.__init__, **named: Any) -> None:
        real(self, *given, **named)
        if named.get("fsdp_plugin") is not None:
            self.distributed_type, self.fsdp_plugin = DistributedType.FSDP, named["fsdp_plugin"]
            PartialState._shared_state["distributed_type"] = DistributedType.FSDP

    def training_step(self: Any, model: Any, *given: Any, real: Any = LabelTrainer.training_step) -> Any:
        if all(isinstance(weight, DTensor) for weight in model.parameters()):
            print(f"step {self.state.global_step}: every weight is sharded", file=sys.stderr)
        return real(self, model, *given)

    AcceleratorState.__init__ = begin  # type: ignore[method-assign]
    LabelTrainer.training_step = training_step  # type: ignore[method-assign]


if __name__ == "__main__":
    from monitorbench.training import processes, sft

    if os.environ.get(processes.SHARDED) == "true":
        shard_on_the_cpu()

    if told := json.loads(os.environ["TELL"]):
        tell_to_stop(*told)

    root = Path(sys.argv[1])
    sft.ensure = lambda *_: root / "data" / "planted-0"  # type: ignore[attr-defined]
    print(sft.train(settings(root, Path(sys.argv[2]), *sys.argv[3:])))
