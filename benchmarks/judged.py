"""Studies as the project's scripts compose them, and the starter's samples that several benchmarks judge."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hydra import compose, initialize_config_dir
from hydra.errors import HydraException

from benchmarks.measuring import ROOT
from monitorbench.config.base import ConfigError
from monitorbench.config.load import load
from monitorbench.config.study import Study
from monitorbench.corpus.build import ensure
from monitorbench.corpus.store import read_split
from monitorbench.engines.stored.model_folder import load_tokenizer
from monitorbench.engines.weights import weights_folder
from monitorbench.prompts.render import Renderer
from monitorbench.records import Sample, Split


class Judged(NamedTuple):
    """A study, its samples in the dataset's order, and their prompts as token ids."""

    study: Study
    samples: list[Sample]
    prompts: list[tuple[int, ...]]
    renderer: Renderer
    weights: Path

    def fitting(self, most: int) -> list[Sample]:
        """Return the first `most` samples that the context can hold."""
        fits = self.study.monitor.context_tokens - self.study.prompt.most_tokens
        pairs = zip(self.samples, self.prompts, strict=True)
        return [sample for sample, ids in pairs if len(ids) <= fits][:most]


def composed(primary: str, settings: Sequence[str]) -> Study:
    """Compose the study of a script: `evaluate` for `eval/evaluate.py`. Raises `SystemExit` of one line."""
    try:
        with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
            return load(compose(primary, list(settings)))
    except (HydraException, ConfigError) as error:
        raise SystemExit(f"error: {str(error).splitlines()[0]}") from None


def judged_samples(settings: Sequence[str]) -> Judged:
    """Build the test split and convert the weights where they are not there yet, then render."""
    study = composed("evaluate", settings)
    samples = list(read_split(ensure(study, [Split.TEST]), Split.TEST, study.dataset.view("test")))
    weights = weights_folder(study.monitor, study.paths.models)
    renderer = Renderer(study.prompt, load_tokenizer(weights), study.monitor.opening)
    return Judged(study, samples, [renderer.render(sample) for sample in samples], renderer, weights)


def body_of(sample: Sample) -> bytes:
    """The JSON that a client sends of a sample."""
    return json.dumps(sample.model_dump(mode="json", include={"request", "response"})).encode()
