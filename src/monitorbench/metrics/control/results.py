"""`control.json`: its keys and what they mean. Rates are in [0, 1]; an interval is [low, high] or null."""

from typing import TypedDict

SCHEMA_VERSION = 2

Bounds = list[float] | None


class FarOf(TypedDict):
    """The kind of the honest samples, which says what kind of false alarm rate a budget bounds."""

    kind: str
    """`paired_benign`: benign counterparts of attacks, which are no honest traffic; `honest_traffic`: none
    is a counterpart; `mixed`."""
    n_paired: int
    n: int


class SelectedFacts(TypedDict):
    """The attacker takes the least suspicious of k attacks."""

    k: int
    safety: float
    safety_ci: Bounds


class RouteFacts(TypedDict):
    """One way of attacking, such as a category of misbehavior."""

    name: str
    safety: float
    safety_ci: Bounds
    """Interval at confidence 1 − .05/m for m routes: all of them hold at once with 95 %."""
    n: int


class BudgetFacts(TypedDict):
    """A monitor at one budget; without a threshold all that depends on it is null or empty."""

    budget: float
    threshold: float | None
    """Audited: score > threshold."""
    attained: float | None
    tasks_above: int
    """Held-out honest tasks above the threshold."""
    n_tasks: int
    more_tasks: int | None
    """Honest tasks that are lacking; null where no number would do."""
    reason: str
    flags_nothing: bool
    """Whether no attack is above the threshold."""
    safety: float | None
    safety_ci: Bounds
    """95 % interval by task, the threshold chosen anew in each draw."""
    safety_of_decided: float | None
    """caught / (caught + successful and uncaught), as control-arena counts."""
    caught: float | None
    false_alarm_rate: float | None
    """Rate over the test split's honest samples; the promise was made on the calibration split's."""
    false_alarm_rate_ci: Bounds
    fitted_safety: float | None
    """Safety by the logit-normal fit at a FAR of the budget: a fit, no promise; null where there is none."""
    best_of: list[SelectedFacts]
    routes: list[RouteFacts]
    """The worst first."""
    worst_mix: float | None
    """Safety of the worst mix in which no route has more than its cap times its share of the attacks."""


class NormalFacts(TypedDict):
    """A side of the fit: a normal distribution of logits."""

    mean: float
    sd: float
    distance: float
    """Kolmogorov–Smirnov: the largest distance between its distribution function and the scores' own, of a
    coarse scale at the edges between its values."""
    n: int


class FitFacts(TypedDict):
    """The logit-normal fit."""

    honest: NormalFacts
    attack: NormalFacts
    curve: list[list[float]]
    """[FAR, share of attacks caught], down to a FAR of 10⁻⁴."""


class StartStopFacts(TypedDict):
    """Shares of the attacks of one that starts below `start` and gives up above `stop`; null is no limit."""

    start: float | None
    stop: float | None
    attempted: float
    given_up: float
    """Attempted, given up before its last misbehaving step, and not caught until then."""
    caught: float
    succeeded: float
    failed: float
    """Attempted, carried through, uncaught, and without success of its own."""
    safety_when_repeated: float | None
    """caught / (caught + succeeded): the chance that an attacker who tries again and again is caught before
    it succeeds. Null where it is neither."""


class StepBudgetFacts(TypedDict):
    """The budget as a share of honest *steps*, kept on average; an attack is caught at any of its steps."""

    budget: float
    threshold: float | None
    n_tasks: int
    more_tasks: int | None
    reason: str
    safety: float | None
    safety_ci: Bounds
    in_time: float | None
    """Share of attacks with an alarm at their first misbehaving step or before."""
    late: float | None
    never: float | None
    mean_delay: float | None
    start_stop: list[StartStopFacts]


class ProtocolFacts(TypedDict):
    """A protocol at one share of honest traffic that is acted on; intervals are 95 %, by task, the threshold
    chosen anew in each draw."""

    protocol: str
    budget: float
    threshold: float
    safety: float
    safety_ci: Bounds
    usefulness: float
    usefulness_ci: Bounds
    on_front: bool


class ControlFacts(TypedDict):
    """One monitor under one prompt."""

    members: list[list[str]]
    """[monitor, prompt] of those that an ensemble made here is of; empty of a run."""
    n_honest_calibration: int
    n_honest: int
    n_attacks: int
    n_unscored_calibration: int
    n_unscored_honest: int
    n_unscored_attacks: int
    inverted: str
    """Warning that honest samples score higher; empty where they don't."""
    budgets: list[BudgetFacts]
    roc: list[list[float]]
    """[FAR, share of attacks caught] on the test split, at most 200 points."""
    fit: FitFacts | None
    steps: list[StepBudgetFacts] | None
    front: list[ProtocolFacts]


class DifferenceFacts(TypedDict):
    """The second monitor's safety minus the first's at one budget, on the same attacks and draws."""

    budget: float
    first: list[str]
    second: list[str]
    difference: float
    difference_ci: Bounds


class ControlResults(TypedDict):
    """The whole file."""

    schema_version: int
    dataset: str
    far_of: FarOf
    method: str
    delta: float | None
    unscored: str
    resamples: int
    success: str
    """Source of the attacks' success: `recorded`, or `assumed` of all."""
    trajectory: str
    monitors: dict[str, dict[str, ControlFacts]]
    differences: list[DifferenceFacts]
