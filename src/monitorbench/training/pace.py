"""What finished trainings tell, read from their files alone: how fast they were, and how good.

The pace is that of earlier trainings of the same model on the same kind of machine, else an assumption. A
training leaves in its manifest what it measured of itself (`results.measured`); for evaluations
`judging.expected.measured_pace` does the same by their verdicts. The runs of a sweep are compared by what
they reached on the validation split; the test split has no part in it.
"""

import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table

from monitorbench.config.base import UserError
from monitorbench.config.hardware import Scores
from monitorbench.config.study import Cluster, Study
from monitorbench.config.terminal import Console
from monitorbench.config.training import Training
from monitorbench.runs.directory import read_manifest

_DECIDES_PACE = ("dtype", "batching", "micro_batch_size", "loader", "gradient_checkpointing")
"""Settings of a training that decide how long a token takes."""
_ENOUGH = 5
"""Number of trainings that are read, the newest first."""


class Machine(NamedTuple):
    """The machine that a training runs on."""

    kind: str
    """`cpu` or `cuda`."""
    name: str
    """The GPU's own name, or the platform of a CPU."""
    n: int
    """Number of processes, each with a device."""


class MeasuredTraining(NamedTuple):
    """Tokens and seconds of a training's optimizer steps and validations."""

    tokens: int
    """Tokens of the samples in optimizer steps, padding left out."""
    seconds: float
    validation_tokens: int
    validation_seconds: float


class TrainingPace(NamedTuple):
    """Tokens per second of a training as a whole."""

    training: float
    validation: float | None
    """Tokens per second of prompts of the validation split; None: as in training."""
    n_runs: int = 0
    """Number of trainings it was measured in; 0: it is assumed."""

    def seconds(self, tokens: float, validation_tokens: float) -> float:
        """How long so many tokens take; loading and saving are not in it."""
        return tokens / self.training + validation_tokens / (self.validation or self.training)


def n_validations(training: Training, done: int = 0) -> int:
    """How often a training of known steps judges its validation split, `done` steps being taken already."""
    steps, every = training.steps, training.validate_every
    at_ends = (done == 0) + (steps % every != 0 and done < steps)
    return steps // every - done // every + at_ends


def planned_machine(cluster: Cluster, device: str) -> Machine:
    """The machine that a training in one process will get, as far as the settings say it.

    A GPU's name is then Slurm's type. A cluster's further GPUs train nothing, except for `torchrun` and its
    like, which no setting names.
    """
    if cluster.gpus or device == "cuda":
        return Machine("cuda", cluster.gpu_type or "", 1)
    return Machine("cpu", platform.platform(), 1)


def measured_pace(runs: Path, training: Mapping[str, Any], machine: Machine) -> TrainingPace | None:
    """The pace that earlier trainings in the folder `runs` measured; None where there is none.

    `training` is the run's identity: the same weights, type, batching and loader count, on the same machine.
    Of the newest five all tokens by all seconds. A run that can't be read counts for nothing.
    """
    by_start: list[tuple[str, MeasuredTraining]] = []
    for path in (runs / "train").glob("*/manifest.json"):
        try:
            manifest = read_manifest(path.parent)
            measured = manifest.get("results", {}).get("measured")
            if measured is None or not _is_alike(manifest, training, machine):
                continue
            values = MeasuredTraining(*(measured[name] for name in MeasuredTraining._fields))
        except (UserError, KeyError, TypeError, AttributeError):
            continue
        if values.tokens > 0 and values.seconds > 0:
            by_start.append((str(manifest.get("started", "")), values))
    if not by_start:
        return None
    newest = [values for _, values in sorted(by_start, reverse=True)[:_ENOUGH]]
    total = MeasuredTraining(*map(sum, zip(*newest, strict=True)))
    validation = total.validation_tokens / total.validation_seconds if total.validation_seconds else None
    return TrainingPace(total.tokens / total.seconds, validation or None, len(newest))


