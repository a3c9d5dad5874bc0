"""A training that is told to stop: it saves where it is, and the same command goes on from there."""

from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from monitorbench.config import preemption
from monitorbench.config.base import Preempted
from monitorbench.training import processes


class StopWhenPreempted(TrainerCallback):
    """Once any process was told to stop, saves a checkpoint after the step it is in, and stops."""

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """From here on a signal waits for the end of a step."""
        preemption.hold()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Not after the last step: what is left then takes seconds."""
        if processes.anyone(preemption.preempted()) and state.global_step < state.max_steps:
            control.should_save = control.should_training_stop = True


def raise_if_preempted(state: TrainerState) -> None:
    """`Preempted` where a training stopped before its last step for that reason, on every process."""
    if processes.anyone(preemption.preempted()) and state.global_step < state.max_steps:
        raise Preempted(
            f"stopped after step {state.global_step} of {state.max_steps}; the same command goes on there"
        )
