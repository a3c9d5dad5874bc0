"""Callbacks between optimizer steps: progress, validation, and a stop on request."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from monitorbench.config import ending
from monitorbench.config.base import Preempted
from monitorbench.training import processes


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
        if processes.anyone(ending.preempted()) and state.global_step < state.max_steps:
            control.should_save = control.should_training_stop = True


def raise_if_preempted(state: TrainerState) -> None:
    """`Preempted` where a training stopped before its last step for that reason, on every process."""
    if processes.anyone(ending.preempted()) and state.global_step < state.max_steps:
        raise Preempted(
            f"stopped after step {state.global_step} of {state.max_steps}; the same command resumes there"
        )
