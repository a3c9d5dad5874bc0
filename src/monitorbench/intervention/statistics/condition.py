"""All that a pilot says of one agent under one condition: its rates, intervals and tests beside the decision.

The decision itself is `decision_rule.decide`'s; here the evidence for it is gathered, and the result put
together.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from monitorbench.config.pilot import PilotStatistics
from monitorbench.intervention.statistics.decision_file import (
    Bounds,
    Cells,
    ConditionResult,
    LeftOut,
    LookAt,
    PerRun,
    Sequential,
    Transport,
)
from monitorbench.intervention.statistics.decision_rule import (
    Decided,
    Decision,
    Evidence,
    decide,
    decide_elsewhere,
    either_way,
)
from monitorbench.intervention.statistics.effect import (
    Matched,
    PilotRates,
    TaskTable,
    check_identity,
    rates,
    transported,
    undefined,
)
from monitorbench.intervention.statistics.exact import first_decisive, look_at, score_interval
from monitorbench.intervention.statistics.intervals import (
    Tails,
    at_the_edge,
    bounds,
    effect_intervals,
    excludes_zero,
    gain_tails,
    moved,
    simultaneous_tails,
)
from monitorbench.intervention.statistics.planning import Further, detectable_effect, further_tasks
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.rates import Interval
from monitorbench.metrics.significance import mcnemar


class TestedCondition(NamedTuple):
    """A condition beside those that its intervals hold together with."""

    column: int
    """Column of the condition in the draws."""
    family: tuple[int, ...]
    """The columns of all conditions tried; of a control only its own."""
    tails: Tails
    """`effect_tails` of the family."""
    swap_p: float
    """The p of the exact test by task."""
    swap_p_holm: float | None
    """The p corrected over the conditions tried; None for a control."""

    def p_of(self, delta: float) -> float:
        """The p that has to bear out an effect: corrected if it is a gain."""
        return self.swap_p_holm if self.swap_p_holm is not None and delta > 0 else self.swap_p


def condition_result(
    one: Matched, tested: TestedCondition, drawn: PilotRates, settings: PilotStatistics
) -> ConditionResult:
    """The result of a condition with at least one pair; `drawn` holds [draws, conditions] each."""
    cells = one.by_task().by_name().cells
    total = cells.sum(axis=0)
    observed = rates(total)
    successes = np.array([(pair.baseline.success, pair.treated.success) for pair in one.pairs]).mean(axis=0)
    check_identity(observed, *successes.tolist())
    sequential = _sequential(one.by_task(), len(tested.family), settings) if settings.sequential else None
    error = settings.error
    evidence = Evidence(
        drawn=effect_intervals(drawn, tested.column, tested.tails),
        exact_p=tested.p_of(float(observed.delta_success)),
        n_tasks=len(cells),
        n_changed=int(total[1] + total[2]),
        score=score_interval(cells, error / len(tested.family), error),
        last_look=Interval(*sequential.looks[-1].delta_success_ci) if sequential else None,
    )
    decided = decide(evidence, settings)
    p_interval = bounds(drawn.p[:, tested.column], tested.tails, 0.0, 1.0)
    delta, difference = at_the_edge(decided.intervals, p_interval, int(total[1]), int(total[2]))
    n_tried = len(tested.family)
    further = Further(None)
    if decided.decision is Decision.INCONCLUSIVE:
        further = further_tasks(cells, float(observed.delta_success), n_tried, settings)
    planned = further.notes if tested.swap_p_holm is not None else ()  # nobody plans for a control
    broken = [sum(bool(run.reason) for run in side) for side in zip(*one.pairs, strict=True)]
    return ConditionResult(
        agent=one.agent,
        condition=one.condition,
        control=tested.swap_p_holm is None,
        decision=decided.decision,
        notes=(*undefined(total), *decided.notes, *planned, *_notes_on_runs(one, broken)),
        n_tasks=len(cells),
        n_runs=len(one.pairs),
        unmatched_baseline=one.unmatched_baseline,
        unmatched_treated=one.unmatched_treated,
        broken_baseline=broken[0],
        broken_treated=broken[1],
        counts=Cells(**dict(zip("ABCD", total.tolist(), strict=True))),
        success_baseline=float(successes[0]),
        success_treated=float(successes[1]),
        delta_success=_number(observed.delta_success),
        delta_success_ci=_pair(delta),
        p=_number(observed.p),
        p_ci=_alone(drawn.p, tested, settings),
        r=_number(observed.r),
        r_ci=_alone(drawn.r, tested, settings) if not np.isnan(observed.r) else None,
        d=_number(observed.d),
        d_ci=_alone(drawn.d, tested, settings) if not np.isnan(observed.d) else None,
        p_star=_number(observed.p_star),
        p_star_ci=_alone(drawn.p_star, tested, settings) if not np.isnan(observed.p_star) else None,
        p_minus_p_star=_number(observed.p_minus_p_star),
        p_minus_p_star_ci=_pair(difference) if not np.isnan(observed.p_star) else None,
        mcnemar_p=mcnemar(int(total[1]), int(total[2])),
        swap_p=tested.swap_p,
        swap_p_holm=tested.swap_p_holm,
        minimum_detectable_effect=detectable_effect(cells, n_tried, settings),
        further_tasks=further.n_tasks,
        per_run=_per_run(one),
        transport=_transport(observed, tested, drawn, evidence, decided, settings),
        sequential=sequential,
    )


def without_pairs(one: Matched, *, control: bool) -> ConditionResult:
    """The result of a condition none of whose runs has its baseline."""
    return ConditionResult(
        agent=one.agent,
        condition=one.condition,
        control=control,
        decision=Decision.INCONCLUSIVE,
        notes=("no run has a baseline run of the same task and seed",),
        n_tasks=0,
        n_runs=0,
        unmatched_baseline=one.unmatched_baseline,
        unmatched_treated=one.unmatched_treated,
        counts=Cells(A=0, B=0, C=0, D=0),
    )


def with_left_out(all_pairs: ConditionResult, rest: ConditionResult) -> ConditionResult:
    """The result of all pairs, beside that of those in which no run broke down (guard 5 of the rule)."""
    left_out = LeftOut(
        n_tasks=rest.n_tasks,
        n_runs=rest.n_runs,
        delta_success=rest.delta_success,
        delta_success_ci=rest.delta_success_ci,
        decision=rest.decision,
        decision_as_failures=all_pairs.decision,
    )
    result = all_pairs.model_copy(update={"broken_left_out": left_out})
    if all_pairs.transport:
        of_rest = rest.transport.decision if rest.transport else Decision.INCONCLUSIVE
        decision = either_way(all_pairs.transport.decision, of_rest)
        transport = all_pairs.transport.model_copy(update={"decision": decision})
        result = result.model_copy(update={"transport": transport})
    if left_out.agrees:
        return result
    why = (
        f"the decision hangs on the runs that broke down: {left_out.decision_as_failures} with them as "
        f"failures, {left_out.decision} with their pairs left out"
    ).replace("_", " ")
    decision = either_way(all_pairs.decision, rest.decision)
    return result.model_copy(
        update={"decision": decision, "notes": (*result.notes, why), "further_tasks": None}
    )


def _alone(values: FloatArray, tested: TestedCondition, settings: PilotStatistics) -> Bounds:
    """The interval of a rate in [0, 1], by itself."""
    column = values[:, [tested.column]]
    return _pair(bounds(column[:, 0], simultaneous_tails(column, settings.confidence, 0.0, 1.0), 0.0, 1.0))


def _transport(
    found: PilotRates,
    tested: TestedCondition,
    drawn: PilotRates,
    evidence: Evidence,
    decided: Decided,
    settings: PilotStatistics,
) -> Transport | None:
    if settings.p_target is None:
        return None

    def effect_at(p: float) -> Interval:
        effects = transported(drawn, p)
        tails = gain_tails(effects[:, tested.family], settings.interval_confidence, p - 1, p)
        return bounds(effects[:, tested.column], tails, p - 1, p)

    own = decided.intervals.delta_success
    widened = excludes_zero(evidence.drawn.delta_success) and not excludes_zero(own)
    p, p_target = float(found.p), settings.p_target
    interval = moved(own, effect_at(p), effect_at(p_target), widened, p, p_target)
    effect = _number(transported(found, settings.p_target))
    return Transport(
        p_target=settings.p_target,
        effect=effect,
        effect_ci=_pair(interval),
        decision=decide_elsewhere(effect, interval, evidence, settings),
    )


def _sequential(table: TaskTable, n_tried: int, settings: PilotStatistics) -> Sequential:
    """The looks whose intervals are not empty; the first never is."""
    changes = table.changes / table.cells.sum(axis=1)
    looks = look_at(changes, settings.look_every, settings.error / n_tried, settings.error)
    looks = [look for look in looks if look.interval.low <= look.interval.high]
    stop = first_decisive(looks, settings.margin / 100)
    return Sequential(
        looks=tuple(LookAt(n_tasks=look.n_tasks, delta_success_ci=_pair(look.interval)) for look in looks),
        stopped_at=stop.n_tasks if stop else None,
        harm=bool(stop and stop.interval.high < 0),
    )


def _notes_on_runs(one: Matched, broken: Sequence[int]) -> list[str]:
    notes = []
    if unmatched := one.unmatched_baseline + one.unmatched_treated:
        notes.append(f"runs without a counterpart, left out: {unmatched:,}")
    if any(broken):
        notes.append(f"runs that broke down, counted as failures: {sum(broken):,}")
    treated = [pair.treated for pair in one.pairs]
    if any(run.steps for run in treated) and not any(run.interventions for run in treated):
        notes.append("no intervention is recorded in any of its runs: a difference may be something else's")
    return notes


def _per_run(one: Matched) -> PerRun:
    baseline, treated = (
        np.array([(run.interventions, run.steps, run.tokens) for run in side], dtype=np.float64).mean(axis=0)
        for side in zip(*one.pairs, strict=True)
    )
    return PerRun(
        interventions=float(treated[0]),
        steps_baseline=float(baseline[1]),
        steps_treated=float(treated[1]),
        tokens_baseline=float(baseline[2]),
        tokens_treated=float(treated[2]),
    )


def _number(value: FloatArray) -> float | None:
    return None if np.isnan(value) else float(value)


def _pair(interval: Interval) -> Bounds:
    return interval.low, interval.high
