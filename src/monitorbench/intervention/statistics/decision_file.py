"""A pilot's decision, as `decision.json` and in words: one condition's numbers, all of them, the sentence.

Promises: a number that is undefined is null, never 0; rates and effects are shares, and only the settings'
`margin` and `effect` are percentage points. Intervals are [low, high]. The sentence is for who reads nothing
else, remarks are what a reader of the numbers must know beside them.
"""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from monitorbench.config.base import Config, UserError
from monitorbench.config.pilot import PilotStatistics
from monitorbench.intervention.statistics.decision_rule import Decision
from monitorbench.metrics.written import DASH, MINUS
from monitorbench.runs.files import write_atomically
from monitorbench.untrusted import document

SCHEMA_VERSION = 1
DECISION = "decision.json"
"""The file of this name in a pilot's run directory; only a pilot's run has one."""
PAIRS = "pairs.csv"
"""The file beside it with the cell of every task and seed."""
Bounds = tuple[float, float]


class Cells(Config):
    """Pairs of runs (baseline → treated) of one task and seed."""

    A: int
    """Failure → failure."""
    B: int
    """Success → failure: disruptions."""
    C: int
    """Failure → success: recoveries."""
    D: int
    """Success → success."""


class PerRun(Config):
    """Averages per run over the matched runs."""

    interventions: float
    steps_baseline: float
    steps_treated: float
    tokens_baseline: float
    tokens_treated: float


class Transport(Config):
    """The expected effect in a deployment whose baseline fails at `p_target`, if r and d carry over."""

    p_target: float
    effect: float | None
    effect_ci: Bounds
    """The pilot's own interval, moved; its bounds hold as those do."""
    decision: Decision


class LeftOut(Config):
    """Result of a condition without the pairs in which a run broke down."""

    n_tasks: int
    n_runs: int
    delta_success: float | None
    delta_success_ci: Bounds | None
    decision: Decision
    decision_as_failures: Decision
    """The decision with all pairs, a run that broke down being a failure; where the two differ, the
    condition's own is inconclusive."""

    @property
    def agrees(self) -> bool:
        """Whether the decision is the same both ways."""
        return self.decision is self.decision_as_failures


class LookAt(Config):
    """One look of a sequential pilot."""

    n_tasks: int
    delta_success_ci: Bounds
    """The interval of the mean over tasks; holds at every look, its lower bound for all conditions."""


class Sequential(Config):
    """The looks in order, and where the pilot stops."""

    looks: tuple[LookAt, ...]
    stopped_at: int | None
    """Tasks at the first decisive look; None: the pilot is not over."""
    harm: bool
    """Whether the pilot stops because success falls."""


class ConditionResult(Config):
    """One agent under one condition."""

    agent: str
    condition: str
    control: bool
    """Whether it is shown for comparison only: never chosen, and not among the conditions corrected for."""
    decision: Decision
    notes: tuple[str, ...]
    """Sentences that a reader of the numbers must know."""
    n_tasks: int
    n_runs: int
    """Matched pairs of runs."""
    unmatched_baseline: int
    unmatched_treated: int
    counts: Cells
    broken_baseline: int = 0
    """Matched runs in which something broke down; they count as failures, but in `broken_left_out`."""
    broken_treated: int = 0
    success_baseline: float | None = None
    success_treated: float | None = None
    delta_success: float | None = None
    delta_success_ci: Bounds | None = None
    """The lower bound holds for all conditions tried at once, the upper one by itself."""
    p: float | None = None
    p_ci: Bounds | None = None
    """Like the intervals of r, d and p_star, this one holds by itself and not for all rates at once."""
    r: float | None = None
    r_ci: Bounds | None = None
    d: float | None = None
    d_ci: Bounds | None = None
    p_star: float | None = None
    p_star_ci: Bounds | None = None
    p_minus_p_star: float | None = None
    p_minus_p_star_ci: Bounds | None = None
    """Interval with bounds like those of delta_success_ci; it excludes 0 only where that one does."""
    mcnemar_p: float | None = None
    """McNemar's exact two-sided p. It takes runs for independent: too small with several seeds a task."""
    swap_p: float | None = None
    """The two-sided p of the unconditional exact test by task."""
    swap_p_holm: float | None = None
    """Holm's correction of swap_p over the conditions tried, which a gain has to pass; None for a control."""
    minimum_detectable_effect: float | None = None
    """How far above the margin ΔSuccess has to be for as many tasks and seeds to say intervene."""
    further_tasks: int | None = None
    """How many more tasks an inconclusive pilot should run; None where no number can be given."""
    broken_left_out: LeftOut | None = None
    """Result without the pairs in which a run broke down; None where none did."""
    per_run: PerRun | None = None
    transport: Transport | None = None
    sequential: Sequential | None = None


