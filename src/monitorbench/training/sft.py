"""Fine-tuning of a monitor: a LoRA adapter that answers with the label.

Writes a training run: `adapter/` (PEFT, safetensors), `learning_curve.json` and a manifest.
Interrupted, the same command resumes from the last checkpoint; finished, the run is reused.
"""

import logging
import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from accelerate import PartialState

from monitorbench.config.base import Config, UserError
from monitorbench.config.study import Study
from monitorbench.config.training import Training
from monitorbench.corpus.build import ensure
from monitorbench.corpus.store import read_split
from monitorbench.engines.stored.adapter import Base
from monitorbench.engines.stored.model_folder import load_tokenizer, model_weights_sha256
from monitorbench.engines.weights import weights_folder, weights_identity
from monitorbench.prompts.render import Renderer
from monitorbench.prompts.transcript import shown
from monitorbench.records import Label, Sample, Split, vocabulary
from monitorbench.runs.directory import RunDirectory
from monitorbench.runs.run_folders import subset_name, training_run
from monitorbench.runs.tracking import tracking
from monitorbench.sources.fetch import find
from monitorbench.training import processes
from monitorbench.training.curve import LearningCurve
from monitorbench.training.examples import make_examples, refuse_unlearnable
from monitorbench.training.fit import BEST, CHECKPOINTS, Fitted, TrainingJob, fit
from monitorbench.training.model import load_model, refuse_idle_adapter, save_adapter
from monitorbench.training.objectives import ObjectiveContext
from monitorbench.training.pace import TrainingPace, measured_pace
from monitorbench.training.stage import refuse_none_fits, refuse_untrainable
from monitorbench.training.trainer import TrainingWork, make_plan, objective_of

_log = logging.getLogger(__name__)


def train(study: Study) -> Path:
    """Fine-tune on the configured view of the train split; returns the run directory.

    Raises what `refuse_untrainable` raises, and `UserError` when no sample fits, when the objective has
    nothing to work on, or when the trained adapter leaves the model's answers as they were.
    """
    training, monitor = study.training, study.monitor
    refuse_untrainable(study.prompt, monitor)
    processes.join(training)
    splits = [Split.TRAIN, Split.VALIDATION, *objective_of(training).extra_splits]
    with PartialState().main_process_first():  # which builds the data and converts the weights
        data = ensure(study, splits)
        weights_id = weights_identity(monitor)
        run = training_run(study, data.name, weights_id)
        weights = weights_folder(monitor, study.paths.models)
        done = run.done
    PartialState().wait_for_everyone()  # nobody writes before everybody has looked
    if done:
        _log.info("train: reusing %s", run.path)
        _tidy(run.path)
        return run.path
    is_first = PartialState().is_main_process
    with (
        tracking(study, run.path, "train", is_first=is_first) as track,
        _recording(run, study) as results,
    ):
        tokenizer = load_tokenizer(weights)
        renderer = Renderer(study.prompt, tokenizer, monitor.opening, date=monitor.template_date)
        cache = study.paths.data / ".sources"
        context = ObjectiveContext(
            lambda: [sample for split in splits for sample in read_split(data, split)],
            tokenizer,
            monitor.template_date,
            renderer.end_of_turn,
            lambda name: find(name, study.source[name], study.paths.sources, cache, "error"),
        )
        given = read_split(data, Split.TRAIN, study.dataset.train)
        samples = shown(given, study.prompt.view)
        training, work, facts = _work(samples, renderer, context, training, study.seed)
        validation = shown(read_split(data, Split.VALIDATION, study.dataset.validation), study.prompt.view)
        short = _short_enough(validation, renderer, training.max_tokens)
        model = load_model(weights, training, study.seed)
        curve = LearningCurve(run.path / "learning_curve.json", model, renderer, short, is_first)
        base = Base(hub_id=monitor.hub_id, weights=weights_id, sha256=model_weights_sha256(weights))
        job = TrainingJob(run.path, base, model, training, study.seed, work)
        pace = measured_pace(study.paths.runs, run.identity, processes.machine())
        fitted = fit(job, curve, track, f"train on {'+'.join(study.dataset.train.subset)}")
        results |= {
            "name": subset_name(study.dataset.train.subset),
            "data": data.name,
            **facts,
            "n_not_shown": len(given) - len(samples),
            "n_validation_dropped_too_long": len(validation) - len(short),
            **_finish(job, curve, renderer),
            **_measured(fitted, pace),
        }
        results["exposures"] = results["kept_step"] * training.n_labelled / results["n_samples"]
        track.artifact(f"adapter-{run.path.name}", "adapter", run.path / "adapter")
    _tidy(run.path)
    return run.path