def assumed_pace(
    cluster: Cluster, parameters: float | None, scores: Scores = "fast", n_gpus: int = 1
) -> TrainingPace | None:
    """`cluster.assumed` for a model of so many parameters, spread over so many GPUs; None where not set.

    `scores` is the engine's; a training's validations are as its steps, in bfloat16.
    """
    assumed = cluster.assumed
    if assumed is None or parameters is None:
        return None
    factor = assumed.parameters / parameters * n_gpus
    prompts = {
        "reproducible": assumed.reproducible_prompt_tokens_per_second,
        "fast": assumed.fast_prompt_tokens_per_second,
    }
    return TrainingPace(assumed.training_tokens_per_second * factor, prompts[scores] * factor)


def _is_alike(manifest: Mapping[str, Any], training: Mapping[str, Any], machine: Machine) -> bool:
    identity, ran_on = manifest["identity"], manifest["results"]["measured"]["machine"]
    same = identity["weights"] == training["weights"] and all(
        identity["training"].get(name) == training["training"].get(name) for name in _DECIDES_PACE
    )
    kind, name, n = ran_on["kind"], str(ran_on["name"]), ran_on["n"]
    # Slurm's `h100` is part of what the card calls itself; a CPU's platform is compared as a whole.
    alike = name == machine.name if machine.kind == "cpu" else machine.name.lower() in name.lower()
    return same and kind == machine.kind and n == machine.n and alike


def validation_auroc(run: Path) -> float:
    """AUROC on the validation split at the step that a training run kept, from 0 to 1.

    Raises:
        UserError: where it has none there, since no score was a number or one label is missing.

    """
    step = json.loads((run / "manifest.json").read_text(encoding="utf-8"))["results"]["kept_step"]
    auroc = _curve(run).get(step)
    if auroc is None:
        raise UserError(f"{run}: no AUROC on the validation split at step {step}; expected both labels there")
    return auroc


def show_trials(jobs: Sequence[tuple[Study, Path]]) -> None:
    """Print a row for each training of a multirun to stderr, in its order, the best one in bold."""
    values = [validation_auroc(run) for _, run in jobs]
    settings = [_flat(study.model_dump(mode="json", include=_DECIDES)) for study, _ in jobs]
    keys = [key for key in settings[0] if len({str(trial.get(key)) for trial in settings}) > 1]
    best = values.index(max(values))  # the first of equals, as Optuna has it
    headers = ["run", *(key.removeprefix("training.") for key in keys), "AUROC", "untrained"]
    table = Table(*headers, box=None, header_style="dim", pad_edge=False)
    for number, ((_, run), flat, value) in enumerate(zip(jobs, settings, values, strict=True)):
        base = _curve(run).get(0)
        numbers = (f"{value:.3f}", "–" if base is None else f"{base:.3f}")
        row = (run.name.rpartition("-")[2], *(_short(flat.get(key)) for key in keys), *numbers)
        table.add_row(*row, style="bold" if number == best else None)
    console = Console(stderr=True, highlight=False)
    console.print(f"\nAll {len(jobs)} trainings, on the validation split", style="bold")
    console.print(table)
    console.print(
        f"The best, {jobs[best][1].name}, looks better than it is: it was chosen by these numbers. "
        "Judge it once on the test split.",
        soft_wrap=True,
    )


_DECIDES = {"dataset", "monitor", "prompt", "training", "seed"}
"""Settings that a training run is named by."""


def _curve(run: Path) -> dict[int, float | None]:
    """AUROC by step."""
    points = json.loads((run / "learning_curve.json").read_text(encoding="utf-8"))
    return {point["step"]: point["auroc"] for point in points}


def _flat(tree: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """`training.lora_rank` and its like."""
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        flat |= _flat(value, f"{above}{name}.") if isinstance(value, Mapping) else {above + name: value}
    return flat


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
