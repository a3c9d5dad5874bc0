"""The learning curve on the validation split, and the decision to stop that rests on it."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from monitorbench.metrics.auroc import auroc, auroc_interval
from monitorbench.prompts.label_tokens import score
from monitorbench.prompts.render import Renderer
from monitorbench.records import Label, Sample
from monitorbench.runs.files import read_objects, write_json
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
