"""One training in several processes, as `torchrun` or `accelerate launch` start them, and what each does
between its steps: progress, validation, and a stop on request.

Every process trains; accelerate's `PartialState`, once they have joined, says which one writes files.
"""

import os
import platform
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

import torch
from accelerate import PartialState
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from monitorbench.config import ending
from monitorbench.config.base import Preempted, UserError
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


class OptimizerStep(NamedTuple):
    """Number, loss, learning rate and duration of an optimizer step that is done."""

    number: int
    loss: float
    learning_rate: float | None
    seconds: float


class EveryFewSteps(TrainerCallback):
    """Calls `advance` at every step and `measure(step, mean training loss since the last call)` at some.

    `measure(0, None)` comes first, once the model is where it is trained, whole or sharded. Training ends
    where `measure` says so.
    """

    def __init__(
        self,
        every: int,
        measure: Callable[[int, float | None], bool],
        advance: Callable[[OptimizerStep], None],
    ) -> None:
        self._every, self._measure, self._advance = every, measure, advance
        self._began = 0.0

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Measure the untrained adapter, except in a resumed run."""
        if state.global_step == 0:
            self._measure(0, None)

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Note the time before a step's first forward pass."""
        self._began = time.perf_counter()

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **_: Any,
    ) -> None:
        """Report a step (`logging_steps=1`) once its loss is known; the closing summary has none."""
        if not logs or "loss" not in logs:
            return
        step = state.global_step
        seconds = time.perf_counter() - self._began
        self._advance(OptimizerStep(step, logs["loss"], logs.get("learning_rate"), seconds))
        if step % self._every and step != state.max_steps:
            return
        # From the trainer's own history, which a checkpoint keeps: a resumed run means the same steps.
        since = (step - 1) // self._every * self._every
        window = [e["loss"] for e in state.log_history if "loss" in e and since < e["step"] <= step]
        if self._measure(step, sum(window) / len(window)):
            control.should_training_stop = True


class StopWhenPreempted(TrainerCallback):
    """Saves a checkpoint after the current step, and stops, once any process received a signal to stop."""

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Let signals wait for the end of a step from now on."""
        ending.hold()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Save and stop where preempted, but not after the last step: what is left then takes seconds."""
        if anyone(ending.preempted()) and state.global_step < state.max_steps:
            control.should_save = control.should_training_stop = True


def raise_if_preempted(state: TrainerState) -> None:
    """`Preempted` where a training stopped before its last step for that reason, on every process."""
    if anyone(ending.preempted()) and state.global_step < state.max_steps:
        raise Preempted(
            f"stopped after step {state.global_step} of {state.max_steps}; the same command resumes there"
        )
