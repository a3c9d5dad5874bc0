"""TRL's SFT trainer on a plan: every forward pass is given, and so is the loss."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from datasets import Dataset
from torch.utils.data import SequentialSampler
from transformers import (
    PrinterCallback,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from trl import SFTConfig, SFTTrainer

from monitorbench.config.training import Training
from monitorbench.prompts.render import LabelTokens
from monitorbench.training.examples import Batch, Example, collate, pack
from monitorbench.training.loss import Margin, label_loss, margin_loss, supervised_logits
from monitorbench.training.plan import MicroBatch, Unit


class Work(NamedTuple):
    """What is trained on: examples of judged samples first, then of instructions, and their order."""

    tokenizer: Any
    pad: int
    label_tokens: LabelTokens
    examples: Sequence[Example]
    pairs: Sequence[Unit]
    plan: Sequence[MicroBatch]


def make_trainer(
    model: Any, training: Training, args: SFTConfig, work: Work, callbacks: Sequence[TrainerCallback]
) -> "LabelTrainer":
    """A trainer that goes through the plan once."""
    trainer = LabelTrainer(
        model=model,
        args=args,
        train_dataset=Dataset.from_list([{"units": units} for units in work.plan]),
        data_collator=Collator(work.examples, work.pairs, work.pad, training.batching == "packed"),
        processing_class=work.tokenizer,
        callbacks=list(callbacks),
    )
    trainer.micro_batch_size = training.micro_batch_size
    if training.objective == "pairwise":
        trainer.margin = Margin(work.label_tokens, training.margin, training.pair_weight)
    trainer.remove_callback(PrinterCallback)
    return trainer


class LabelTrainer(SFTTrainer):
    """An SFT trainer whose rows are forward passes of `make_plan`, taken in their order."""

    micro_batch_size = 1
    """Samples that a forward pass has on average."""
    margin: Margin | None = None

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """The forward pass's share of the step's loss, times the number of passes in a step.

        The trainer divides by that number, over accumulation and processes, so a step's loss is the mean
        over its samples however they are spread; the margin's is the mean over half as many duos.
        """
        batch = Batch(**inputs["batch"])
        logits_SV = supervised_logits(model, batch)
        loss = label_loss(logits_SV, batch) * (inputs["n_examples"] / self.micro_batch_size)
        if self.margin is not None and len(inputs["pairs_P2"]):
            term = margin_loss(logits_SV, batch, inputs["pairs_P2"], self.margin)
            loss = loss + self.margin.weight * term / (self.micro_batch_size / 2)
        return (loss, None) if return_outputs else loss

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        return SequentialSampler(train_dataset if train_dataset is not None else self.train_dataset)


class Collator:
    """A planned forward pass to the tensors of `compute_loss`."""

    def __init__(
        self, examples: Sequence[Example], pairs: Sequence[tuple[int, ...]], pad: int, packed: bool
    ) -> None:
        self._examples, self._pairs, self._pad, self._packed = examples, set(pairs), pad, packed

    def __call__(self, rows: Sequence[dict[str, list[list[int]]]]) -> dict[str, Any]:
        """Collate one row with the key `units`."""
        (row,) = rows
        examples = [self._examples[i] for unit in row["units"] for i in unit]
        pairs, at = [], 0
        for unit in row["units"]:
            if tuple(unit) in self._pairs:
                pairs.append((at, at + 1))
            at += len(unit)
        batch = pack(examples) if self._packed else collate(examples, self._pad)
        return {
            "batch": batch._asdict(),
            "n_examples": len(examples),
            "pairs_P2": torch.tensor(pairs, dtype=torch.long).reshape(-1, 2),
        }


class Step(NamedTuple):
    """What is known of an optimizer step once it is done."""

    number: int
    loss: float
    learning_rate: float | None
    seconds: float


class EveryFewSteps(TrainerCallback):
    """Calls `advance` at every step and `measure(step, mean training loss since the last call)` at some.

    Training ends where `measure` says so.
    """

    def __init__(
        self, every: int, measure: Callable[[int, float | None], bool], advance: Callable[[Step], None]
    ) -> None:
        self._every, self._measure, self._advance = every, measure, advance
        self._began = 0.0

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Before a step's first forward pass."""
        self._began = time.perf_counter()

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **_: Any,
    ) -> None:
        """Once a step (`logging_steps=1`), when its loss is known; the closing summary has none."""
        if not logs or "loss" not in logs:
            return
        step = state.global_step
        seconds = time.perf_counter() - self._began
        self._advance(Step(step, logs["loss"], logs.get("learning_rate"), seconds))
        if step % self._every and step != state.max_steps:
            return
        # From the trainer's own history, which a checkpoint keeps: a resumed run means the same steps.
        since = (step - 1) // self._every * self._every
        window = [e["loss"] for e in state.log_history if "loss" in e and since < e["step"] <= step]
        if self._measure(step, sum(window) / len(window)):
            control.should_training_stop = True
