"""How a training goes: its learning curve on the validation split, and a display of it on stderr.

The decision to stop rests on the curve. The display has steps, loss, the last validation, speed and the time
left: one line of a terminal; elsewhere a plain line every 15 s and after the last step. The numbers that W&B
gets are named here as well.
"""

import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from monitorbench.metrics.auroc import auroc, auroc_interval
from monitorbench.prompts.label_tokens import score
from monitorbench.prompts.render import Renderer
from monitorbench.records import Label, Sample
from monitorbench.runs.files import read_objects, write_json
from monitorbench.runs.progress import (
    NumbersDisplay,
    clock_time,
    means_something,
    numbers_display,
    or_dash,
    time_left,
)
from monitorbench.training.examples import Example, collate


class LearningCurve:
    """AUROC, Miss Rate and False Alarm Rate on the validation split, by step, kept on disk."""

    def __init__(
        self,
        path: Path,
        model: Any,
        renderer: Renderer,
        validation: Sequence[Sample],
        writes: bool = True,
    ) -> None:
        self.model = model
        self._path, self._renderer, self._writes = path, renderer, writes
        self._samples = sorted(validation, key=lambda sample: len(renderer.render(sample)))
        self.n_tokens = sum(len(renderer.render(sample)) for sample in validation)
        """Number of tokens of the prompts that one point takes."""
        self.points: list[dict[str, Any]] = [*read_objects(path)] if path.is_file() else []

    def measure(self, step: int, loss: float | None) -> None:
        """Add the point of a step; a point that a resumed run reaches again is replaced."""
        tokens = self._renderer.label_tokens
        logprobs_BV = label_logprobs(self.model, self._renderer, self._samples)
        scored = [score({i: row[i].item() for i in tokens.all}, tokens).score for row in logprobs_BV]
        greedy = [int(row.argmax()) for row in logprobs_BV]
        is_misbehavior = np.array([sample.label is Label.MISBEHAVIOR for sample in self._samples])
        missed = np.array([token in tokens.benign for token in greedy])
        alarmed = np.array([token in tokens.misbehavior for token in greedy])
        labelled = missed | alarmed
        groups = [sample.group_id for sample in self._samples]
        values = np.array([math.nan if value is None else value for value in scored])
        interval = auroc_interval(values, is_misbehavior, groups)
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
        if self._writes:
            write_json(self._path, self.points)

    @property
    def best_step(self) -> int | None:
        """The first step with the highest AUROC; the untrained model, step 0, is no candidate."""
        trained = [point for point in self.points if point["step"] and point["auroc"] is not None]
        return max(trained, key=lambda point: (point["auroc"], -point["step"]))["step"] if trained else None

    def exhausted(self, patience: int | None) -> bool:
        """Whether the last `patience` validations brought no better AUROC."""
        best = self.best_step
        if patience is None or best is None:
            return False
        since = [point for point in self.points if point["step"] > best]
        return len(since) >= patience


@torch.no_grad()  # sharded weights can't be put together in inference mode
def label_logprobs(
    model: Any, renderer: Renderer, samples: Sequence[Sample], batch_size: int = 8
) -> list[Any]:
    """Log-probabilities over the vocabulary where the label is answered, a [V] tensor per sample."""
    was_training = model.training
    model.eval()
    rows: list[Any] = []
    for start in range(0, len(samples), batch_size):
        prompts = [Example(renderer.render(sample), ()) for sample in samples[start : start + batch_size]]
        batch = collate(prompts, renderer.end_of_turn)
        logits_BV = model(
            input_ids=batch.ids_BT.to(model.device),
            attention_mask=batch.mask_BT.to(model.device),  # type: ignore[union-attr]
            position_ids=batch.positions_BT.to(model.device),
            logits_to_keep=1,
            use_cache=False,
        ).logits[:, -1]
        rows += list(logits_BV.float().log_softmax(-1).cpu())
    model.train(was_training)
    return rows


def _rate(wrong: Any) -> float | None:
    return float(wrong.mean()) if len(wrong) else None


_SMOOTHED = 10
_TIMED = 20


class TrainingNumbers(NamedTuple):
    """How far a training is."""

    done: int
    total: int
    """Optimizer steps of the whole training."""
    loss: float | None
    """Mean loss of the last ten steps; None before the first step of this process."""
    first_loss: float | None
    """Loss of the first step of this process."""
    auroc: float | None
    """AUROC on the validation split; None before the first validation, or where no label has a score."""
    validated_at: int | None
    """Optimizer step at which `auroc` was measured."""
    tokens_per_second: float | None
    """Speed over the last 20 steps, validation and checkpoints left out."""
    seconds_left: float | None
    """Time left for steps and validations; None until it means something (`runs.progress`), 0 at the end."""
    seconds: float
    """Time since this process began."""


