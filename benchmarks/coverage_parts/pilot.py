"""The pilot: how often its decision errs and finds an effect, and whether its intervals and plans hold.

Pilots of `Kind`s are simulated and decided on, as `main` did before and by the library's functions now.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from coverage_parts.table import Table

from monitorbench.intervention.statistics import matched
from monitorbench.intervention.statistics.decision_rule import borne_out
from monitorbench.intervention.statistics.effect import Rates
from monitorbench.intervention.statistics.exact_test import score_interval, unconditional_test
from monitorbench.intervention.statistics.intervals import (
    EffectIntervals,
    effect_intervals,
    effect_tails,
    simultaneous_tails,
)
from monitorbench.intervention.statistics.resampling import draw_rates, swap_test
from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.metrics.significance import holm

PILOTS, DRAWS, AT_ONCE = 2000, 2000, 250
CONFIDENCE, ERROR = 0.95, 0.025


class Kind(NamedTuple):
    """How a task's runs come about: a failing or succeeding baseline, and whether a task takes to it."""

    name: str
    p: float
    r: float
    d: float
    seeds: int = 1
    takers: float = 1.0
    """Share of the tasks at which recoveries happen at all; the others' have none."""
    victims: float = 1.0
    """Share of the tasks at which disruptions happen."""

    def cells(self, pilots: int, tasks: int, rng: np.random.Generator, conditions: int = 1) -> IntArray:
        """Pairs in A, B, C, D: [pilots, conditions, tasks, 4]; all seeds of a task start alike."""
        shape = (pilots, conditions, tasks)
        fails = rng.random((pilots, 1, tasks)) < self.p
        recovers = np.where(rng.random(shape) < self.takers, self.r / self.takers, 0)
        disrupts = np.where(rng.random(shape) < self.victims, self.d / self.victims, 0)
        changed = rng.binomial(self.seeds, np.where(fails, recovers, disrupts))
        kept, none = self.seeds - changed, np.zeros_like(changed)
        failing, succeeding = (kept, none, changed, none), (none, changed, none, kept)
        return np.where(fails[..., None], np.stack(failing, axis=-1), np.stack(succeeding, axis=-1))

    @property
    def delta(self) -> float:
        """The true ΔSuccess."""
        return self.p * self.r - (1 - self.p) * self.d

    @property
    def p_minus_p_star(self) -> float:
        """The true p − p*."""
        return self.p - self.d / (self.r + self.d)


def at_p_star(name: str, r: float, d: float, seeds: int, takers: float = 1.0, victims: float = 1.0) -> Kind:
    """No gain and no loss."""
    return Kind(name, d / (r + d), r, d, seeds, takers, victims)


NOTHING = (
    at_p_star("the paper's r and d", 0.119, 0.5625, 1),
    at_p_star("the paper's r and d", 0.119, 0.5625, 3),
    at_p_star("rare changes", 0.03, 0.2, 1),
    at_p_star("rare changes", 0.03, 0.2, 3),
    at_p_star("very rare changes", 0.01, 0.05, 1),
    at_p_star("very rare changes", 0.01, 0.05, 3),
    at_p_star("even", 0.25, 0.25, 1),
    at_p_star("even", 0.25, 0.25, 3),
    at_p_star("whole tasks", 0.2, 0.6, 3, takers=0.2, victims=0.6),
    at_p_star("thin gains, whole losses", 0.1, 0.6, 3, takers=1.0, victims=0.6),
    at_p_star("whole gains, thin losses", 0.1, 0.4, 3, takers=0.1, victims=1.0),
)
SOMETHING = (
    (30, Kind("−26 points", 0.3, 0.1, 29 / 70)),
    (30, Kind("+16 points, d = 0", 0.5, 0.32, 0.0)),
    (50, Kind("the paper's pilot", 0.893, 0.119, 0.5625)),
    (50, Kind("the paper's pilot", 0.893, 0.119, 0.5625, 3)),
    (50, Kind("a gain", 0.8, 0.3, 0.1)),
    (30, Kind("a gain", 0.8, 0.3, 0.1)),
    (30, Kind("a gain", 0.8, 0.3, 0.1, 3, 0.6, 0.5)),
    (50, Kind("a loss", 0.2, 0.1, 0.4)),
)
HARMFUL = Kind("−16 points", 0.3, 0.1, 19 / 70)


class Found(NamedTuple):
    """What simulated pilots said: [pilots, conditions, 2], the two intervals of each condition."""

    delta: FloatArray
    p_minus_p_star: FloatArray

    @property
    def side(self) -> IntArray:
        """1 intervene, −1 don't, 0 inconclusive: [pilots, conditions]."""
        return (self.delta[..., 0] > 0).astype(np.int64) - (self.delta[..., 1] < 0)


def tables(seed: int, effort: float) -> Iterator[Table]:
    """All that the pilot claims."""
    n = max(100, round(PILOTS * effort))
    yield false_decisions(n, seed)
    yield power(n, seed)
    yield every_mechanism(n, seed)