class Selection(Config):
    """The choice of the highest ΔSuccess among the conditions tried, made anew in every draw."""

    n_tried: int
    highest: str
    """`agent/condition` of the highest ΔSuccess."""
    delta_success_corrected: float
    """The ΔSuccess of the highest, less the optimism of the choice."""
    optimism: float
    chosen: dict[str, float]
    """`agent/condition`: the share of the draws in which it was the highest."""


class PairOutcome(Config):
    """One task and seed of one condition."""

    agent: str
    condition: str
    task: str
    seed: int
    cell: str


class PilotDecision(ConditionResult):
    """All of `decision.json`; the fields of a condition are those of the one the decision is about."""

    schema_version: int = SCHEMA_VERSION
    sentence: str
    """The decision for a person who reads nothing else."""
    selection: Selection
    conditions: tuple[ConditionResult, ...]
    """All of them, controls too, by agent and name."""
    settings: PilotStatistics
    on_outcomes: tuple[str, ...] = ()
    """Sentences on runs of somebody else's table that are left out, or were taken as broken down."""
    pairs: Annotated[tuple[PairOutcome, ...], Field(exclude=True, repr=False)] = ()
    """Written to `pairs.csv` instead; empty when read back."""


def write_decision(folder: Path, decision: PilotDecision) -> None:
    """Write `decision.json`, and `pairs.csv` with the cell (A, B, C or D) of every task and seed."""
    text = io.StringIO(newline="")
    # A carriage return in a name is no end of a line.
    has_returns = any("\r" in pair.agent + pair.condition + pair.task for pair in decision.pairs)
    quoting: Literal[0, 1] = csv.QUOTE_ALL if has_returns else csv.QUOTE_MINIMAL
    writer = csv.writer(text, lineterminator="\n", quoting=quoting)
    writer.writerow(PairOutcome.model_fields)
    writer.writerows(pair.model_dump().values() for pair in decision.pairs)
    write_atomically(folder / PAIRS, text.getvalue())
    write_atomically(folder / DECISION, decision.model_dump_json(indent=2) + "\n")


def read_decision(folder: Path) -> PilotDecision:
    """Read the decision in a folder that `write_decision` wrote; `UserError` where there is none to read."""
    path = folder / DECISION
    try:
        return PilotDecision.model_validate_json(document(path))
    except UserError as error:
        raise UserError(f"{error}; expected a run of `monitorbench pilot`") from error
    except ValidationError as error:
        raise UserError(f"{path}: no decision of this version; run `monitorbench pilot` again") from error


WORDS = {
    Decision.INTERVENE: "intervene",
    Decision.DO_NOT_INTERVENE: "don't",
    Decision.INCONCLUSIVE: "inconclusive",
}


def sentence(best: ConditionResult, n_tried: int, settings: PilotStatistics) -> str:
    """Recommendation with the figure behind it, for a person who reads nothing else."""
    assert best.delta_success is not None
    assert best.delta_success_ci is not None
    low, high = best.delta_success_ci
    change, by = "changes", points(best.delta_success)
    if low > 0 or high < 0:
        change, by = "raises" if low > 0 else "lowers", by.lstrip(f"+{MINUS}")
    seeds = f" × {best.n_runs / best.n_tasks:.2g} seeds" if best.n_runs != best.n_tasks else ""
    among = f" (the best of {n_tried} conditions tried)" if n_tried > 1 else ""
    figure = (
        f"{best.condition}{among} {change} the success of {best.agent} by {by} percentage points "
        f"({percent(settings.interval_confidence)} interval {points(low)} to {points(high)}; "
        f"{best.n_tasks:,} tasks{seeds})"
    )
    worth = f" the margin of {settings.margin:g} points" if settings.margin else ""
    match best.decision:
        case Decision.INTERVENE:
            return f"Intervene: {figure}{', more than' + worth if worth else ''}."
        case Decision.DO_NOT_INTERVENE:
            return f"Do not intervene: {figure}{', less than' + worth if worth else ''}."
        case Decision.INCONCLUSIVE:
            apart = f"; not distinguished from{worth}" if worth else ""
            return f"Inconclusive: {figure}{apart}. {_advice(best, settings)}"


