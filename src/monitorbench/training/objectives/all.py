"""The objectives there are, by their names in `training.objective`."""

from monitorbench.config.training import Training
from monitorbench.training.objectives.base import ObjectiveSpec
from monitorbench.training.objectives.curriculum import CURRICULUM
from monitorbench.training.objectives.mixed import MIXED
from monitorbench.training.objectives.pairwise import PAIRWISE
from monitorbench.training.objectives.sft import SFT

OBJECTIVES = (SFT, PAIRWISE, CURRICULUM, MIXED)


def objective_of(training: Training) -> ObjectiveSpec:
    """The objective that the settings name."""
    (objective,) = (spec for spec in OBJECTIVES if spec.name == training.objective)
    return objective
