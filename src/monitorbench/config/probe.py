"""`probe=`: which evaluation runs are laid side by side, or which trainings a study is made of."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from monitorbench.config.base import Config
from monitorbench.config.datasets import SplitView

Objective = Literal["sft", "pairwise", "curriculum", "mixed"]
Seed = Annotated[int, Field(ge=0, lt=2**31)]


class Trainings(Config):
    """Every one of `subsets` with every one of `seeds` and `objectives`."""

    subsets: tuple[str, ...] = ()
    """Train subsets, each as `dataset.train.subset` takes it."""
    seeds: tuple[Seed, ...] = (0,)
    objectives: tuple[Objective, ...] = ("sft",)

    @field_validator("subsets")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for subset in value:
            SplitView(subset=(subset,))
        return value


class Probe(Trainings):
    """`probe.py`: the runs, the base's among them; or a study, whose runs are found or made."""

    runs: tuple[Path, ...]
    """Evaluation runs; where they are given, `subsets` is not read."""
    also: dict[str, Trainings] = Field(default_factory=dict)
    """More trainings of the study, by any name: further seeds or objectives for some subsets."""
    make: bool = False
    """Train and evaluate what is missing, here, one after another; else say what is missing."""
    resamples: Annotated[int, Field(ge=100)]
    """Draws of the paired cluster bootstrap."""
    auroc_margin: Annotated[float, Field(gt=0, le=1)] = 0.05
    """AUROC counts as shown unchanged where the interval of its difference lies within ± this."""
