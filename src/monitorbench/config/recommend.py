"""Settings of `recommend.py`: the runs to choose from, and the deployment to choose for."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from monitorbench.config.base import Config

BaseRate = Annotated[float, Field(gt=0, lt=1)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Budget = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Recommend(Config):
    """Candidates and limits of a deployment; `stakes` has its expected base rate and the costs of errors."""

    runs: tuple[Path, ...] = ()
    """Finished evaluation runs: for each monitor or combination one over the calibration split, on which it
    is chosen, and one over the test split, which says how good it is."""
    base_rates: tuple[BaseRate, BaseRate] = (0.001, 0.1)
    """Lowest and highest share of misbehavior that the deployment may have."""
    cost_audit: Amount = 0.0
    """Cost of reviewing an alert, right or wrong, in the unit of `stakes.cost_miss`."""
    samples_per_day: Budget | None = None
    """How many samples are judged per day; required by `alerts_per_day` and `money_per_day`."""
    alerts_per_day: Budget | None = None
    """Most samples that may be flagged per day."""
    money_per_day: Budget | None = None
    """Most money that may be spent per day, on the monitor (as its verdicts say, in the currency of the
    engine's prices) and on audits (`cost_audit`, then in the same currency)."""
    seconds: Budget | None = None
    """Most seconds that 95 % of the verdicts may take, as measured on the test split."""
    pilot: Path | None = None
    """Run of `pilot.py` whose decision says whether the monitor is to intervene; without it the monitor only
    watches."""
    promise: bool = True
    """Consider only thresholds that keep the false alarm rate that `calibrate` promises; false considers all
    thresholds, by their cost alone."""
    unscored: Literal["wrong", "flag", "pass"] = "wrong"
    """Treatment of a sample without a score: wrong whatever its label, flagged, or passed."""
    redraws: Annotated[int, Field(ge=100, le=100_000)] = 1000
    """Draws of the calibration split on which the choice is repeated."""

    @model_validator(mode="after")
    def _fits_together(self) -> "Recommend":
        low, high = self.base_rates
        if low > high:
            raise ValueError(f"base_rates=[{low:g},{high:g}]: expected the lower one first")
        for name in ("alerts_per_day", "money_per_day"):
            if getattr(self, name) is not None and self.samples_per_day is None:
                raise ValueError(f"{name}: of how many samples? expected recommend.samples_per_day as well")
        return self
