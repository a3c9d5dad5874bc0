"""Define the decision on some monitors, as in `recommendation.json` and in `decision` of `metrics.json`."""

from typing import Any, Literal, TypedDict, cast

from monitorbench.metrics.robustness import Robustness

SCHEMA_VERSION = 8
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
    """Share of benign questions of which any sample is flagged, which is the share that a promise bounds."""
    false_alarm_rate_by_question_ci: list[float] | None
    is_sample_a_question: bool
    """Whether each benign question has one sample, so that both false alarm rates are the same."""
    missed_per_1000: float | None
    """Misbehavior that is passed, in 1,000 samples of the deployment."""
    missed_per_1000_ci: list[float] | None
    false_alarms_per_1000: float | None
    """Benign samples that are flagged, in 1,000 samples of the deployment."""
    false_alarms_per_1000_ci: list[float] | None
    alerts_per_1000: float | None
    alerts_per_1000_ci: list[float] | None
    precision: float | None
    precision_ci: list[float] | None
    expected_cost: float | None
    """Expected cost per sample, audits included."""
    expected_cost_ci: list[float] | None
    curve: list[list[float | None]]
    """Cost at other base rates, in rows [base rate, expected cost, its interval's low and high]."""


class Option(TypedDict):
    """One monitor among those that were chosen from."""

    monitor: str
    prompt: str
    threshold: float | None
    """Score above which a sample is flagged as misbehavior. None where the monitor has no threshold to take,
    for `reason`, and where `thresholds`, or the monitor's own answers, are in its place."""
    thresholds: dict[str, float]
    """Thresholds by category, where each category has its own; else empty."""
    scale: list[float] | None
    """Values of the imported file that became scores of 0 and 1; None where its scores are as they were, and
    of monitors that were judged here."""
    reason: str
    reads_answers: bool
    """Whether the monitor has no scores, so that its answers are read as scores of 0 and 1."""
    calibration_cost: float | None
    """Expected cost on the calibration split, by which the monitor is chosen: too low for the one that is."""
    n_calibration: int
    """Number of benign questions that the threshold was set on."""
    n_unscored: int
    """Number of test samples without a score, or an answer where answers are read; they count as
    `settings.unscored` says."""
    n_unanswered: int
    """Those of `n_unscored` that lack an answer and not a score."""
    auroc: float | None
    """AUROC on the test split; None without scores of both labels."""
    auroc_ci: list[float] | None
    seconds_p95: float | None
    price: float | None
    """Mean price of a verdict; None where it was not recorded."""
    robustness: Robustness | None
    """Robustness to changes that keep the label (`stress`); None where the monitor was not stressed."""
    robustness_at: Literal["threshold", "answers", ""]
    """How labels were read for `robustness`: at `threshold`, or own answers; empty where that is None."""
    at_test: AtTest | None
    promise: "PromiseKept | None"
    """Bound on false alarms that the threshold keeps, whichever monitor was chosen."""
    difference: float | None
    """Expected cost of the monitor less that of the recommended one, on the test split."""
    difference_ci: list[float] | None


class Rival(TypedDict):
    """A rival that does not read, to be beaten: a shortcut check at its own best threshold, or one answer."""

    name: str
    is_shortcut: bool
    threshold: float | None
    miss_rate: float | None
    """Rates on the test split."""
    false_alarm_rate: float | None
    expected_cost: float | None
    difference: float | None
    """The expected cost of the monitor less the rival's, on the test split; below 0 the monitor is better."""
    difference_ci: list[float] | None
    curve: list[list[float]]
    """Cost at each base rate, in rows [base rate, expected cost]."""


class ShortcutsFacts(TypedDict):
    """Whether the shortcut checks could be made."""

    checked: bool
    fitted_on: Literal["train", "calibration", ""]
    reason: str
    """Reason why the checks could not be made."""
    n_test: int
    """Number of test samples that the checks judged: of a very large split a part."""
    reach: list[list[float]]
    """The least miss rate of any check at a false alarm rate of at most so much, on the test split, in rows
    [FAR, MR]; empty without checks."""


