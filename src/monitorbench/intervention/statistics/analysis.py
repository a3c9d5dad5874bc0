"""Analysis of a pilot's outcomes: runs are matched and drawn anew, and each condition is decided on.

The rule is in `decision_rule`. The lower bounds hold for all conditions tried at once: whichever is then
picked, a wrong "intervene" has a chance of at most half of 1 − confidence, over all decisions on the pilot as
tasks are added to it. That none of them helps is said only where each by itself harms. Where runs broke down,
all is done with them as failures and with their pairs left out. Promises: the same outcomes give the same
decision in any order, unless a sequential pilot looks at them in that order. Added tasks make no new pilot,
nor do conditions that are left out: runs that hold all runs of an earlier decision, and tasks or seeds
besides, or all runs of some of its conditions, are decided at what that one left of the error
(`PilotStatistics.error`).
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from monitorbench.config.base import UserError
from monitorbench.config.pilot import MOST_DECISIONS, PilotStatistics
from monitorbench.intervention.outcomes import Outcome
from monitorbench.intervention.statistics.condition import (
    TestedCondition,
    condition_result,
    with_left_out,
    without_pairs,
)
from monitorbench.intervention.statistics.decision_file import (
    DECISION,
    PAIRS,
    ConditionResult,
    PairOutcome,
    PilotDecision,
    Selection,
    read_decision,
    sentence,
)
from monitorbench.intervention.statistics.decision_rule import BEST_FIRST
from monitorbench.intervention.statistics.effect import Matched, PilotRates, matched
from monitorbench.intervention.statistics.exact import unconditional_test
from monitorbench.intervention.statistics.intervals import chosen_in_draws, draw_rates, effect_tails
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.significance import holm
from monitorbench.untrusted_rows import rows


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
        pairs=tuple(_pair_outcomes(conditions)),
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


def _pair_outcomes(found: Sequence[Matched]) -> list[PairOutcome]:
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


_log = logging.getLogger(__name__)
_DECIDED = (
    "pilot: decided on with %s in %s; each decision widens the next one's interval. One that was "
    "made of a wrong file, and that nobody acted on, is taken back by `monitorbench runs rm %s`"
)
Pairs = dict[tuple[str, str], set[tuple[str, str, str]]]
"""Task, seed and cell of each pair, by agent and condition."""


def at_its_error(outcomes: Sequence[Outcome], settings: PilotStatistics, pilots: Path) -> PilotStatistics:
    """The settings, with the earlier decisions in the folder `pilots` counted.

    Raises `UserError` where so many decisions were made that no error is left, and where the earlier one was
    made by looks: these hold for all tasks that are added, and only other looks at as many conditions may
    follow.
    """
    now = _by_condition(
        (condition.agent, condition.condition, pair.baseline.task, str(pair.baseline.seed), pair.cell)
        for condition in matched(outcomes)
        for pair in condition.pairs
    )
    before = settings.decided_before
    for file in sorted(pilots.glob(f"*/{PAIRS}")):
        if not (file.parent / DECISION).is_file():
            continue
        pairs, earlier = _read_pairs(file), read_decision(file.parent).settings
        narrowed = _narrowed(_of_tried(pairs, earlier), _of_tried(now, settings))
        if not narrowed and not _grew(pairs, now):
            continue
        if narrowed and earlier.sequential:
            raise UserError(
                f"{file.parent}: looks at these runs were decided on with more conditions, which takes all "
                "of the error; expected the same conditions"
            )
        if earlier.sequential and settings.sequential:
            before = max(before, earlier.decided_before)
        elif earlier.sequential:
            raise UserError(
                f"{file.parent}: looks at a part of these runs were decided on already; expected "
                "pilot.statistics.sequential=true, which holds for the tasks that were added"
            )
        else:
            before = max(before, earlier.decided_before + 1)
            than_now = "more conditions" if narrowed else "fewer tasks"
            _log.info(_DECIDED, than_now, file.parent, file.parent.name)
    if before >= MOST_DECISIONS:
        raise UserError(
            f"pilot: these runs were decided on {before} times with fewer tasks or more conditions, and no "
            "error is left for another decision; run a new pilot on other tasks (another seed)"
        )
    return settings.model_copy(update={"decided_before": before})


def _read_pairs(file: Path) -> Pairs:
    names = tuple(PairOutcome.model_fields)
    try:
        return _by_condition([row.fields[name] for name in names] for row in rows(file))
    except KeyError as error:
        raise UserError(f"{file}: no column {error}; expected {', '.join(names)}") from error


def _by_condition(entries: Iterable[Sequence[str]]) -> Pairs:
    pairs: Pairs = defaultdict(set)
    for agent, condition, task, seed, cell in entries:
        pairs[agent, condition].add((task, seed, cell))
    return pairs


def _grew(before: Pairs, now: Pairs) -> bool:
    """Whether a condition has all the pairs that it had, and others."""
    return any(before.get(key, pairs) < pairs for key, pairs in now.items())


def _of_tried(pairs: Pairs, settings: PilotStatistics) -> Pairs:
    """The pairs of the conditions that are no controls."""
    return {key: own for key, own in pairs.items() if key[1] not in settings.controls}


def _narrowed(before: Pairs, now: Pairs) -> bool:
    """Whether these are some of the conditions that were tried before, each with all its pairs."""
    return now.keys() < before.keys() and all(before[key] <= own for key, own in now.items())
