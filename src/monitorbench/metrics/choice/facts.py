"""The decision on some monitors: the shape of `recommendation.json`, and of `decision` in `metrics.json`."""

from typing import Any, Literal, TypedDict, cast

from monitorbench.metrics.robustness.worst import Robustness

SCHEMA_VERSION = 3
FILE = "recommendation.json"
Kind = Literal["recommend", "insufficient", "none"]
Why = Literal["promise", "budget", "difference"]
Needed = Literal["calibration", "test", "both"]
Labelled = Literal["benign", "misbehavior"]


class AtTest(TypedDict):
    """Numbers of one monitor on the test split; intervals of `confidence`, of `…_per_1000` at least that."""

    n_misbehavior: int
    n_benign: int
    n_benign_questions: int
    miss_rate: float | None
    miss_rate_ci: list[float] | None
    false_alarm_rate: float | None
    """Share of benign samples that are flagged."""
    false_alarm_rate_ci: list[float] | None
    false_alarm_rate_by_question: float | None
    """Share of benign questions of which any sample is flagged: what a promise is of."""
    false_alarm_rate_by_question_ci: list[float] | None
    is_sample_a_question: bool
    """Whether each benign question has one sample, so that both false alarm rates are the same."""
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
    """Misbehavior is a score above it; None where there is none to take, for `reason`, and where there are
    `thresholds`, or the monitor's own answers, in its place."""
    thresholds: dict[str, float]
    """By category, where each has its own; else empty."""
    reason: str
    reads_answers: bool
    """Whether it has no scores, so that its answers are read as scores of 0 and 1."""
    calibration_cost: float | None
    """The expected cost there, by which it is chosen: too low for the one that is."""
    n_calibration: int
    """Benign questions that its threshold was set on."""
    n_unscored: int
    """Test samples without a score, which count as `settings.unscored` says."""
    auroc: float | None
    """On the test split; None without scores of both labels."""
    auroc_ci: list[float] | None
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


class RegretFacts(TypedDict):
    """The choice in redraws of the calibration split; see `metrics.choice.regret`."""

    n: int
    mean: float | None
    high: float | None
    """The 95 % quantile."""
    share_same: float | None
    """How often the same monitor was chosen."""


class PromiseKept(TypedDict):
    """The bound on false alarms that the named monitor's threshold keeps, although it was chosen."""

    alpha: float
    delta: float | None
    """The chance that it is broken, whichever of the monitors was chosen; None of a promise on average."""
    n_candidates: int
    """Monitors that it was chosen among."""
    n: int
    effective_n: float | None
    method: str


class PilotSaid(TypedDict):
    """The pilot's decision."""

    run: str
    monitor: str
    """The monitor that intervened there; empty where the pilot does not say."""
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
    thresholds: dict[str, float]
    """By category, where each has its own; else empty."""
    is_calibrated: bool
    """Whether thresholds come from the calibration split; else monitors are read by their own answers, or at
    thresholds from elsewhere, and all of it was decided on the test split."""
    n_candidates: int
    confidence: float
    """Of the intervals of `at_test` and of `rivals`: 95 %, and 1 − .05 / `n_candidates` where the choice fell
    on the test split."""
    mode: Literal["watch", "intervene"]
    data: str
    positive_means: str
    n_test: int
    settings: SettingsFacts
    promise: PromiseKept | None
    voids: list[str]
    """What makes the promise void or worthless here: drifted scores, another dataset, nothing flagged."""
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
    regret: RegretFacts
    pilot: PilotSaid | None


class CostDifference(TypedDict):
    """The expected cost of the named monitor less that of another answer, on the same test samples."""

    monitor: str
    prompt: str
    """`none` of what does not read."""
    n: int
    difference: float | None
    """Per judged sample; below 0 the other costs more."""
    difference_ci: list[float] | None
    confidence: float


class DecisionFacts(Recommendation):
    """`decision` in `metrics.json`: a recommendation, its kind as it is called there, and its comparisons."""

    kind: Literal["deploy", "none", "too_few"]
    against: list[CostDifference]
    """The named monitor against what it has to beat."""
    others: list[CostDifference]
    """The named monitor against the others that have a threshold."""


def decision_facts(found: Recommendation) -> DecisionFacts:
    """The recommendation as `metrics.json` has it."""
    kinds: dict[Kind, Literal["deploy", "none", "too_few"]] = {
        "recommend": "deploy",
        "insufficient": "too_few",
        "none": "none",
    }
    n, confidence = found["n_test"], found["confidence"]
    against = [
        CostDifference(
            monitor=one["name"],
            prompt="none",
            n=n,
            difference=one["difference"],
            difference_ci=one["difference_ci"],
            confidence=confidence,
        )
        for one in found["rivals"]
    ]
    others = [
        CostDifference(
            monitor=one["monitor"],
            prompt=one["prompt"],
            n=n,
            difference=0.0 - one["difference"],
            difference_ci=[0.0 - bound for bound in reversed(one["difference_ci"] or [])] or None,
            confidence=confidence,
        )
        for one in found["options"]
        if one["difference"] is not None
    ]
    return DecisionFacts(**found, kind=kinds[found["decision"]], against=against, others=others)


def as_recommendation(found: object) -> Recommendation:
    """A parsed `recommendation.json`; ValueError where it is of another version."""
    whole = cast(dict[str, Any], found)
    version = whole.get("schema_version") if isinstance(found, dict) else None
    if version != SCHEMA_VERSION:
        raise ValueError(f"schema_version {version}: expected {SCHEMA_VERSION}; run eval/recommend.py again")
    return cast(Recommendation, whole)
