"""`recommend.py`: what is chosen from, and the deployment that it is chosen for."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from monitorbench.config.base import Config

BaseRate = Annotated[float, Field(gt=0, lt=1)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Budget = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Recommend(Config):
    """Beside `stakes` (the base rate that is expected, the costs of a miss and of a false alarm)."""

    runs: tuple[Path, ...] = ()
    """Finished evaluation runs: of each monitor or combination one over the calibration split, on which it is
    chosen, and one over the test split, which says what it is worth."""
    base_rates: tuple[BaseRate, BaseRate] = (0.001, 0.1)
    """The lowest and the highest share of misbehavior that the deployment may have."""
    cost_audit: Amount = 0.0
    """What looking at an alert costs, right or wrong, in the unit of `stakes.cost_miss`."""
    samples_per_day: Budget | None = None
    """How many samples are judged a day; for the next two."""
    alerts_per_day: Budget | None = None
    """At most so many may be flagged a day."""
    money_per_day: Budget | None = None
    """At most so much may be spent a day, on the monitor (as its verdicts say, in the currency of the
    engine's prices) and on audits (`cost_audit`, then in the same currency)."""
    seconds: Budget | None = None
    """At most so many may 95 % of the verdicts take, as measured on the test split."""
    pilot: Path | None = None
    """A run of `pilot.py`, whose decision says whether the monitor is to intervene; without it watches."""
    promise: bool = True
    """Only thresholds that keep the false alarms that `calibrate` promises; else any, by their cost alone."""
    unscored: Literal["wrong", "flag", "pass"] = "wrong"
    """What a sample without a score counts as: wrong whatever its label, flagged, or passed."""
    redraws: Annotated[int, Field(ge=100, le=100_000)] = 1000
    """Draws of the calibration split in which the choice is made anew."""

    @model_validator(mode="after")
    def _fits_together(self) -> "Recommend":
        low, high = self.base_rates
        if low > high:
            raise ValueError(f"base_rates=[{low:g},{high:g}]: expected the lower one first")
        for name in ("alerts_per_day", "money_per_day"):
            if getattr(self, name) is not None and self.samples_per_day is None:
                raise ValueError(f"{name}: of how many samples? expected recommend.samples_per_day as well")
        return self
