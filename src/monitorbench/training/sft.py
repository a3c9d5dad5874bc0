"""Supervised fine-tuning of a monitor: a LoRA adapter that answers with the label.

Writes a training run: `adapter/` (PEFT, safetensors), `learning_curve.json` and a manifest.
Interrupted, the same command goes on from the last checkpoint; finished, the run is reused.
"""

import logging
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, PrinterCallback, set_seed
from trl import SFTConfig

from monitorbench.config.errors import ConfigError, UserError
from monitorbench.config.study import PromptKind, Study, Training
from monitorbench.corpus.build import ensure
from monitorbench.corpus.store import read_split
from monitorbench.engines.protocol import ADAPTER_GATE
from monitorbench.engines.weights import weights_folder, weights_identity
from monitorbench.metrics.curves import auroc, auroc_interval
from monitorbench.prompts.parse import score
from monitorbench.prompts.render import Renderer
from monitorbench.records import Label, Sample, Split
from monitorbench.runs.directory import RunDirectory
from monitorbench.runs.files import read_json, write_json
from monitorbench.runs.progress import progress
from monitorbench.training.examples import Example, collate, make_examples
from monitorbench.training.preempted import StopWhenPreempted, raise_if_preempted
from monitorbench.training.trainer import Collator, EveryFewSteps, LabelTrainer

_log = logging.getLogger(__name__)


def train(study: Study) -> Path:
    """Fine-tune on the configured view of the train split; returns the run directory.

    Raises `ConfigError` for a few-shot prompt or a monitor that reasons first, `UserError` for an evidence
    prompt, when no sample fits, or when the trained adapter leaves the model's answers as they were.
    """
    if study.prompt.kind is not PromptKind.DIRECT:
        raise UserError(
            f"prompt={study.prompt.name}: training supervises the label alone; expected a direct prompt"
        )
    if study.prompt.shots:
        raise ConfigError(f"prompt={study.prompt.name}: training uses zero-shot prompts; expected one")
    if study.monitor.reasoning:
        raise ConfigError(
            f"monitor={study.monitor.name}: training supervises the label alone, not reasoning; expected "
            "monitor.reasoning=null, and in monitor.opening what makes it answer at once"
        )
    data = ensure(study, [Split.TRAIN, Split.VALIDATION])
    identity = {
        "data": data.name,
        "train": study.dataset.train.model_dump(mode="json"),
        "validation": study.dataset.validation.model_dump(mode="json"),
        "weights": weights_identity(study.monitor),
        "prompt": study.prompt.model_dump(mode="json"),
        "opening": study.monitor.opening,
        "training": study.training.model_dump(mode="json"),
        "seed": study.seed,
    }
    name = "+".join(study.dataset.train.subset).replace("/", "_")
    run = RunDirectory(study.paths.runs / "train", f"{study.monitor.name}-{name}", identity)
    if run.done:
        _log.info("train: reusing %s", run.path)
        return run.path
    with run.recording(study) as results:
        samples = read_split(data, Split.TRAIN, study.dataset.train)
        validation = read_split(data, Split.VALIDATION, study.dataset.validation)
        weights = weights_folder(study.monitor, study.paths.models)
        results |= {
            "name": name,
            "trained_on": sorted({str(sample.cell) for sample in samples}),
            **_fit(study, run.path, weights, samples, validation),
        }
    return run.path


def _fit(
    study: Study, directory: Path, weights: Path, samples: Sequence[Sample], validation: Sequence[Sample]
) -> dict[str, Any]:
    tokenizer = AutoTokenizer.from_pretrained(weights)
    renderer = Renderer(study.prompt, tokenizer, study.monitor.opening)
    examples, n_dropped = make_examples(samples, renderer, study.training.max_tokens)
    model = load_model(weights, study.training, study.seed)
    checkpoints = directory / "checkpoints"
    resumed_from = _last_whole_checkpoint(checkpoints)
    curve = _LearningCurve(directory / "learning_curve.json", model, renderer, validation, study.seed)
    with progress(f"train on {'+'.join(study.dataset.train.subset)}", study.training.max_steps) as ticker:
        if resumed_from:
            done = int(resumed_from.name.rpartition("-")[2])
            _log.info("train: going on from step %d", done)
            ticker.advance(done)
        trainer = LabelTrainer(
            model=model,
            args=_arguments(study.training, checkpoints, study.seed),
            train_dataset=Dataset.from_list(
                [{"prompt_ids": list(e.prompt), "completion_ids": list(e.completion)} for e in examples]
            ),
            data_collator=Collator(renderer.end_of_turn),
            processing_class=tokenizer,
            callbacks=[
                EveryFewSteps(study.training.validate_every, curve.measure, ticker.advance),
                StopWhenPreempted(),
            ],
        )
        trainer.remove_callback(PrinterCallback)
        if not resumed_from:
            curve.measure(0, None)
        trainer.train(resume_from_checkpoint=str(resumed_from) if resumed_from else None)
    raise_if_preempted(trainer.state)
    change = _refuse_idle_adapter(model, renderer, examples[0])
    _save_adapter(model, directory / "adapter", study.monitor.hub_id)
    shutil.rmtree(checkpoints, ignore_errors=True)
    tokens = [len(example.prompt) + len(example.completion) for example in examples]
    return {
        "n_samples": len(examples),
        "n_dropped_too_long": n_dropped,
        "supervised_tokens": sum(len(example.completion) for example in examples),
        "tokens_per_sample": round(float(np.mean(tokens)), 1),
        "adapter_gate": change,
        "training_loss": curve.points[-1]["loss"],
    }


