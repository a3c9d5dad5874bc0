"""The decision rule of a pilot: intervene, do not intervene, or inconclusive (`decide`).

p > p* and ΔSuccess > 0 are one statement, so the decision is read off the interval of ΔSuccess alone: wholly
above the margin means intervene, wholly below it means don't, anything else is inconclusive. These guards
stand before that, each against one way in which an interval says more than the runs do:

1. *All conditions at once.* The lower bound comes in at a rank of the draws that holds for every condition
   tried (`intervals.effect_tails`), because the best of several would otherwise look better than it is. The
   upper bound holds for each by itself: that none of them is to be switched on is said only where each by
   itself says so, and such a claim needs no correction (Berger 1982, Technometrics 24:295).
2. *The exact test decides about 0.* Where the exact test by task does not bear the draws out, both intervals
   are widened to reach 0. Where it finds an effect that the draws, with what is added to them, do not, and
   each task's runs ended alike, so that the test is exact, the bound is the score interval's instead.
3. *Several looks.* A sequential pilot is decided by the interval of its last look, which holds at every look.
   Any other is decided at a part of the error, so that further tasks can be added to an inconclusive one and
   all decided again (`PilotStatistics.error`): the parts sum to the whole, whatever the number of decisions.
4. *Nothing to go by.* One task, or runs none of which changed its outcome, decide nothing.
5. *Runs that broke down* (`either_way`). They are failures, or their pairs are left out: a decision that
   hangs on which is inconclusive.
6. *Another deployment* (`decide_elsewhere`) is decided only where its effect is defined and the pilot itself
   has something to go by; never by looks, of which its interval holds for one alone.

Guards 4, 5 and 6 only ever take a decision back; none of them makes one.
"""

from enum import StrEnum
from typing import NamedTuple

from monitorbench.config.pilot import PilotStatistics
from monitorbench.intervention.statistics.intervals import EffectIntervals, excludes_zero, including_zero
from monitorbench.metrics.rates import Interval

_ROUNDING = 1e-9
_P_ROUNDING = 1e-12
_BESIDE_ZERO = 1e-6
"""The bound of an interval that excludes 0 and no more."""


class Decision(StrEnum):
    """The three answers that a pilot can give."""

    INTERVENE = "intervene"
    DO_NOT_INTERVENE = "do_not_intervene"
    INCONCLUSIVE = "inconclusive"


BEST_FIRST = (Decision.INTERVENE, Decision.INCONCLUSIVE, Decision.DO_NOT_INTERVENE)
"""Decisions in the order in which one becomes the whole pilot's; of equals the highest ΔSuccess."""


class Evidence(NamedTuple):
    """Evidence on one condition when it is decided on."""

    drawn: EffectIntervals
    """The intervals as the draws have them; their lower bounds hold for all conditions tried at once."""
    exact_p: float
    """The two-sided p of the exact test by task; of a gain corrected over the conditions tried."""
    n_tasks: int
    n_changed: int
    """Pairs of runs that ended otherwise with the intervention than without it."""
    score: Interval | None = None
    """The score interval of ΔSuccess; None where a task's runs ended differently."""
    last_look: Interval | None = None
    """The interval of ΔSuccess at the last look of a sequential pilot; None: the pilot has no looks."""

    @property
    def says_nothing(self) -> bool:
        """Whether there is nothing to go by (guard 4)."""
        return self.n_tasks < 2 or self.n_changed == 0


class Decided(NamedTuple):
    """A decision, the intervals that it was read off, and what a reader has to know of it."""

    decision: Decision
    intervals: EffectIntervals
    notes: list[str]


def decide(evidence: Evidence, settings: PilotStatistics) -> Decided:
    """Decide on one condition; the guards are numbered as in the docstring of this module."""
    margin = settings.margin / 100
    notes = []
    intervals = borne_out(evidence.drawn, evidence.exact_p, settings.error, evidence.score)
    if evidence.last_look is not None:  # guard 3
        intervals = _at_last_look(intervals, evidence.last_look)
    elif intervals != evidence.drawn and not excludes_zero(intervals.delta_success):
        notes.append("the exact test does not bear out the draws: the interval is widened to 0")
    decision = side_of_margin(intervals.delta_success, margin)
    if evidence.says_nothing:  # guard 4
        decision = Decision.INCONCLUSIVE
        if evidence.n_tasks < 2:
            notes.append("no decision can come of one task")
    return Decided(decision, intervals, notes)


def either_way(as_failures: Decision, left_out: Decision) -> Decision:
    """The decision where some runs broke down, from both ways to take them (guard 5)."""
    return as_failures if as_failures is left_out else Decision.INCONCLUSIVE


def decide_elsewhere(
    effect: float | None, interval: Interval, evidence: Evidence, settings: PilotStatistics
) -> Decision:
    """Decide for a deployment with another failure rate, by the expected effect there (guard 6).

    `effect` is None where r or d is undefined and needed. The exact test says nothing of that deployment.
    """
    if effect is None or evidence.says_nothing or settings.sequential:
        return Decision.INCONCLUSIVE
    return side_of_margin(interval, settings.margin / 100)


def side_of_margin(interval: Interval, margin: float) -> Decision:
    """Decide by the side of a margin on which an interval of ΔSuccess lies, both as shares.

    Only an interval wholly above the margin says intervene, only one wholly below it says don't.
    """
    if interval.low > margin + _ROUNDING:
        return Decision.INTERVENE
    return Decision.DO_NOT_INTERVENE if interval.high < margin - _ROUNDING else Decision.INCONCLUSIVE


def borne_out(
    drawn: EffectIntervals, exact_p: float, error: float, score: Interval | None = None
) -> EffectIntervals:
    """The intervals as the exact test bears them out (guards 1 and 2).

    Both are widened to reach 0 where ΔSuccess's excludes it and `exact_p`, which is two-sided, is above twice
    `error`, and made to exclude it where `exact_p` is not and there is a `score` interval.
    """
    if exact_p > 2 * error + _P_ROUNDING:
        if not excludes_zero(drawn.delta_success):
            return drawn
        return EffectIntervals(including_zero(drawn.delta_success), including_zero(drawn.p_minus_p_star))
    if score is None or excludes_zero(drawn.delta_success):
        return drawn
    (low, high), difference = drawn.delta_success, drawn.p_minus_p_star
    if score.low + score.high > 0:  # a gain
        return EffectIntervals(
            Interval(max(score.low, _BESIDE_ZERO), high),
            Interval(max(difference.low, _BESIDE_ZERO), difference.high),
        )
    return EffectIntervals(
        Interval(low, min(score.high, -_BESIDE_ZERO)),
        Interval(difference.low, min(difference.high, -_BESIDE_ZERO)),
    )


def _at_last_look(intervals: EffectIntervals, look: Interval) -> EffectIntervals:
    """ΔSuccess by the last look; p − p* excludes 0 only where that does."""
    difference = intervals.p_minus_p_star
    return EffectIntervals(look, difference if excludes_zero(look) else including_zero(difference))
