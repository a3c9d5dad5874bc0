"""Where a training run is, or will be: the one place that says what decides an adapter.

`train/sft.py` writes there, and the probe looks there, with nothing heavy imported.
"""

from collections.abc import Sequence

from monitorbench.config.study import Study
from monitorbench.runs.directory import RunDirectory


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
        "training": study.training.model_dump(mode="json") | {"dtype": study.training.resolved_dtype},
        "seed": study.seed,
    }
    if study.training.extra_source:
        identity["instructions"] = study.source[study.training.extra_source].model_dump(mode="json")
    name = f"{study.monitor.name}-{subset_name(study.dataset.train.subset)}"
    return RunDirectory(study.paths.runs / "train", name, identity)


def subset_name(subset: Sequence[str]) -> str:
    """A train subset as a name: `safety_permission_code`, `all-sycophancy_bias`."""
    return "+".join(subset).replace("/", "_")
