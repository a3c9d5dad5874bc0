"""Fine-tuning of a monitor: a LoRA adapter that answers with the label.

Writes a training run: `adapter/` (PEFT, safetensors), `learning_curve.json` and a manifest.
Interrupted, the same command goes on from the last checkpoint; finished, the run is reused.
"""

import logging
import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from transformers import AutoTokenizer

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import PromptKind, Study
from monitorbench.config.training import Training
from monitorbench.corpus.build import ensure
from monitorbench.corpus.store import read_split
from monitorbench.engines.weights import weights_folder, weights_identity
from monitorbench.prompts.render import Renderer
from monitorbench.records import Sample, Split
from monitorbench.runs.directory import RunDirectory
from monitorbench.runs.progress import progress
from monitorbench.runs.tracking import Track, tracked_step, tracked_validation, tracking
from monitorbench.runs.training_run import subset_name, training_run
from monitorbench.training import processes
from monitorbench.training.arguments import arguments
from monitorbench.training.curve import LearningCurve
from monitorbench.training.examples import Example, make_examples
from monitorbench.training.instructions import make_instructions, read_instructions
from monitorbench.training.model import load_model, refuse_idle_adapter, restore_adapter, save_adapter
from monitorbench.training.plan import find_pairs, make_plan
from monitorbench.training.preempted import StopWhenPreempted, raise_if_preempted
from monitorbench.training.trainer import EveryFewSteps, Step, Work, make_trainer

CHECKPOINTS, BEST = "checkpoints", "best"
"""What an unfinished run has beside its results."""
_log = logging.getLogger(__name__)


def train(study: Study) -> Path:
    """Fine-tune on the configured view of the train split; returns the run directory.

    Raises `ConfigError` for a few-shot prompt or a monitor that reasons first, `UserError` for an evidence
    prompt, when no sample fits, when the objective has nothing to work on, or when the trained adapter
    leaves the model's answers as they were.
    """
    _refuse_other_prompts(study)
    processes.join(study.training)
    if not processes.is_first():
        processes.wait()  # the first builds the data and converts the weights
    data = ensure(study, _needed(study.training))
    run = training_run(study, data.name, weights_identity(study.monitor))
    weights = weights_folder(study.monitor, study.paths.models)
    done = run.done
    if processes.is_first():
        processes.wait()
    processes.wait()  # nobody writes before everybody has looked
    if done:
        _log.info("train: reusing %s", run.path)
        _tidy(run.path)
        return run.path
    with (
        tracking(study, run.path, "train", is_first=processes.is_first()) as track,
        _recording(run, study) as results,
    ):
        samples = read_split(data, Split.TRAIN, study.dataset.train)
        validation = read_split(data, Split.VALIDATION, study.dataset.validation)
        results |= {
            "name": subset_name(study),
            "data": data.name,
            **_fit(study, run.path, weights, _material(study, data, weights, samples), validation, track),
        }
    _tidy(run.path)
    return run.path


def _tidy(directory: Path) -> None:
    """Remove what only an unfinished run needs; before it is marked done, a kill would lose it."""
    if processes.is_first():
        for folder in (directory / CHECKPOINTS, directory / BEST):
            shutil.rmtree(folder, ignore_errors=True)


def _recording(run: RunDirectory, study: Study) -> AbstractContextManager[dict[str, Any]]:
    """The run's manifest is the first process's to write."""
    return run.recording(study) if processes.is_first() else nullcontext({})


class _Material(NamedTuple):
    """What is trained on, and what the manifest says of it."""

    renderer: Renderer
    work: Work
    facts: dict[str, Any]


def _material(study: Study, data: Path, weights: Path, samples: Sequence[Sample]) -> _Material:
    training = study.training
    tokenizer = AutoTokenizer.from_pretrained(weights)
    renderer = Renderer(study.prompt, tokenizer, study.monitor.opening)
    kept, examples = make_examples(samples, renderer, training.max_tokens)
    facts: dict[str, Any] = {
        "trained_on": sorted({str(sample.cell) for sample in kept}),
        "n_samples": len(kept),
        "n_dropped_too_long": len(samples) - len(kept),
    }
    instructions: list[Example] = []
    if training.objective == "mixed":
        judged = [s for split in _needed(training) for s in read_split(data, split)]
        read = read_instructions(study)
        instructions, left_out = make_instructions(
            read, judged, tokenizer, renderer.end_of_turn, training.max_tokens
        )
        facts |= {"n_instructions": len(instructions), "n_instructions_left_out": left_out}
    pairs = find_pairs(kept) if training.objective == "pairwise" else []
    if training.objective == "pairwise":
        facts["n_pairs"] = len(pairs)
        _log.info("train: %d of %d samples have their twin beside them", 2 * len(pairs), len(kept))
    everything = [*examples, *instructions]
    lengths = [example.n_tokens for example in everything]
    plan = make_plan(kept, lengths, len(instructions), training, study.seed)
    facts |= {
        "supervised_tokens": sum(len(example.completion) for example in everything),
        "tokens_per_sample": round(float(np.mean(lengths)), 1),
    }
    work = Work(tokenizer, renderer.end_of_turn, renderer.label_tokens, everything, pairs, plan)
    return _Material(renderer, work, facts)