def false_decisions(n: int, seed: int) -> Table:
    """Of pilots without an effect."""
    rows = []
    for tasks in (50, 30, 12):
        for number, kind in enumerate(NOTHING):
            before, now = both(kind, n, tasks, [seed, 0, tasks, number])
            rows.append(
                [kind.name, kind.seeds, tasks]
                + [float((found.side == side).mean()) for side in (1, -1) for found in (before, now)]
                + [covered(found.delta, kind.delta) for found in (before, now)]
            )
    return Table(
        "Pilot: wrong decisions where ΔSuccess is 0",
        (
            "kind of pilot",
            "seeds",
            "tasks",
            "intervene, before",
            "now",
            "don't, before",
            "now",
            "interval covers, before",
            "now",
        ),
        rows,
        f"{n:,} pilots a row; each of the two may come in 0.025. Before: McNemar's exact test (by task, of all "
        "sign flips) has to agree with the draws. Now: the unconditional exact test decides about 0 where each "
        "task's runs ended alike; where they didn't, it has to agree with the draws.",
    )


def power(n: int, seed: int) -> Table:
    """Of pilots with one."""
    rows = []
    for number, (tasks, kind) in enumerate(SOMETHING):
        before, now = both(kind, n, tasks, [seed, 1, number])
        right = 1 if kind.delta > 0 else -1
        rows.append(
            [kind.name, f"{100 * kind.delta:+.1f}".replace("-", "−"), kind.seeds, tasks]
            + [float((found.side == side).mean()) for side in (right, -right) for found in (before, now)]
            + [covered(found.delta, kind.delta) for found in (before, now)]
        )
    return Table(
        "Pilot: effects found",
        (
            "kind of pilot",
            "ΔSuccess, points",
            "seeds",
            "tasks",
            "found, before",
            "now",
            "wrong side, before",
            "now",
            "interval covers, before",
            "now",
        ),
        rows,
        f"{n:,} pilots a row.",
    )


def every_mechanism(n: int, seed: int) -> Table:
    """Of pilots in which all conditions harm, or none does anything."""
    rows = []
    for number, (kind, tasks) in enumerate([(HARMFUL, 50), (HARMFUL, 100), (NOTHING[6], 50)]):
        for conditions in (1, 2, 4):
            before, now = both(kind, n // 2, tasks, [seed, 2, number, conditions], conditions)
            rows.append(
                [kind.name, tasks, conditions]
                + [float((found.side == -1).all(axis=1).mean()) for found in (before, now)]
                + [float((found.side == 1).any(axis=1).mean()) for found in (before, now)]
            )
    return Table(
        "Pilot: every mechanism harms",
        ("each condition", "tasks", "conditions", "don't, before", "now", "any intervene, before", "now"),
        rows,
        f"{n // 2:,} pilots a row, whose top level says don't where each condition does. Of one condition what "
        "changes is the test alone. Now each is tested at its own level (an intersection–union claim needs no "
        "correction); intervene is corrected as before.",
    )


def both(kind: Kind, n: int, tasks: int, seed: list[int], conditions: int = 1) -> tuple[Found, Found]:
    """The same pilots as they were decided on before, and now."""
    cells = kind.cells(n, tasks, np.random.default_rng(seed), conditions)
    names = tuple(f"{i:04}" for i in range(tasks))
    found: list[list[EffectIntervals]] = [[], []]
    for start in range(0, n, AT_ONCE):
        some = cells[start : start + AT_ONCE].reshape(-1, tasks, 4)
        pilots = [matched.Table(names, one) for one in some]
        drawn = draw_rates(pilots, draws=DRAWS, seed=0, prior_tasks=1)
        for first in range(0, len(pilots), conditions):
            family = range(first, first + conditions)
            for rule, answers in zip((before, now), found, strict=True):
                answers += rule(pilots, drawn, family)
    return _found(found[0], conditions), _found(found[1], conditions)


def before(pilots: list[matched.Table], drawn: Rates, family: range) -> list[EffectIntervals]:
    """Both bounds hold for all conditions at once, and a conditional exact test has to agree."""
    tails = simultaneous_tails(drawn.delta_success[:, list(family)], CONFIDENCE, -1.0, 1.0)
    tests = holm([swap_test(pilots[i].changes) for i in family])
    return [
        borne_out(effect_intervals(drawn, i, tails), p, CONFIDENCE)
        for i, p in zip(family, tests, strict=True)
    ]


def now(pilots: list[matched.Table], drawn: Rates, family: range) -> list[EffectIntervals]:
    """As `analyse` has it."""
    tails = effect_tails(drawn, family, CONFIDENCE)
    tests = [unconditional_test(pilots[i].changes) for i in family]
    found = []
    for i, p, corrected in zip(family, tests, holm(tests), strict=True):
        score = score_interval(pilots[i].cells, ERROR / len(family), ERROR)
        exact_p = corrected if pilots[i].changes.sum() > 0 else p
        found.append(borne_out(effect_intervals(drawn, i, tails), exact_p, CONFIDENCE, score))
    return found


def _found(answers: list[EffectIntervals], conditions: int) -> Found:
    values = np.array(answers).reshape(-1, conditions, 2, 2)
    return Found(values[:, :, 0], values[:, :, 1])


def covered(bounds: FloatArray, truth: float) -> float:
    """The share of intervals [..., 2] that hold the truth."""
    return float(((bounds[..., 0] <= truth + 1e-9) & (truth - 1e-9 <= bounds[..., 1])).mean())
