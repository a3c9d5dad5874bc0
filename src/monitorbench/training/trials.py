"""The runs of a sweep over training settings, by what they reached on the validation split.

Read from finished runs' files alone; the test split has no part in it.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from monitorbench.config.base import UserError
from monitorbench.config.study import Study


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
