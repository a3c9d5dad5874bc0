"""The decision in words: the sentence for who reads nothing else, and the remarks beside the numbers."""

from collections.abc import Iterator

from monitorbench.config.pilot import PilotStatistics
from monitorbench.intervention.statistics.decision_file import ConditionResult, PilotDecision
from monitorbench.intervention.statistics.decision_rule import Decision
from monitorbench.metrics.written import DASH, MINUS

WORDS = {
    Decision.INTERVENE: "intervene",
    Decision.DO_NOT_INTERVENE: "don't",
    Decision.INCONCLUSIVE: "inconclusive",
}


def sentence(best: ConditionResult, n_tried: int, settings: PilotStatistics) -> str:
    """Recommendation with the figure behind it, for a person who reads nothing else."""
    assert best.delta_success is not None
    assert best.delta_success_ci is not None
    low, high = map(points, best.delta_success_ci)
    seeds = f" × {best.n_runs / best.n_tasks:.2g} seeds" if best.n_runs != best.n_tasks else ""
    among = f" (the best of {n_tried} conditions tried)" if n_tried > 1 else ""
    figure = (
        f"{best.condition}{among} changes the success of {best.agent} by {points(best.delta_success)} "
        f"percentage points ({percent(settings.interval_confidence)} interval {low} to {high}; "
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
    return f"{more} and decide on all of them again, with pilot.statistics.decided_before={count}."


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
    """The remarks on the choice among the conditions, and on what the pilot could find."""
    chosen = decision.selection
    if chosen.n_tried > 1:
        yield (
            f"{chosen.highest} is the highest of {chosen.n_tried}; less what choosing the highest adds: "
            f"{points(chosen.delta_success_corrected)} points."
        )
    if decision.minimum_detectable_effect is not None:
        yield (
            f"With this many tasks, a gain of {100 * decision.minimum_detectable_effect:.1f} points is found "
            f"with {decision.settings.power:.0%} power."
        )
