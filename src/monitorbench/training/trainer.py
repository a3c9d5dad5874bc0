"""TRL's SFT trainer on a plan: every forward pass is given, and so is the loss.

Which samples every optimizer step and every forward pass hold is decided before step 1: a pure function of
samples, settings and seed, so that a resumed run, or one on several processes, sees what an undisturbed one
on a single process sees. How a step's samples are batched never changes which samples the step has: padded,
length-grouped and packed runs differ in speed alone.

A stock trainer projects every position onto the whole vocabulary and throws nearly all of it away. Here
the model is asked for the logits of supervised positions only (`logits_to_keep`); loss and gradients are
the same.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from datasets import Dataset
from torch.nn import functional
from torch.utils.data import SequentialSampler
from transformers import PrinterCallback, TrainerCallback
from trl import SFTConfig, SFTTrainer

from monitorbench.config.training import Training
from monitorbench.records import Sample
from monitorbench.training.examples import Example, ExampleBatch, collate, pack
from monitorbench.training.mixed import MIXED
from monitorbench.training.model import writing
from monitorbench.training.objectives import CURRICULUM, PAIRWISE, SFT, AddedLoss, ObjectiveSpec, Unit
from monitorbench.training.processes import n_processes, on_cpu

OBJECTIVES = (SFT, PAIRWISE, CURRICULUM, MIXED)


def objective_of(training: Training) -> ObjectiveSpec:
    """The objective that the settings name."""
    (objective,) = (spec for spec in OBJECTIVES if spec.name == training.objective)
    return objective


MicroBatch = tuple[Unit, ...]
"""Units of one forward pass."""


def make_plan(
    samples: Sequence[Sample], lengths: Sequence[int], n_extra: int, training: Training, seed: int
) -> list[MicroBatch]:
    """The forward passes of the whole run, `batch_size / micro_batch_size` to a step.

    Positions from `len(samples)` on are the objective's extra examples; `lengths` are tokens of both.
    Raises `UserError` where the samples give the objective nothing to work on.
    """
    objective = objective_of(training)
    objective.validate(samples, training)
    draw = np.random.default_rng(seed)
    steps = objective.units(samples, n_extra, training, draw)
    return [micro_batch for step in steps for micro_batch in _passes(step, lengths, training)]


def _passes(step: Sequence[Unit], lengths: Sequence[int], training: Training) -> list[MicroBatch]:
    """Divide a step's units among its forward passes."""
    n_passes = training.batch_size // training.micro_batch_size
    # The longest first, so that what doesn't fit into memory fails at once.
    by_length = sorted(step, key=lambda unit: -sum(lengths[i] for i in unit))
    if training.batching == "packed":
        # Longest-processing-time rule (Graham 1969): each unit to the row with the fewest tokens so far.
        rows: list[list[Unit]] = [[] for _ in range(n_passes)]
        tokens = [0] * n_passes
        for unit in by_length:
            k = tokens.index(min(tokens))
            rows[k].append(unit)
            tokens[k] += sum(lengths[i] for i in unit)
        return [tuple(row) for row in rows]
    ordered = by_length if training.batching == "length_grouped" else step
    at_once = len(step) // n_passes
    return [tuple(ordered[k : k + at_once]) for k in range(0, len(step), at_once)]


class TrainingWork(NamedTuple):
    """Training input: examples of judged samples first, then the objective's own, and their order."""

    tokenizer: Any
    pad: int
    examples: Sequence[Example]
    plan: Sequence[MicroBatch]
    added_loss: AddedLoss | None
    """Loss that the objective adds to the label's."""


def make_trainer(
    model: Any, training: Training, args: SFTConfig, work: TrainingWork, callbacks: Sequence[TrainerCallback]
) -> "LabelTrainer":
    """A trainer that goes through the plan once."""
    trainer = LabelTrainer(
        model=model,
        args=args,
        train_dataset=Dataset.from_list([{"units": units} for units in work.plan]),
        data_collator=_Collator(work.examples, work.pad, training.batching == "packed"),
        processing_class=work.tokenizer,
        callbacks=list(callbacks),
    )
    trainer.micro_batch_size = training.micro_batch_size
    trainer.added_loss = work.added_loss
    trainer.remove_callback(PrinterCallback)
    return trainer