def _fit(
    study: Study,
    directory: Path,
    weights: Path,
    material: _Material,
    validation: Sequence[Sample],
    track: Track,
) -> dict[str, Any]:
    training, renderer = study.training, material.renderer
    tokens = _tokens_by_step(material.work, training)
    model = load_model(weights, training, study.seed)
    checkpoints, best = directory / CHECKPOINTS, directory / BEST
    resumed_from = _last_whole_checkpoint(checkpoints)
    short = [sample for sample in validation if len(renderer.render(sample)) < training.max_tokens]
    if not short:
        raise UserError(
            f"training.max_tokens={training.max_tokens}: none of {len(validation)} validation samples fits"
        )
    curve = LearningCurve(
        directory / "learning_curve.json", model, renderer, short, study.seed, processes.is_first()
    )
    patience = training.early_stopping_patience

    def measure(step: int, loss: float | None) -> bool:
        curve.measure(step, loss)
        track.log(tracked_validation(curve.points[-1]), step)
        if patience and curve.best_step == step:
            save_adapter(model, best, study.monitor.hub_id)
        return processes.anyone(curve.exhausted(patience))  # rounded apart, they'd part ways

    with progress(f"train on {'+'.join(study.dataset.train.subset)}", training.max_steps) as ticker:
        if resumed_from:
            done = int(resumed_from.name.rpartition("-")[2])
            _log.info("train: going on from step %d", done)
            ticker.advance(done)

        def advance(step: Step) -> None:
            ticker.advance()
            n_tokens = tokens[step.number - 1]
            track.log(tracked_step(step.loss, step.learning_rate, n_tokens, step.seconds), step.number)

        trainer = make_trainer(
            model,
            training,
            arguments(training, checkpoints, study.seed),
            material.work,
            [EveryFewSteps(training.validate_every, measure, advance), StopWhenPreempted()],
        )
        if not resumed_from:
            curve.measure(0, None)
            if patience and curve.points[0]["auroc"] is None:
                raise UserError(
                    "training.early_stopping_patience: the validation split holds one label; expected "
                    "both, or null"
                )
        # Interrupted after it had stopped: the decision stands.
        if not (resumed_from and curve.exhausted(patience)):
            trainer.train(resume_from_checkpoint=str(resumed_from) if resumed_from else None)
    raise_if_preempted(trainer.state)
    processes.wait()
    if patience:
        restore_adapter(model, best)
    change = refuse_idle_adapter(model, renderer, material.work.examples[0])
    kept_step = curve.best_step if patience else curve.points[-1]["step"]
    save_adapter(model, directory / "adapter", study.monitor.hub_id)
    return {
        **material.facts,
        "n_validation_dropped_too_long": len(validation) - len(short),
        "adapter_gate": change,
        "training_loss": curve.points[-1]["loss"],
        "steps": curve.points[-1]["step"],
        "kept_step": kept_step,
    }


def _refuse_other_prompts(study: Study) -> None:
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


def _needed(training: Training) -> list[Split]:
    """The splits that are read: the test split's requests too, where instructions must differ from them."""
    return [Split.TRAIN, Split.VALIDATION, *([Split.TEST] if training.objective == "mixed" else [])]


def _tokens_by_step(work: Work, training: Training) -> list[int]:
    """Tokens of the samples of each optimizer step, over all processes; padding is none."""
    passes = training.batch_size // training.micro_batch_size
    tokens = [sum(work.examples[i].n_tokens for unit in row for i in unit) for row in work.plan]
    return [sum(tokens[start : start + passes]) for start in range(0, len(tokens), passes)]


def _last_whole_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint whose last file was written; a half-written one is removed."""
    found = sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    whole = [path for path in found if (path / "trainer_state.json").is_file()]
    for path in set(found) - set(whole):
        shutil.rmtree(path, ignore_errors=True)
    return whole[-1] if whole else None