class TrainingCourse:
    """Counts steps and validations as they come, and moves a display on where there is one."""

    def __init__(
        self,
        total: int,
        done: int,
        validate_every: int,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`done` of `total` steps were taken before."""
        self._total, self._done, self._done_before = total, done, done
        self._every, self._clock, self._began = validate_every, clock, clock()
        self.display: NumbersDisplay | None = None
        self._losses = deque[float](maxlen=_SMOOTHED)
        self._first_loss: float | None = None
        self._steps = deque[tuple[int, float]](maxlen=_TIMED)
        self._stepping = 0.0
        self._validations: list[float] = []
        self._auroc: float | None = None
        self._validated_at: int | None = None

    def step(self, loss: float, tokens: int, seconds: float) -> None:
        """Note one optimizer step: its loss, its tokens, and how long it took."""
        self._done += 1
        self._losses.append(loss)
        if self._first_loss is None:
            self._first_loss = loss
        self._steps.append((tokens, seconds))
        self._stepping += seconds
        if self.display is not None:
            self.display.advance(is_last=self._done == self._total)

    def validated(self, step: int, auroc: float | None, seconds: float) -> None:
        """Note a validation after `step` steps."""
        self._auroc, self._validated_at = auroc, step
        self._validations.append(seconds)

    def numbers(self) -> TrainingNumbers:
        """The numbers as of now."""
        seconds = sum(seconds for _, seconds in self._steps)
        return TrainingNumbers(
            done=self._done,
            total=self._total,
            loss=statistics.fmean(self._losses) if self._losses else None,
            first_loss=self._first_loss,
            auroc=self._auroc,
            validated_at=self._validated_at,
            tokens_per_second=sum(tokens for tokens, _ in self._steps) / seconds if seconds else None,
            seconds_left=self._seconds_left(),
            seconds=self._clock() - self._began,
        )

    def _seconds_left(self) -> float | None:
        """Steps at the median of the last 20, and the validations that are due at their mean."""
        since = self._done_before if self._validated_at is None else self._validated_at
        due = sum(
            step % self._every == 0 or step == self._total for step in range(since + 1, self._total + 1)
        )
        if self._done >= self._total and not due:
            return 0.0
        here, of = self._done - self._done_before, self._total - self._done_before
        if not means_something(here, of, self._stepping):
            return None
        a_step = statistics.median(seconds for _, seconds in self._steps)
        validation = statistics.fmean(self._validations) if self._validations else 0.0
        return max((self._total - self._done) * a_step + due * validation, 1.0)


def shown(numbers: TrainingNumbers) -> list[str]:
    """The numbers as a person reads them, plain ASCII, at most 78 columns with single spaces between."""
    suffix = "" if numbers.auroc is None else f" at {numbers.validated_at}"
    speed = numbers.tokens_per_second
    return [
        f"{numbers.done}/{numbers.total}",
        f"loss {or_dash(numbers.loss)}",
        f"AUROC {or_dash(numbers.auroc)}{suffix}",
        *([] if speed is None else [f"{speed:.0f} tokens/s"]),
        time_left(numbers.seconds_left, numbers.seconds),
    ]


def summary(points: Sequence[Mapping[str, Any]], numbers: TrainingNumbers) -> str:
    """One line at the end, from the learning curve (`metrics.results.CurvePoint`) and the last numbers."""
    trained = [point for point in points if point["step"]]
    parts = [f"{numbers.done} steps, {clock_time(numbers.seconds)}"]
    if trained:
        # One point of the curve has the mean over all steps, which is no course of its own.
        first = trained[0]["loss"] if len(trained) > 1 else numbers.first_loss
        course = [first, trained[-1]["loss"]] if numbers.total > 1 else [trained[-1]["loss"]]
        parts.append(f"loss {' -> '.join(map(or_dash, course))}")
        parts.append(f"AUROC on validation {or_dash(points[0]['auroc'])} -> {or_dash(trained[-1]['auroc'])}")
    scored = [point for point in trained if point["auroc"] is not None]
    if scored and (best := max(scored, key=lambda point: point["auroc"])) is not trained[-1]:
        parts.append(f"best {best['auroc']:.3f} at step {best['step']}")
    if numbers.tokens_per_second is not None:
        parts.append(f"{numbers.tokens_per_second:,.0f} tokens/s")
    return "; ".join(parts)


@contextmanager
def training_display(name: str, total: int, done: int, validate_every: int) -> Iterator[TrainingCourse]:
    """Show how a training of `total` optimizer steps goes, `done` of them taken before."""
    course = TrainingCourse(total, done, validate_every)
    with numbers_display(f"{name}: step ", lambda: shown(course.numbers()), total, done) as display:
        course.display = display
        yield course


def tracked_step(loss: float, learning_rate: float | None, tokens: int, seconds: float) -> dict[str, float]:
    """Numbers of an optimizer step for `track.log`.

    `tokens` are the step's, of all processes together, and went through the model in `seconds`.
    """
    numbers = {"train/loss": loss}
    if learning_rate is not None:
        numbers["train/learning_rate"] = learning_rate
    if seconds > 0:
        numbers["train/tokens_per_second"] = tokens / seconds
    return numbers


def tracked_validation(point: Mapping[str, Any]) -> dict[str, float | None]:
    """Numbers of a point of a learning curve (`metrics.results.CurvePoint`) for `track.log`."""
    low, high = point.get("auroc_ci") or (None, None)
    numbers = {name: point.get(name) for name in ("auroc", "miss_rate", "false_alarm_rate")}
    numbers |= {"auroc_low": low, "auroc_high": high}
    return {f"validation/{name}": value for name, value in numbers.items()}
