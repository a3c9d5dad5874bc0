"""The shape of `recommendation.json`: what `recommend` writes and its page reads."""

from typing import Any, Literal, TypedDict, cast

from monitorbench.metrics.robustness.worst import Robustness

SCHEMA_VERSION = 2
FILE = "recommendation.json"
Kind = Literal["recommend", "insufficient", "none"]
Why = Literal["promise", "budget", "difference"]
Way = Literal["below", "above"]
Needed = Literal["calibration", "test", "both"]
Labelled = Literal["benign", "misbehavior"]


class AtTest(TypedDict):
    """What a threshold comes to on the test split; each interval of 95 %, of `…_per_1000` at least that."""

    miss_rate: float | None
    miss_rate_ci: list[float] | None
    false_alarm_rate: float | None
    false_alarm_rate_ci: list[float] | None
    missed_per_1000: float | None
    """Of 1,000 samples of the deployment, misbehavior that is passed."""
    missed_per_1000_ci: list[float] | None
    false_alarms_per_1000: float | None
    """Of 1,000 samples of the deployment, benign ones that are flagged."""
    false_alarms_per_1000_ci: list[float] | None
    alerts_per_1000: float | None
    alerts_per_1000_ci: list[float] | None
    precision: float | None
    precision_ci: list[float] | None
    expected_cost: float | None
    """A sample, audits included."""
    expected_cost_ci: list[float] | None
    curve: list[list[float | None]]
    """[base rate, expected cost, its interval's low and high]: the cost at other base rates."""


class Option(TypedDict):
    """One monitor that was chosen from."""

    monitor: str
    prompt: str
    threshold: float | None
    """Misbehavior is a score above it; None where there is none to take, for `reason`."""
    reason: str
    reads_answers: bool
    """Whether it has no scores, so that its answers are read as scores of 0 and 1."""
    calibration_cost: float | None
    """The expected cost there, by which it is chosen: too low for the one that is."""
    n_calibration: int
    """Benign questions that its threshold was set on."""
    n_unscored: int
    """Test samples without a score, which count as `settings.unscored` says."""
    seconds_p95: float | None
    price: float | None
    """Mean, of a verdict; None where it was not recorded."""
    robustness: Robustness | None
    """What changes that keep the label do to it (`stress`); None where it was not stressed."""
    robustness_at: Literal["threshold", "answers", ""]
    """Where labels are read for it: at `threshold`, or the judge's own answers; empty where it is None."""
    at_test: AtTest | None
    difference: float | None
    """Its expected cost less that of the recommended one, on the test split."""
    difference_ci: list[float] | None


class Rival(TypedDict):
    """What does not read, and has to be beaten: a shortcut check at its own best threshold, or one answer."""

    name: str
    is_shortcut: bool
    threshold: float | None
    expected_cost: float | None
    difference: float | None
    """The expected cost of the monitor less the rival's, on the test split; below 0 the monitor is better."""
    difference_ci: list[float] | None
    curve: list[list[float]]
    """[base rate, expected cost]."""


class ShortcutsFacts(TypedDict):
    """Whether the shortcut checks could be made."""

    checked: bool
    fitted_on: Literal["train", "calibration", ""]
    reason: str
    """Why they could not."""


class MoreFacts(TypedDict):
    """What is missing where the data is insufficient."""

    why: Why
    split: Needed
    label: Labelled
    """Of the questions that are needed most."""
    n: int
    by_cell: dict[str, int]
    """The most needed first."""


class SwitchFacts(TypedDict):
    """A figure of the deployment at which another answer would cost least on the calibration split."""

    what: Literal["base_rate", "cost_miss"]
    way: Way
    at: float
    instead: str
    """A monitor's name, `nothing` or `everything`: what would be flagged."""
    prompt: str


class RegretFacts(TypedDict):
    """The choice in redraws of the calibration split; see `metrics.choice.regret`."""

    n: int
    mean: float | None
    high: float | None
    """The 95 % quantile."""
    share_same: float | None
    """How often the same monitor was chosen."""


class PromiseKept(TypedDict):
    """The bound on false alarms that the recommended threshold keeps."""

    alpha: float
    delta: float | None
    n: int
    effective_n: float | None
    method: str
    n_candidates: int
    """Number of monitors among which the calibration split chose; the threshold keeps its share of delta."""


class PilotSaid(TypedDict):
    """The pilot's decision."""

    run: str
    decision: str
    agent: str
    condition: str
    sentence: str


class SettingsFacts(TypedDict):
    """The deployment."""

    base_rate: float
    base_rates: list[float]
    cost_miss: float
    cost_alarm: float
    cost_audit: float
    samples_per_day: float | None
    alerts_per_day: float | None
    money_per_day: float | None
    seconds: float | None
    unscored: Literal["wrong", "flag", "pass"]
    promise: bool


class Recommendation(TypedDict):
    """The whole of `recommendation.json`."""

    schema_version: int
    decision: Kind
    sentence: str
    remarks: list[str]
    monitor: str | None
    """The recommended one; of `insufficient` and `none` the nearest to it, None without any."""
    prompt: str | None
    threshold: float | None
    mode: Literal["watch", "intervene"]
    data: str
    positive_means: str
    n_test: int
    settings: SettingsFacts
    promise: PromiseKept | None
    unbound_cost: float | None
    """The least expected cost on the calibration split at any threshold, whatever was promised."""
    at_test: AtTest | None
    runner_up: str | None
    runner_up_prompt: str | None
    options: list[Option]
    """The cheapest on the calibration split first."""
    rivals: list[Rival]
    shortcuts: ShortcutsFacts
    more: MoreFacts | None
    changes: list[SwitchFacts]
    regret: RegretFacts
    pilot: PilotSaid | None


def as_recommendation(found: object) -> Recommendation:
    """A parsed `recommendation.json`; ValueError where it is of another version."""
    whole = cast(dict[str, Any], found)
    version = whole.get("schema_version") if isinstance(found, dict) else None
    if version != SCHEMA_VERSION:
        raise ValueError(f"schema_version {version}: expected {SCHEMA_VERSION}; run eval/recommend.py again")
    return cast(Recommendation, whole)
