"""The optimizer steps of a training: from the last checkpoint on, with a point of the curve now and then."""

import logging
import math
import time
from pathlib import Path
from typing import Any, NamedTuple

from accelerate import PartialState

from monitorbench.config.base import UserError
from monitorbench.config.training import Training
from monitorbench.engines.stored.adapter import Base
from monitorbench.runs.tracking import Track
from monitorbench.training import processes
from monitorbench.training.curve import (
    LearningCurve,
    TrainingCourse,
    summary,
    tracked_step,
    tracked_validation,
    training_display,
)
from monitorbench.training.model import (
    SealCheckpoints,
    last_whole_checkpoint,
    restore_adapter,
    save_adapter,
    step_of,
)
from monitorbench.training.pace import MeasuredTraining, n_validations
from monitorbench.training.processes import (
    EveryFewSteps,
    OptimizerStep,
    StopWhenPreempted,
    raise_if_preempted,
)
from monitorbench.training.trainer import TrainingWork, arguments, make_trainer

CHECKPOINTS, BEST = "checkpoints", "best"
"""Folders that an unfinished run has beside its results."""
_log = logging.getLogger(__name__)


class TrainingJob(NamedTuple):
    """One training: where it is kept, what is trained, how, and on what."""

    directory: Path
    base: Base
    """Base that is trained on, for the adapter's own files."""
    model: Any
    training: Training
    seed: int
    work: TrainingWork


class Fitted(NamedTuple):
    """Work that this process planned and did; a training that stops early does less than was planned."""

    planned_tokens: int
    planned_validation_tokens: int
    measured: MeasuredTraining


def fit(job: TrainingJob, curve: LearningCurve, track: Track, name: str) -> Fitted:
    """Take the optimizer steps, from the last checkpoint on; the kept adapter is in the model afterwards."""
    training, patience = job.training, job.training.early_stopping_patience
    tokens = _tokens_by_step(job.work, training)
    checkpoints, best = job.directory / CHECKPOINTS, job.directory / BEST
    resumed_from = last_whole_checkpoint(checkpoints)

    done = step_of(resumed_from) if resumed_from else 0
    if resumed_from:
        _log.info("train: resuming from step %d", done)

    stepping: list[tuple[int, float]] = []
    validating: list[float] = []

    def measure(step: int, loss: float | None) -> bool:
        validating.append(_measure(curve, step, loss, display))
        _refuse_no_auroc(curve, patience)
        if step == 0:
            return False
        track.log(tracked_validation(curve.points[-1]), step)
        if patience and curve.best_step == step:
            save_adapter(job.model, best, job.base)
        return processes.anyone(curve.exhausted(patience))  # else rounding lets one stop and the other wait

    with training_display(name, training.steps, done, training.validate_every) as display:

        def advance(step: OptimizerStep) -> None:
            if not math.isfinite(step.loss):
                raise UserError(
                    f"train: the loss of step {step.number} is {step.loss}, so that no adapter comes of it; "
                    "expected a lower training.learning_rate, or training.dtype=float32"
                )
            n_tokens = tokens[step.number - 1]
            display.step(step.loss, n_tokens, step.seconds)
            stepping.append((n_tokens, step.seconds))
            track.log(tracked_step(step.loss, step.learning_rate, n_tokens, step.seconds), step.number)

        trainer = make_trainer(
            job.model,
            training,
            arguments(training, checkpoints, job.seed),
            job.work,
            [
                EveryFewSteps(training.validate_every, measure, advance),
                StopWhenPreempted(),
                SealCheckpoints(),
            ],
        )
        # Interrupted after it had stopped early: no further step is taken.
        if not (resumed_from and curve.exhausted(patience)):
            trainer.train(resume_from_checkpoint=str(resumed_from) if resumed_from else None)
    raise_if_preempted(trainer.state)
    _log.info("%s: %s", name, summary(curve.points, display.numbers()))
    PartialState().wait_for_everyone()
    if patience:
        _log.info(
            "train: putting back the adapter of step %s, the best on the validation split", curve.best_step
        )
        restore_adapter(job.model, best)
    due = n_validations(training, done)
    return Fitted(
        planned_tokens=sum(tokens[done:]),
        planned_validation_tokens=due * curve.n_tokens,
        measured=MeasuredTraining(
            tokens=sum(n for n, _ in stepping),
            seconds=sum(seconds for _, seconds in stepping),
            validation_tokens=len(validating) * curve.n_tokens,
            validation_seconds=sum(validating),
        ),
    )


def _measure(curve: LearningCurve, step: int, loss: float | None, display: TrainingCourse) -> float:
    """Add a point to the curve; returns the seconds that it took."""
    _log.info("train: step %d: judging the validation split", step)
    began = time.perf_counter()
    curve.measure(step, loss)
    auroc = curve.points[-1]["auroc"]
    seconds = time.perf_counter() - began
    display.validated(step, auroc, seconds)
    reported = "none, a label has no score" if auroc is None else f"{auroc:.3f}"
    _log.info("train: step %d: AUROC on the validation split: %s", step, reported)
    return seconds


def _refuse_no_auroc(curve: LearningCurve, patience: int | None) -> None:
    point = curve.points[-1]
    if patience and point["auroc"] is None:
        raise UserError(
            f"training.early_stopping_patience: after step {point['step']} the validation split has no AUROC "
            "(it holds one label, or no label of it has a score); expected both labels with scores, or null"
        )


def _tokens_by_step(work: TrainingWork, training: Training) -> list[int]:
    """Tokens of the samples of each optimizer step, over all processes; padding is none."""
    passes = training.batch_size // training.micro_batch_size
    tokens = [sum(work.examples[i].n_tokens for unit in row for i in unit) for row in work.plan]
    return [sum(tokens[start : start + passes]) for start in range(0, len(tokens), passes)]
