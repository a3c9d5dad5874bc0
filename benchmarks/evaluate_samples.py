"""The samples that evaluate.py's parts judge: the starter's test pairs, rendered once."""

from pathlib import Path
from typing import NamedTuple

from hydra import compose, initialize_config_dir

from monitorbench.config.load import load
from monitorbench.config.study import Study
from monitorbench.corpus.build import ensure
from monitorbench.corpus.store import read_split
from monitorbench.engines.stored.load import load_tokenizer
from monitorbench.engines.weights import weights_folder
from monitorbench.prompts.render import Renderer
from monitorbench.records import Sample, Split

ROOT = Path(__file__).resolve().parents[1]


class Judged(NamedTuple):
    """A study, its samples in the dataset's order, and their prompts as token ids."""

    study: Study
    samples: list[Sample]
    prompts: list[tuple[int, ...]]
    renderer: Renderer
    weights: Path


def composed(overrides: list[str]) -> Study:
    """The configuration of eval/evaluate.py."""
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return load(compose("evaluate", overrides))


def judged_samples(overrides: list[str]) -> Judged:
    """Build the dataset and convert the weights where they are not there yet, then render."""
    study = composed(overrides)
    samples = list(read_split(ensure(study, [Split.TEST]), Split.TEST, study.dataset.view("test")))
    weights = weights_folder(study.monitor, study.paths.models)
    renderer = Renderer(study.prompt, load_tokenizer(weights), study.monitor.opening)
    return Judged(study, samples, [renderer.render(sample) for sample in samples], renderer, weights)