def _tidy(directory: Path) -> None:
    """Remove what only an unfinished run needs; before it is marked done, a kill would lose it.

    Raises `UserError` where it can't be removed.
    """
    if not PartialState().is_main_process:
        return
    for folder in (directory / CHECKPOINTS, directory / BEST):
        try:
            if folder.is_dir():
                shutil.rmtree(folder)
        except OSError as error:
            raise UserError(
                f"{folder}: can't be removed ({error.strerror or error}); the run is done, the same command "
                "tries it again"
            ) from error


def _recording(run: RunDirectory, config: Config) -> AbstractContextManager[dict[str, Any]]:
    """The run's manifest is the first process's to write."""
    return (
        run.recording(config, temporary=(CHECKPOINTS, BEST))
        if PartialState().is_main_process
        else nullcontext({})
    )


def _work(
    samples: Sequence[Sample], renderer: Renderer, context: ObjectiveContext, training: Training, seed: int
) -> tuple[Training, TrainingWork, dict[str, Any]]:
    """The settings with their steps, what is trained on, and what the manifest says of it."""
    objective = objective_of(training)
    fitting, examples = make_examples(samples, renderer, training.max_tokens)
    refuse_unlearnable(fitting, examples, training.balance)
    if training.epochs is not None:
        training = training.for_samples(len(fitting))
        _log.info("train: %d steps for %d samples", training.steps, len(fitting))
    extra = objective.extra_examples(training, context)
    everything = [*examples, *extra.examples]
    lengths = [example.n_tokens for example in everything]
    facts = {
        "trained_on": sorted({str(sample.cell) for sample in fitting}),
        "n_samples": len(fitting),
        "n_by_cell": _by_cell(fitting),
        "n_dropped_too_long": len(samples) - len(fitting),
        **extra.facts,
        **objective.facts(fitting),
        "supervised_tokens": sum(len(example.completion) for example in everything),
        "tokens_per_sample": round(float(np.mean(lengths)), 1),
    }
    plan = make_plan(fitting, lengths, len(extra.examples), training, seed)
    added_loss = objective.loss(fitting, renderer.label_tokens, training)
    return (
        training,
        TrainingWork(context.tokenizer, renderer.end_of_turn, everything, plan, added_loss),
        facts,
    )


def _by_cell(samples: Sequence[Sample]) -> dict[str, dict[str, int]]:
    """How many samples of each label a cell has."""
    counts: dict[str, dict[str, int]] = {}
    for sample in samples:
        of_cell = counts.setdefault(str(sample.cell), dict.fromkeys(vocabulary(Label), 0))
        of_cell[sample.label] += 1
    return dict(sorted(counts.items()))


def _short_enough(validation: Sequence[Sample], renderer: Renderer, max_tokens: int) -> list[Sample]:
    short = [sample for sample in validation if len(renderer.render(sample)) < max_tokens]
    refuse_none_fits(len(short), len(validation), Split.VALIDATION, max_tokens)
    return short


def _finish(job: TrainingJob, curve: LearningCurve, renderer: Renderer) -> dict[str, Any]:
    """Check the adapter against its base and write it; returns what the manifest says of the training."""
    last = curve.points[-1]
    _log.info("train: comparing the adapter's answers with the base's")
    change = refuse_idle_adapter(job.model, renderer, job.work.examples[0])
    _log.info("train: a label's log-probability changes by up to %.2g", change)
    save_adapter(job.model, job.directory / "adapter", job.base)
    _log.info("train: adapter saved in %s", job.directory / "adapter")
    return {
        "adapter_gate": change,
        "training_loss": last["loss"],
        "steps": last["step"],
        "kept_step": curve.best_step if job.training.early_stopping_patience else last["step"],
    }


def _measured(fitted: Fitted, pace: TrainingPace | None) -> dict[str, Any]:
    """Measured speed of this process's steps and validations, beside the forecast from earlier runs."""
    done, machine = fitted.measured, processes.machine()
    per_second = round(done.tokens / done.seconds, 2) if done.seconds else None
    of_tokens = {
        "tokens": fitted.planned_tokens,
        "validation_tokens": fitted.planned_validation_tokens,
    }
    return {
        "measured": {
            **done._asdict(),
            "tokens_per_second": per_second,
            "machine": machine._asdict(),
        },
        "forecast": None
        if pace is None
        else {**of_tokens, "seconds": round(pace.seconds(*of_tokens.values()), 2), "by_runs": pace.n_runs},
    }