def _advice(best: ConditionResult, settings: PilotStatistics) -> str:
    if best.broken_left_out and not best.broken_left_out.agrees:
        return "It hangs on the runs that broke down: repair what broke, and run those again."
    if best.further_tasks is None:
        return "No number of further tasks can be given."
    more = f"Run {best.further_tasks:,} more task{'s' if best.further_tasks > 1 else ''}"
    if best.sequential:
        return f"{more} and look again."
    count = settings.decided_before + 1
    planned = (
        "an effect like this one" if settings.effect is None else f"{points(settings.effect / 100)} points"
    )
    shown = f"enough to show {planned} with {percent(settings.power)} power"
    return f"{more}, {shown}, and decide on all of them again, with pilot.statistics.decided_before={count}."


def percent(confidence: float) -> str:
    """A confidence as it is written: `95%`, `99.55%`."""
    return f"{100 * confidence:.6g}%"


def points(share: float) -> str:
    """A difference of success rates as percentage points with its sign: `+4.7`."""
    text = f"{abs(100 * share):.1f}"
    sign = "" if float(text) == 0 else MINUS if share < 0 else "+"
    return sign + text


def remarks(decision: PilotDecision) -> Iterator[str]:
    """Yield what a reader of the numbers must know beside them: a sentence each, of all conditions."""
    for condition in decision.conditions:
        yield from remarks_on(condition)
    yield from remarks_on_all(decision)


def remarks_on(one: ConditionResult) -> Iterator[str]:
    """The remarks on one condition."""
    for note in one.notes:
        yield f"{one.agent}, {one.condition}: {note}."
    if unbroken := one.broken_left_out:
        effect = "nothing is left"
        if unbroken.delta_success is not None and unbroken.delta_success_ci is not None:
            low, high = map(points, unbroken.delta_success_ci)
            effect = f"{points(unbroken.delta_success)} points [{low}, {high}] in {unbroken.n_runs:,} pairs"
        yield f"{one.agent}, {one.condition}: without the pairs in which a run broke down, {effect}."
    if one.transport:
        low, high = map(points, one.transport.effect_ci)
        effect = DASH if one.transport.effect is None else points(one.transport.effect)
        yield (
            f"{one.agent}, {one.condition}: where {one.transport.p_target:.0%} fail without it, "
            f"{effect} points expected [{low}, {high}], if r and d carry over."
        )
    if one.sequential and one.sequential.stopped_at:
        why = ", for harm" if one.sequential.harm else ""
        yield f"{one.agent}, {one.condition}: decided after {one.sequential.stopped_at} tasks{why}."


def remarks_on_all(decision: PilotDecision) -> Iterator[str]:
    """The remarks on the outcomes, on the choice among the conditions, and on what the pilot could find."""
    yield from decision.on_outcomes
    settings, chosen = decision.settings, decision.selection
    if settings.interval_confidence != settings.confidence and (n := settings.decided_before):
        yield (
            f"Decided on {n} time{'s' if n > 1 else ''} before with fewer tasks or more conditions, so that "
            f"intervals have {percent(settings.interval_confidence)} in place of "
            f"{percent(settings.confidence)}."
        )
    if chosen.n_tried > 1:
        yield (
            f"{chosen.highest} is the highest of {chosen.n_tried}; less what choosing the highest adds: "
            f"{points(chosen.delta_success_corrected)} points."
        )
    least = decision.minimum_detectable_effect
    if least is not None and decision.decision is not Decision.INTERVENE:
        yield (
            f"A true gain of {100 * least:.1f} points would be shown by {decision.settings.power:.0%} of "
            "pilots of this size; a smaller one may well be missed."
        )
