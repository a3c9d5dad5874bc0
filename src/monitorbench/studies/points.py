"""What a transfer study is made of: a frozen study for every training and every evaluation.

They differ from the transfer study's own settings in what it varies and in nothing else, so the runs that
`train/sft.py`, `train/fit.py` and `eval/evaluate.py` made under the same experiment are theirs.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from monitorbench.config.base import ConfigError
from monitorbench.config.evaluation import Transfer
from monitorbench.config.load import validate
from monitorbench.config.study import Study
from monitorbench.runs.files import content_hash


class Point(NamedTuple):
    """One training of the study."""

    subset: str
    seed: int
    objective: str
    """Of an adapter; of a probe, the head's name."""

    @property
    def name(self) -> str:
        """`safety_permission_code-sft-seed0`: for files."""
        return f"{self.subset.replace('/', '_')}-{self.objective}-seed{self.seed}"


def points(transfer: Transfer) -> list[Point]:
    """The trainings that a study names, each once, in the order they are named."""
    return list(
        dict.fromkeys(
            Point(subset, seed, objective)
            for some in (transfer, *transfer.also.values())
            for seed in some.seeds
            for objective in some.objectives
            for subset in some.subsets
        )
    )


def heads(study: Study) -> list[Point]:
    """The fits of a study by heads, in the order they are named.

    Raises `ConfigError` where its seeds would all give the same head.
    """
    found = [point._replace(objective=study.head.name) for point in points(study.transfer)]
    if study.head.kind == "linear" and study.head.draw == "all" and len({one.seed for one in found}) > 1:
        raise ConfigError(
            "transfer.seeds: a linear head is the same with every seed; expected one seed, or "
            "head.draw=bootstrap"
        )
    return found


def folder_of(study: Study) -> Path:
    """Where the frozen studies of a transfer study's runs are kept: `runs/studies/<dataset>-<hash>/`."""
    named = study.model_dump(mode="json", exclude={"paths", "cluster", "tracking", "transfer", "run"})
    made = points(study.transfer) if study.transfer.by == "adapter" else heads(study)
    name = f"{study.dataset.name}-{content_hash([named, made])}"
    return study.paths.runs / "studies" / name


def group_of(study: Study) -> str:
    """What W&B shows a transfer study's runs under: `tracking.group`, or the name of their folder."""
    return study.tracking.group or folder_of(study).name


def training_study(study: Study, point: Point) -> Study:
    """The study that trains a point; `ConfigError` where its objective and the other settings don't fit."""
    training = study.training.model_dump(mode="json")
    if training.get("objective", "sft") != point.objective:
        training["objective"] = point.objective
    dataset = study.dataset.model_dump(mode="json")
    dataset["train"]["subset"] = [point.subset]
    return _changed(study, {"seed": point.seed, "dataset": dataset, "training": training})


def fit_study(study: Study, point: Point) -> Study:
    """The study that fits a head; what validation chooses is chosen on the cells that are trained on.

    So no cell that is called held out has had a part in the head.
    """
    dataset = study.dataset.model_dump(mode="json")
    for split in ("train", "validation"):
        dataset[split]["subset"] = [point.subset]
    return _changed(study, {"seed": point.seed, "dataset": dataset})


def evaluation_study(study: Study, adapter: Path | None, head: Path | None = None) -> Study:
    """The study that judges the test split with an adapter, with a head, or with the base."""
    on_top = {"adapter": str(adapter) if adapter else None, "head": str(head) if head else None}
    monitor = study.monitor.model_dump(mode="json") | on_top
    return _changed(study, {"monitor": monitor, "adapters": [], "evaluate": {"split": "test"}})


def _changed(study: Study, changes: Mapping[str, Any]) -> Study:
    tree = {**study.model_dump(mode="json"), **changes}
    tree["tracking"] = {**tree["tracking"], "group": group_of(study)}
    return validate(json.dumps(tree))
