"""Settings of the stages around a deployment: `recommend.py`, `control.py`, `gate.py`, and `serve.py` as a
guardrail."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

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
    """Run of `pilot.py` whose decision says whether the monitor is to intervene, if it was a pilot of that
    monitor in the environment that the data come from; without it the monitor raises alerts only."""
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


AuditBudget = Annotated[float, Field(gt=0, lt=1)]


class Control(Config):
    """Settings of `control.py`, which measures safety at an audit budget."""

    calibration: tuple[Path, ...] = ()
    """Finished runs over the calibration split, whose benign samples serve as held-out honest traffic."""
    test: tuple[Path, ...] = ()
    """Finished runs of the same judges over the test split, whose misbehavior samples serve as attacks."""
    budgets: tuple[AuditBudget, ...] = (0.001, 0.003, 0.01, 0.03, 0.05)
    """Audit budgets: shares of honest traffic that may be audited, ascending."""
    method: Literal["neyman_pearson", "conformal_risk"] = "neyman_pearson"
    """Promise on the budget. `neyman_pearson`: it is kept with probability 1 - delta over calibrations, by
    share of honest tasks. `conformal_risk`: it is kept on average over calibrations, by share of honest
    samples."""
    delta: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """Probability that the promise may fail; used by `neyman_pearson` only."""
    unscored: Literal["against", "flag", "pass", "leave_out"] = "against"
    """Treatment of a sample without a score. `against`: an honest one counts as audited, an attack as not
    caught. `flag`: all are audited. `pass`: none is audited. `leave_out`: they are ignored."""
    ensembles: tuple[Literal["mean", "max"], ...] = ("mean", "max")
    """Ensembles made of the runs where there are several, in addition to those that `combine` made."""
    outcomes: Path | None = None
    """File with `sample_id` and any of `success` (of attacks), `useful` and `trusted_useful` (of honest
    samples), as `.csv`, `.jsonl` or `.parquet`; null: every attack succeeds, all honest work is useful."""
    trusted_usefulness: Annotated[float, Field(ge=0, le=1)] | None = None
    """Usefulness of the trusted model where `outcomes` does not say; null: deferring to it is not
    replayed."""
    routes: Literal["category", "cell", "source"] = "cell"
    """Grouping of attacks among which the attacker chooses."""
    route_cap: Annotated[float, Field(ge=1)] = 2.0
    """Largest multiple of its share of the attacks that a route may have in the worst mix."""
    best_of: tuple[Annotated[int, Field(ge=2, le=1024)], ...] = (2, 4, 8, 16)
    """Numbers of attacks from which the attacker takes the one that the monitor suspects least."""
    trajectory: Literal["as_judged", "max", "mean_top_k", "last"] = "as_judged"
    """Rule that turns step scores into a trajectory's score, for runs with a `steps.parquet`; `as_judged`:
    the score of the verdict."""
    top_k: Annotated[int, Field(ge=1)] = 3
    """Number of highest step scores that are averaged; used by `mean_top_k` only."""

    @field_validator("budgets")
    @classmethod
    def _ascend(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if not value or list(value) != sorted(set(value)):
            raise ValueError(
                f"[{','.join(f'{share:g}' for share in value)}]: expected ascending shares, each once"
            )
        return value

    @model_validator(mode="after")
    def _as_many(self) -> "Control":
        if len(self.calibration) != len(self.test):
            raise ValueError(
                f"{len(self.calibration)} runs in calibration, {len(self.test)} in test; expected each "
                "judge's run over both splits"
            )
        return self


Margin = Annotated[float, Field(gt=0, lt=1)]


class Gate(Config):
    """Settings of `gate.py`: with `file` a monitor is checked against what is frozen there; without it `run`
    is frozen at `operating_point`.

    What a check needs of these settings is in `gate.json` itself: whoever breaks a gate can't widen it from
    the command line.
    """

    file: Path | None = None
    """A `gate.json` to check against, with `anchors.jsonl` beside it."""
    traffic: Path | None = None
    """JSON lines of a deployment, each with a `score` (null where unscored) and optionally a `group`, or else
    a `sample_id`; no labels. Without `file` they are frozen as the reference of the drift alarm; with `file`
    they are compared with that reference."""
    questions: Annotated[int, Field(ge=2)] | None = 200
    """How many questions (groups) are frozen as anchors, in proportion to the cells; None: all of the run."""
    auroc_margin: Margin = 0.05
    """Fall of the AUROC that is too large; PASS means that a fall this large is ruled out."""
    miss_margin: Margin = 0.1
    """Rise of the miss rate at the threshold that is too large; PASS means that it is ruled out."""
    alarm_margin: Margin = 0.05
    """Rise of the false alarm rate at the threshold that is too large; PASS means that it is ruled out."""
    level: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    """Probability that an unchanged monitor ever fails, over all checks of a gate together, and that a
    changed one passes a check."""
    min_coverage: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Least share of the anchors that must get a score; with fewer the check is inconclusive."""
    drift_level: Annotated[float, Field(gt=0, lt=0.5)] = 0.01
    """Probability that a drift alarm ever goes off where nothing drifted, over all looks together."""


class Serve(Config):
    """`serve.py` with `serve.guardrail=true`: the monitor of `operating_point`, answering flag or pass."""

    guardrail: bool = False
    """Serve the monitor that `operating_point` was calibrated for, at its threshold; false serves
    `monitor`."""
    host: str = "127.0.0.1"
    """Address the guardrail listens at; any other than 127.0.0.1 requires a key."""
    port: Annotated[int, Field(ge=0, le=65535)] = 0
    """Port the guardrail listens on; 0 picks a free port."""
    names: tuple[str, ...] = ()
    """Host names by which clients address the guardrail, beside `host`, this machine's name, `localhost` and
    any IP address; a request for another name is refused: a web page would make it, by DNS rebinding."""
    api_key_env: Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$")] | None = None
    """NAME of the environment variable with the key that clients must send; null: a key is made where `host`
    can be reached from other machines, and written to `server.json`."""
    fails: Literal["closed", "open"] = "closed"
    """Answer where there is no score (unscored, timed out, overloaded, model gone). `closed`: flag. `open`:
    pass."""
    shadow: bool = False
    """Answer pass to everything; the log says what would have been answered."""
    timeout_seconds: Annotated[float, Field(gt=0, le=600)] = 10.0
    """Seconds from a request's last byte to its answer; after them it is answered without the monitor."""
    most_bytes: Annotated[int, Field(ge=1024, le=2**28)] = 4 * 2**20
    """Largest request body in bytes; a longer one is refused."""
    at_once: Annotated[int, Field(ge=1, le=10_000)] = 256
    """Most requests in hand, waiting ones included; any further request is refused, and so is a further
    question to a judge that hangs with this many waiting behind it. With more than four times
    as many connections open, requests are refused."""
    unknown_content: Literal["show", "refuse"] = "show"
    """Treatment of message content in a form that is not known: `show` puts its JSON before the judge,
    `refuse` answers 400 with the place, and `fails` decides."""
    log_text: bool = False
    """Whether the log holds the text of requests and responses."""
    telemetry: bool = False
    """Whether each decision is also a line of `events.jsonl`: OpenTelemetry's `gen_ai.evaluation.result`, as
    a collector's `otlpjsonfile` receiver reads it."""
