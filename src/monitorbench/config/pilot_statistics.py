"""How a pilot's outcomes become a decision: the settings of `intervention.pilot.decide`."""

from typing import Annotated

from pydantic import Field

from monitorbench.config.base import Config


class PilotStatistics(Config):
    """Every number that the decision depends on beside the outcomes."""

    margin: Annotated[float, Field(ge=0, lt=100)] = 0.0
    """Percentage points of success that an intervention has to gain to be worth having."""
    confidence: Annotated[float, Field(ge=0.5, lt=1)] = 0.95
    """Of the two-sided intervals; a wrong "intervene" has at most half of the rest."""
    draws: Annotated[int, Field(ge=1000, le=1_000_000)] = 10_000
    """Bootstrap draws of tasks, the same for all conditions."""
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    prior_tasks: Annotated[int, Field(ge=0, le=10)] = 1
    """Tasks added to each cell of the 2×2 when drawing; 0: the plain percentile bootstrap."""
    power: Annotated[float, Field(gt=0, lt=1)] = 0.8
    """Of the further tasks that an inconclusive pilot asks for."""
    effect: Annotated[float, Field(gt=-100, lt=100)] | None = None
    """Percentage points of success to plan further tasks for; None: what was observed."""
    p_target: Annotated[float, Field(ge=0, le=1)] | None = None
    """The deployment's own failure rate without intervention; None: no transport."""
    sequential: bool = False
    """Decide by looks at the tasks in the file's order, at the same overall error."""
    look_every: Annotated[int, Field(ge=1)] = 10
    """Tasks between two looks."""
    controls: tuple[str, ...] = ("random", "oracle", "best_of_2")
    """Conditions that are shown beside the others, and that nobody would deploy."""
