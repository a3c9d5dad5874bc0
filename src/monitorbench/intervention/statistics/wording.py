"""The decision in words."""

from monitorbench.config.pilot import PilotStatistics
from monitorbench.intervention.statistics.decision import ConditionResult
from monitorbench.intervention.statistics.effect import Decision
from monitorbench.report.tables.numbers import MINUS


def sentence(best: ConditionResult, n_tried: int, settings: PilotStatistics) -> str:
    """What to do, with the figure behind it, for a person who reads nothing else."""
    assert best.delta_success is not None
    assert best.delta_success_ci is not None
    low, high = map(points, best.delta_success_ci)
    seeds = f" × {best.n_runs / best.n_tasks:.2g} seeds" if best.n_runs != best.n_tasks else ""
    among = f" (the best of {n_tried} conditions tried)" if n_tried > 1 else ""
    figure = (
        f"{best.condition}{among} changes the success of {best.agent} by {points(best.delta_success)} "
        f"percentage points ({settings.confidence:.0%} interval {low} to {high}; {best.n_tasks:,} tasks"
        f"{seeds})"
    )
    worth = f" the margin of {settings.margin:g} points" if settings.margin else ""
    match best.decision:
        case Decision.INTERVENE:
            return f"Intervene: {figure}{', more than' + worth if worth else ''}."
        case Decision.DO_NOT_INTERVENE:
            return f"Do not intervene: {figure}{', less than' + worth if worth else ''}."
        case Decision.INCONCLUSIVE:
            return f"Inconclusive: {figure}{'; not told from' + worth if worth else ''}. {_advice(best)}"


def _advice(best: ConditionResult) -> str:
    if best.further_tasks is None:
        return "No number of further tasks can be given."
    again = " and look again" if best.sequential else ""
    return f"Run {best.further_tasks:,} more task{'s' if best.further_tasks > 1 else ''}{again}."


def points(share: float) -> str:
    """A difference of success rates as percentage points with its sign: `+4.7`."""
    text = f"{abs(100 * share):.1f}"
    sign = "" if float(text) == 0 else MINUS if share < 0 else "+"
    return sign + text