def load_model(weights: Path, training: Training, seed: int) -> Any:
    """The frozen base in `training.dtype`, with a fresh LoRA adapter in float32 on every linear layer."""
    set_seed(seed)
    device = training.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    base = AutoModelForCausalLM.from_pretrained(
        weights, dtype=getattr(torch, training.dtype), attn_implementation="sdpa"
    ).to(device)
    lora = LoraConfig(
        r=training.lora_rank,
        lora_alpha=training.lora_alpha,
        lora_dropout=training.lora_dropout,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    return get_peft_model(base, lora)


def _last_whole_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint whose last file was written; a half-written one is removed."""
    found = sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    whole = [path for path in found if (path / "trainer_state.json").is_file()]
    for path in set(found) - set(whole):
        shutil.rmtree(path)
    return whole[-1] if whole else None


def _save_adapter(model: Any, folder: Path, hub_id: str) -> None:
    model.save_pretrained(folder, safe_serialization=True)
    (folder / "README.md").unlink(missing_ok=True)  # an empty card
    # A path of this machine has no place in an adapter that others load.
    config = read_json(folder / "adapter_config.json")
    write_json(folder / "adapter_config.json", {**config, "base_model_name_or_path": hub_id})


def _arguments(training: Training, checkpoints: Path, seed: int) -> SFTConfig:
    return SFTConfig(
        output_dir=str(checkpoints),
        max_steps=training.max_steps,
        per_device_train_batch_size=training.micro_batch_size,
        gradient_accumulation_steps=training.batch_size // training.micro_batch_size,
        learning_rate=training.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=round(training.warmup_share * training.max_steps),
        weight_decay=training.weight_decay,
        max_grad_norm=training.max_grad_norm,
        gradient_checkpointing=training.gradient_checkpointing,
        bf16=False,  # the base is in `training.dtype` already; the adapter stays in float32
        use_cpu=training.device == "cpu",
        seed=seed,
        data_seed=seed,
        logging_steps=1,
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


class _LearningCurve:
    """AUROC, Miss Rate and False Alarm Rate on the validation split, by step, kept on disk."""

    def __init__(
        self, path: Path, model: Any, renderer: Renderer, validation: Sequence[Sample], seed: int
    ) -> None:
        self._path, self._model, self._renderer, self._seed = path, model, renderer, seed
        self._samples = sorted(validation, key=lambda sample: len(renderer.render(sample)))
        self.points: list[dict[str, Any]] = read_json(path) if path.is_file() else []

    def measure(self, step: int, loss: float | None) -> None:
        """Add the point of a step; a point that a resumed run reaches again is replaced."""
        tokens = self._renderer.label_tokens
        logprobs_BV = label_logprobs(self._model, self._renderer, self._samples)
        scored = [score({i: row[i].item() for i in tokens.all}, tokens).score for row in logprobs_BV]
        greedy = [int(row.argmax()) for row in logprobs_BV]
        is_misbehavior = np.array([sample.label is Label.MISBEHAVIOR for sample in self._samples])
        missed = np.array([token in tokens.benign for token in greedy])
        alarmed = np.array([token in tokens.misbehavior for token in greedy])
        labelled = missed | alarmed
        groups = [sample.group_id for sample in self._samples]
        values = np.array([math.nan if value is None else value for value in scored])
        interval = auroc_interval(values, is_misbehavior, groups, resamples=500, seed=self._seed)
        self.points = [point for point in self.points if point["step"] < step]
        self.points.append(
            {
                "step": step,
                "loss": loss,
                "auroc": auroc(values, is_misbehavior),
                "auroc_ci": list(interval) if interval else None,
                "miss_rate": _rate(missed[is_misbehavior & labelled]),
                "false_alarm_rate": _rate(alarmed[~is_misbehavior & labelled]),
                "n": len(self._samples),
            }
        )
        write_json(self._path, self.points)


@torch.inference_mode()
def label_logprobs(
    model: Any, renderer: Renderer, samples: Sequence[Sample], batch_size: int = 8
) -> list[Any]:
    """Log-probabilities over the vocabulary where the label is answered, a [V] tensor per sample."""
    was_training = model.training
    model.eval()
    rows: list[Any] = []
    for start in range(0, len(samples), batch_size):
        batch = [Example(renderer.render(sample), ()) for sample in samples[start : start + batch_size]]
        ids_BT, mask_BT, positions_BT = (
            part.to(model.device) for part in collate(batch, renderer.end_of_turn)
        )
        logits_BV = model(
            input_ids=ids_BT,
            attention_mask=mask_BT,
            position_ids=positions_BT,
            logits_to_keep=1,
            use_cache=False,
        ).logits[:, -1]
        rows += list(logits_BV.float().log_softmax(-1).cpu())
    model.train(was_training)
    return rows


@torch.inference_mode()
def _refuse_idle_adapter(model: Any, renderer: Renderer, example: Example) -> float:
    model.eval()
    ids_BT = torch.tensor([example.prompt], device=model.device)
    label_ids = list(renderer.label_tokens.all)

    def logprobs() -> Any:
        return model(input_ids=ids_BT, logits_to_keep=1).logits[0, -1].float().log_softmax(-1)[label_ids]

    tuned = logprobs()
    with model.disable_adapter():
        change = float((tuned - logprobs()).abs().max())
    if not change >= ADAPTER_GATE:
        raise UserError(
            f"the trained adapter changes no label's log-probability (largest change {change:.2g})"
        )
    return change


def _rate(wrong: Any) -> float | None:
    return float(wrong.mean()) if len(wrong) else None