def arguments(training: Training, checkpoints: Path, seed: int) -> SFTConfig:
    """TRL's settings from ours: one planned forward pass a row, and none of its own data preparation."""
    passes = training.batch_size // training.micro_batch_size
    args = SFTConfig(
        output_dir=str(checkpoints),
        max_steps=training.steps,
        per_device_train_batch_size=1,  # a row of the data set is a whole forward pass
        gradient_accumulation_steps=passes // n_processes(),
        learning_rate=training.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=round(training.warmup_share * training.steps),
        weight_decay=training.weight_decay,
        max_grad_norm=training.max_grad_norm,
        gradient_checkpointing=training.gradient_checkpointing,
        gradient_checkpointing_kwargs={"use_reentrant": False},
        bf16=False,  # the base is in `training.dtype` already; the adapter stays in float32
        use_cpu=on_cpu(training),
        ddp_backend="gloo" if n_processes() > 1 and on_cpu(training) else None,
        ddp_find_unused_parameters=False,
        seed=seed,
        data_seed=seed,
        logging_steps=1,
        logging_nan_inf_filter=False,  # which logs 0 for a loss that is not finite
        disable_tqdm=True,
        dataloader_pin_memory=False,
        report_to=[],
        save_strategy="steps",
        save_steps=training.checkpoint_every,
        save_total_limit=1,
        remove_unused_columns=False,
        max_length=None,
        dataset_kwargs={"skip_prepare_dataset": True},
    )
    if not on_cpu(training):
        args._n_gpu = 1  # else a process that sees several GPUs would take several rows at once
    return args


class LabelTrainer(SFTTrainer):
    """An SFT trainer whose rows are forward passes of `make_plan`, taken in their order."""

    micro_batch_size = 1
    """Samples that a forward pass has on average."""
    added_loss: AddedLoss | None = None

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """The forward pass's share of the step's loss, times the number of passes in a step.

        The trainer divides by that number, over accumulation and processes, so a step's loss is the mean
        over its samples however they are spread.
        """
        batch, units = ExampleBatch(**inputs["batch"]), [tuple(unit) for unit in inputs["units"]]
        logits_SV = supervised_logits(model, batch)
        loss = label_loss(logits_SV, batch) * (sum(map(len, units)) / self.micro_batch_size)
        if self.added_loss is not None:
            loss = loss + self.added_loss(logits_SV, batch, units)
        return (loss, None) if return_outputs else loss

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        with writing(Path(self.args.output_dir)):
            super()._save_checkpoint(model, trial)

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        return SequentialSampler(train_dataset if train_dataset is not None else self.train_dataset)


class _Collator:
    """A planned forward pass to the tensors of `compute_loss`."""

    def __init__(self, examples: Sequence[Example], pad: int, packed: bool) -> None:
        self._examples, self._pad, self._packed = examples, pad, packed

    def __call__(self, rows: Sequence[dict[str, list[list[int]]]]) -> dict[str, Any]:
        """Collate one row with the key `units`."""
        (row,) = rows
        examples = [self._examples[i] for unit in row["units"] for i in unit]
        batch = pack(examples) if self._packed else collate(examples, self._pad)
        return {"batch": batch._asdict(), "units": row["units"]}


def supervised_logits(model: Any, batch: ExampleBatch) -> torch.Tensor:
    """[S, V] logits that predict the supervised tokens, in float32."""
    logits_BKV = model(
        input_ids=batch.ids_BT,
        position_ids=batch.positions_BT,
        **({} if batch.mask_BT is None else {"attention_mask": batch.mask_BT}),
        **({} if batch.lengths is None else {"sample_lengths": batch.lengths}),
        logits_to_keep=batch.keep,
        use_cache=False,  # with a cache, packed examples see each other
    ).logits
    return logits_BKV[batch.rows_S, batch.columns_S].float()


def label_loss(logits_SV: torch.Tensor, batch: ExampleBatch) -> torch.Tensor:
    """Next-token cross-entropy, the mean over an example's tokens and then over examples.

    So a long completion weighs as much as a label. Where all have one length it is the mean over tokens.
    """
    losses_S = functional.cross_entropy(logits_SV, batch.targets_S, reduction="none")
    counts_N = torch.bincount(batch.example_S)
    return (losses_S / counts_N[batch.example_S]).sum() / len(counts_N)
