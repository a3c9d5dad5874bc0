"""Where a run of training or evaluation is, or will be, and what it is called: the one place that says so.

The stages write there, and a transfer study looks there, with nothing heavy imported. A folder's name says
what the run is of, and ends in the hash of its identity; folders of older versions, whose names say less, are
found as well.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from monitorbench.config.study import Study
from monitorbench.runs.directory import RunDirectory
from monitorbench.runs.files import content_hash

_LONGEST_NAME = 160
"""Bytes in front of the hash; a file system takes 255, with what names a folder in the making."""


def run_name(*parts: str) -> str:
    """What a run is of, as a folder's name: `smollm2_135m-direct-starter-test`; long parts are cut."""
    name = "-".join(part for part in parts if part)
    if len(name.encode()) <= _LONGEST_NAME:
        return name
    each = _LONGEST_NAME // len(parts) - 1
    return "-".join(part.encode()[:each].decode(errors="ignore") for part in parts if part)


def dataset_name(directory: str) -> str:
    """The dataset's name in the name of its directory, `<name>-<hash>`."""
    return directory.rpartition("-")[0] or directory


def training_run(study: Study, data: str, weights: str) -> RunDirectory:
    """The run of the study's training on the dataset directory named `data`.

    `weights` is `engines.weights.weights_identity` of the monitor.
    """
    identity = {
        "data": data,
        "train": study.dataset.train.model_dump(mode="json"),
        "validation": study.dataset.validation.model_dump(mode="json"),
        "weights": weights,
        "prompt": study.prompt.model_dump(mode="json"),
        "opening": study.monitor.opening,
        "training": _without_none(study.training.model_dump(mode="json"), "epochs", "max_steps")
        | {"dtype": study.training.resolved_dtype},
        "seed": study.seed,
    }
    if study.training.extra_source:
        identity["instructions"] = study.source[study.training.extra_source].model_dump(mode="json")
    monitor, subset = study.monitor.name, subset_name(study.dataset.train.subset)
    name = run_name(monitor, subset, dataset_name(data), f"seed{study.seed}")
    return RunDirectory(study.paths.runs / "train", name, identity, formerly=f"{monitor}-{subset}")


def fit_run(study: Study, data: str, weights: str, dtype: str) -> RunDirectory:
    """The run of the study's fit of a head on the dataset directory named `data`.

    `weights` as for `training_run`; `dtype` is the one that the states are extracted in.
    """
    identity = {
        "data": data,
        "train": study.dataset.train.model_dump(mode="json"),
        "validation": study.dataset.validation.model_dump(mode="json"),
        "weights": weights,
        "prompt": study.prompt.model_dump(mode="json"),
        "opening": study.monitor.opening,
        "head": study.head.model_dump(mode="json"),
        "dtype": dtype,
        "seed": study.seed,
    }
    subset = subset_name(study.dataset.train.subset)
    name = run_name(study.monitor.name, study.head.name, subset, dataset_name(data), f"seed{study.seed}")
    return RunDirectory(study.paths.runs / "fit", name, identity)


def _without_none(settings: dict[str, Any], *names: str) -> dict[str, Any]:
    """Without these where they are None: the run of before the setting came is found again."""
    return {name: value for name, value in settings.items() if value is not None or name not in names}


def subset_name(subset: Sequence[str]) -> str:
    """A train subset as a name: `safety_permission_code`, `all-sycophancy_bias`."""
    return "+".join(subset).replace("/", "_")


def evaluation_run(runs: Path, monitor: str, prompt: str, identity: Mapping[str, Any]) -> RunDirectory:
    """The run of a monitor, asked with a prompt, over the split of the dataset that the identity names."""
    name = run_name(monitor, prompt, dataset_name(identity["data"]), identity["split"])
    return RunDirectory(runs / "evaluate", name, identity, formerly=f"{monitor}-{prompt}")


def evaluation_id(manifest: Mapping[str, Any]) -> str:
    """`<monitor>-<prompt>-<hash>`: the same for one run whatever its folder is called."""
    judge = manifest["results"]["judge"]
    return f"{judge['name']}-{judge['prompt']}-{content_hash(manifest['identity'])}"
