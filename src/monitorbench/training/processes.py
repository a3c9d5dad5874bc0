"""Training on several processes, as `torchrun` or `accelerate launch` start them.

Every process trains; accelerate's `PartialState`, once they have joined, says which one writes files.
"""

import os
import platform
from datetime import timedelta

import torch
from accelerate import PartialState

from monitorbench.config.base import UserError
from monitorbench.config.hardware import runs_on_gpu
from monitorbench.config.training import Training
from monitorbench.training.pace import Machine

N_PROCESSES = "WORLD_SIZE"
_PATIENCE = timedelta(hours=6)
"""How long the other processes wait while the first builds the data and fetches the weights."""
SHARDED = "ACCELERATE_USE_FSDP"


def n_processes() -> int:
    """How many processes train together, known before they have joined."""
    return int(os.environ.get(N_PROCESSES, "1"))


def on_cpu(training: Training) -> bool:
    """Whether it trains on the CPU, `device=auto` resolved; raises as `config.hardware.runs_on_gpu`."""
    return not runs_on_gpu(training.device, "training.device")


def join(training: Training) -> None:
    """Meet the other processes; `UserError` where a step can't be divided among them.

    Or where the best adapter of a sharded model would have to be put back, or Unsloth would have to shard.
    """
    if os.environ.get(SHARDED) == "true":
        if training.early_stopping_patience:
            raise UserError("training.early_stopping_patience: not with FSDP; expected null, or DDP")
        if training.loader == "unsloth":
            raise UserError("training.loader=unsloth: not with FSDP; expected transformers, or DDP")
    n_passes = training.batch_size // training.micro_batch_size
    if n_passes % n_processes():
        raise UserError(
            f"training.batch_size={training.batch_size} is {n_passes} forward passes a step, not to be "
            f"divided among {n_processes()} processes; lower training.micro_batch_size"
        )
    backend = {"backend": "gloo"} if n_processes() > 1 and on_cpu(training) else {}
    PartialState(cpu=on_cpu(training), timeout=_PATIENCE, **backend)


def machine() -> Machine:
    """The machine that this training runs on, once the processes have joined."""
    state = PartialState()
    if state.device.type == "cuda":
        return Machine("cuda", torch.cuda.get_device_name(state.device), state.num_processes)
    return Machine(state.device.type, platform.platform(), state.num_processes)


def anyone(here: bool) -> bool:
    """Whether it is so in any process; every process has to ask."""
    state = PartialState()
    if state.num_processes == 1:
        return here
    flag = torch.tensor(float(here), device=state.device)
    torch.distributed.all_reduce(flag, torch.distributed.ReduceOp.MAX)
    return bool(flag)
