"""Analysis of a pilot's outcomes: runs are matched and drawn anew, and each condition is decided on.

The rule is in `decision_rule`. The lower bounds hold for all conditions tried at once: whichever is then
picked, a wrong "intervene" has a chance of at most half of 1 − confidence, over all decisions on the pilot as
tasks are added to it. That none of them helps is said only where each by itself harms. Where runs broke down,
all is done with them as failures and with their pairs left out. Promises: the same outcomes give the same
decision in any order, unless a sequential pilot looks at them in that order.
"""

from collections.abc import Sequence

import numpy as np

from monitorbench.config.base import UserError
from monitorbench.config.pilot import PilotStatistics
from monitorbench.intervention.outcomes import Outcome
from monitorbench.intervention.statistics.condition import (
    TestedCondition,
    condition_result,
    with_left_out,
    without_pairs,
)
from monitorbench.intervention.statistics.decision_file import (
    ConditionResult,
    PairOutcome,
    PilotDecision,
    Selection,
)
from monitorbench.intervention.statistics.decision_rule import BEST_FIRST
from monitorbench.intervention.statistics.effect import Matched, PilotRates, matched
from monitorbench.intervention.statistics.intervals import chosen_in_draws, draw_rates, effect_tails
from monitorbench.intervention.statistics.unconditional import unconditional_test
from monitorbench.intervention.statistics.wording import sentence
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.significance import holm


def analyse(outcomes: Sequence[Outcome], settings: PilotStatistics) -> PilotDecision:
    """Decide what a pilot's runs say.

    The top level is about the best of the conditions tried, all agents' together: one that says intervene
    before one that is inconclusive before one that says don't, and of these the highest ΔSuccess. Raises
    `UserError` for outcomes that hold no matched pair of such a condition.
    """
    conditions = matched(outcomes)
    tried = _tried(conditions, settings)
    if not tried:
        raise UserError(
            f"outcomes: no matched run but of controls ({', '.join(settings.controls)}); expected a "
            "mechanism's name as condition, or fewer controls in the settings"
        )
    results, drawn = _results(conditions, settings)
    if any(condition.n_broken for condition in conditions):
        unbroken, _ = _results([condition.without_broken() for condition in conditions], settings)
        results = [
            with_left_out(result, without) if condition.n_broken else result
            for condition, result, without in zip(conditions, results, unbroken, strict=True)
        ]
    best = min((results[i] for i in tried), key=_rank)
    return PilotDecision(
        **{name: getattr(best, name) for name in ConditionResult.model_fields},
        sentence=sentence(best, len(tried), settings),
        selection=_selection([results[i] for i in tried], drawn.delta_success[:, tried]),
        conditions=tuple(results),
        settings=settings,
        pairs=tuple(_pairs(conditions)),
    )


def _tried(found: Sequence[Matched], settings: PilotStatistics) -> list[int]:
    """Which of the conditions have pairs and are no controls."""
    return [
        i
        for i, condition in enumerate(found)
        if condition.pairs and condition.condition not in settings.controls
    ]


def _results(found: Sequence[Matched], settings: PilotStatistics) -> tuple[list[ConditionResult], PilotRates]:
    """The result of each condition by itself, and the draws: [draws, conditions]."""
    tried = _tried(found, settings)
    tables = [condition.by_task().by_name() for condition in found]
    swaps = [unconditional_test(table.changes) for table in tables]
    corrected = dict(zip(tried, holm([swaps[i] for i in tried]), strict=True))
    drawn = draw_rates(tables, draws=settings.draws, seed=settings.seed, prior_tasks=settings.prior_tasks)
    results = []
    for i, condition in enumerate(found):
        if condition.pairs:
            family = tuple(tried) if i in corrected else (i,)
            tails = effect_tails(drawn, family, settings.interval_confidence)
            tested = TestedCondition(i, family, tails, swaps[i], corrected.get(i))
            results.append(condition_result(condition, tested, drawn, settings))
        else:
            results.append(without_pairs(condition, control=condition.condition in settings.controls))
    return results, drawn


def _rank(one: ConditionResult) -> tuple[int, float]:
    assert one.delta_success is not None  # it has pairs
    return BEST_FIRST.index(one.decision), -one.delta_success


def _selection(tried: Sequence[ConditionResult], deltas: FloatArray) -> Selection:
    names = [f"{result.agent}/{result.condition}" for result in tried]
    observed = np.array([result.delta_success for result in tried], dtype=np.float64)
    highest = int(observed.argmax())
    choice = chosen_in_draws(deltas)
    return Selection(
        n_tried=len(tried),
        highest=names[highest],
        delta_success_corrected=float(observed[highest]) - choice.optimism,
        optimism=choice.optimism,
        chosen=dict(zip(names, choice.shares, strict=True)),
    )


def _pairs(found: Sequence[Matched]) -> list[PairOutcome]:
    return [
        PairOutcome(
            agent=condition.agent,
            condition=condition.condition,
            task=pair.baseline.task,
            seed=pair.baseline.seed,
            cell=pair.cell,
        )
        for condition in found
        for pair in condition.pairs
    ]