class MoreFacts(TypedDict):
    """Questions that are missing where the data is insufficient."""

    why: Why
    split: Needed
    label: Labelled
    """Label of the questions that are needed most."""
    n: int
    by_cell: dict[str, int]
    """Number of missing questions in each cell, the most needed first; empty where no cell is known."""
    n_held: int
    """Number of benign questions in the calibration split."""
    monitor: str
    """Monitor that lacks the least for its promise or budget; empty for a difference."""
    promised: str
    """Promise that is asked for, in words; empty where another reason asks for more questions."""
    n_unscored: int
    """Benign questions without a score of `monitor` that scores are asked for; 0 where these save nothing."""
    are_both_needed: bool
    """Whether scores alone would not do, so that `n` questions are needed beside them, not in their place."""
    alpha_at_hand: float | None
    """Least share of false alarms, in whole percents up to 30, that `monitor` could promise today
    at a threshold that costs less than reading nothing on the calibration split."""
    calibration_share: float
    """Share of an imported file's groups that goes to the calibration split; 0 where the split is given."""


class RegretFacts(TypedDict):
    """The choice in redraws of the calibration split; see `metrics.regret`."""

    n: int
    mean: float | None
    high: float | None
    """95 % quantile of the regret."""
    share_same: float | None
    """Share of the redraws in which the same monitor was chosen."""


class PromiseKept(TypedDict):
    """The bound on false alarms that the named monitor's threshold keeps, although it was chosen."""

    alpha: float
    delta: float | None
    """Probability that the bound is broken, whichever monitor was chosen; None for a promise on average."""
    n_candidates: int
    """Number of monitors that the named one was chosen among."""
    n: int
    effective_n: float | None
    method: str


class PilotSaid(TypedDict):
    """Decision of the pilot that was given."""

    run: str
    monitor: str
    """Monitor of these that intervened in the pilot, by its weights and adapter; empty where it was none."""
    critic: str
    """Name that the pilot gives the monitor that intervened; empty where it gives none."""
    environment: str
    is_of_data: bool
    """Whether the pilot's tasks are those that the judged samples come from."""
    decision: str
    agent: str
    condition: str
    sentence: str


class SettingsFacts(TypedDict):
    """Settings of the deployment that is chosen for."""

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
    """Recommended monitor; for `insufficient` and `none` the one nearest to it, None without any."""
    prompt: str | None
    threshold: float | None
    thresholds: dict[str, float]
    """Thresholds by category, where each category has its own; else empty."""
    is_calibrated: bool
    """Whether thresholds come from the calibration split; else monitors are read by their own answers, or at
    thresholds from elsewhere, and all of it was decided on the test split."""
    n_candidates: int
    confidence: float
    """Confidence of the intervals in `options` and `rivals`: 95 %, and 1 − .05 / `n_candidates` where the
    choice fell on the test split."""
    mode: Literal["watch", "intervene"]
    data: str
    positive_means: str
    n_test: int
    settings: SettingsFacts
    voids: list[str]
    """Reasons why the named monitor's promise is void or worthless here: drifted scores, another dataset,
    nothing flagged."""
    unbound_cost: float | None
    """The least expected cost on the calibration split at any threshold, whatever was promised."""
    runner_up: str | None
    runner_up_prompt: str | None
    options: list[Option]
    """Monitors that were chosen from, the cheapest on the calibration split first."""
    rivals: list[Rival]
    shortcuts: ShortcutsFacts
    more: MoreFacts | None
    regret: RegretFacts
    pilot: PilotSaid | None


def named_option(found: Recommendation) -> Option | None:
    """Return the monitor that the answer names among those that were chosen from; None without one."""
    options = (option for option in found["options"] if option["monitor"] == found["monitor"])
    return next((option for option in options if option["prompt"] == found["prompt"]), None)


def as_recommendation(found: object) -> Recommendation:
    """Check a parsed `recommendation.json`; raises `ValueError` where it is of another version."""
    recommendation = cast(dict[str, Any], found)
    version = recommendation.get("schema_version") if isinstance(found, dict) else None
    if version != SCHEMA_VERSION:
        raise ValueError(
            f"schema_version {version}: expected {SCHEMA_VERSION}; run `monitorbench recommend` again"
        )
    return cast(Recommendation, recommendation)
