"""`combine.py`: which finished evaluations become one monitor, and how."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from monitorbench.config.base import Config


class Combine(Config):
    """Several judges made one; what is fitted is fitted on the calibration split."""

    rule: Literal["mean", "max", "stacked", "cascade"]
    """Of the scores: their mean, their maximum, a logistic regression; or the second judge only where
    the first is not sure."""
    calibration: tuple[Path, ...]
    """Finished runs over the calibration split; of a cascade the cheap judge's first."""
    test: tuple[Path, ...]
    """The same judges' runs over the test split."""
    size: Annotated[int, Field(ge=1)] | None
    """How many members are chosen at most; None: all that are given."""
    budget: Annotated[float, Field(ge=0, le=1)]
    """Read by `cascade` only: the share of the samples that may be sent on."""

    @model_validator(mode="after")
    def _a_cascade_has_two(self) -> "Combine":
        if self.rule == "cascade" and self.size is not None:
            raise ValueError(f"size={self.size}: a cascade has two judges and chooses none; expected null")
        return self
