"""The pilot: how often its decision errs and finds an effect, and whether its intervals and plans hold.

Pilots of `Kind`s are simulated and decided on, as `main` did before and by the library's functions now.
"""

from collections.abc import Iterator
from itertools import product
from math import ceil
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import multinomial

from coverage_parts.table import Table
from monitorbench.intervention.statistics import matched
from monitorbench.intervention.statistics.decision_rule import borne_out
from monitorbench.intervention.statistics.effect import PilotRates, rates, transported
from monitorbench.intervention.statistics.intervals import (
    EffectIntervals,
    Tails,
    at_the_edge,
    bounds,
    effect_intervals,
    effect_tails,
    excludes_zero,
    moved,
    simultaneous_tails,
)
from monitorbench.intervention.statistics.planning import minimum_detectable_effect, tasks_needed
from monitorbench.intervention.statistics.power import TaskChanges, expected_changes
from monitorbench.intervention.statistics.resampling import draw_rates
from monitorbench.intervention.statistics.unconditional import score_interval, unconditional_test
from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.metrics.rates import Interval
from monitorbench.metrics.significance import group_swap_p, holm

PILOTS, DRAWS, AT_ONCE = 1200, 2000, 200
CONFIDENCE, ERROR, POWER = 0.95, 0.025, 0.8
_LIKELY = 1e-7


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


PLANNED = (
    Kind("−26 points", 0.3, 0.1, 29 / 70),
    Kind("+16 points, d = 0", 0.5, 0.32, 0.0),
    Kind("a gain", 0.8, 0.3, 0.1),
    Kind("a loss", 0.2, 0.1, 0.4),
    Kind("+7 points", 0.5, 0.2, 0.06),
    Kind("the paper's pilot", 0.893, 0.119, 0.5625),
    Kind("+7 points", 0.5, 0.2, 0.06, 3),
)
DETECTED = ((30, PLANNED[0]), (50, PLANNED[2]), (100, PLANNED[4]), (100, PLANNED[6]))
EDGES = (
    Kind("d = 0", 0.5, 0.32, 0.0),
    Kind("d = 0", 0.8, 0.15, 0.0),
    Kind("d = 0", 0.5, 0.32, 0.0, 3),
    Kind("r = 0", 0.3, 0.0, 0.4),
    Kind("r = 0", 0.6, 0.0, 0.2, 3),
    Kind("d = 2 %", 0.5, 0.32, 0.02),
    Kind("the paper's", 0.893, 0.119, 0.5625),
    Kind("even", 0.5, 0.25, 0.25, 3),
)


class Found(NamedTuple):
    """What pilots said: [pilots, conditions, 2], the two intervals of each condition."""

    delta: FloatArray
    p_minus_p_star: FloatArray
    chances: FloatArray
    """[pilots]: of each; one of many where they are simulated."""

    @property
    def side(self) -> IntArray:
        """1 intervene, −1 don't, 0 inconclusive: [pilots, conditions]."""
        return (self.delta[..., 0] > 1e-9).astype(np.int64) - (self.delta[..., 1] < -1e-9)

    def share(self, side: int) -> float:
        """Of the pilots whose first condition is on that side."""
        return float((self.side[:, 0] == side) @ self.chances)

    def covers(self, truth: float) -> float:
        """The share of the first condition's intervals that hold the true ΔSuccess."""
        return float(_holds(self.delta[:, 0], truth) @ self.chances)


def tables(seed: int, effort: float) -> Iterator[Table]:
    """All that the pilot claims."""
    n = max(100, round(PILOTS * effort))
    yield false_decisions(4 * n, seed)
    yield power(n, seed)
    yield every_mechanism(n, seed)
    yield plans(n, seed)
    yield edges(n, seed)


def false_decisions(n: int, seed: int) -> Table:
    """Of pilots without an effect."""
    rows = []
    for tasks in (50, 30):
        for number, kind in enumerate(NOTHING):
            before, now = both(*pilots(kind, n, tasks, [seed, 0, tasks, number]))
            rows.append(
                [kind.name, kind.seeds, tasks]
                + [found.share(side) for side in (1, -1) for found in (before, now)]
                + [found.covers(kind.delta) for found in (before, now)]
            )
    columns = ("kind", "seeds", "tasks", "intervene, before", "now", "don't, before", "now")
    return Table(
        "Pilot: wrong decisions where ΔSuccess is 0",
        (*columns, "interval covers, before", "now"),
        rows,
        f"With three seeds {n:,} pilots a row; with one seed all pilots there are, by their chance. Either "
        "decision may come in 0.025. Before: the sign-flip test by task (McNemar's exact test with one seed) "
        "has to agree with the draws. Now: the unconditional exact test decides about 0 where each task's "
        "runs ended alike, as one run does; else it has to agree with the draws.",
    )


def power(n: int, seed: int) -> Table:
    """Of pilots with an effect."""
    rows = []
    for number, (tasks, kind) in enumerate(SOMETHING):
        before, now = both(*pilots(kind, n, tasks, [seed, 1, number]))
        right = 1 if kind.delta > 0 else -1
        rows.append(
            [kind.name, _points(kind.delta), kind.seeds, tasks]
            + [found.share(side) for side in (right, -right) for found in (before, now)]
            + [found.covers(kind.delta) for found in (before, now)]
        )
    columns = ("kind", "points", "seeds", "tasks", "found, before", "now", "wrong side, before", "now")
    return Table(
        "Pilot: effects found",
        (*columns, "interval covers, before", "now"),
        rows,
        f"With three seeds {n:,} pilots a row; with one seed all pilots there are.",
    )


def every_mechanism(n: int, seed: int) -> Table:
    """Of pilots in which all conditions harm, or none does anything."""
    rows = []
    n //= 4
    for number, (kind, tasks) in enumerate([(HARMFUL, 50), (HARMFUL, 100), (NOTHING[6], 50)]):
        for conditions in (1, 2, 4):
            cells = kind.cells(n, tasks, np.random.default_rng([seed, 2, number, conditions]), conditions)
            before, now = both(cells, np.full(n, 1 / n))
            rows.append(
                [kind.name, tasks, conditions]
                + [float((found.side == -1).all(axis=1).mean()) for found in (before, now)]
                + [float((found.side == 1).any(axis=1).mean()) for found in (before, now)]
            )
    return Table(
        "Pilot: every mechanism harms",
        ("each condition", "tasks", "conditions", "don't, before", "now", "any intervene, before", "now"),
        rows,
        f"{n:,} pilots a row. The top level says don't where each condition does, each now at its own level; "
        "intervene is corrected as before. With one condition the test alone is another.",
    )


def plans(n: int, seed: int) -> Table:
    """Whether as many tasks as are planned, and an effect as large as is promised, have the power."""
    rows: list[list[str | int | float]] = []
    reach = float(ndtri(POWER) - ndtri(ERROR))
    for number, kind in enumerate(PLANNED):
        truth = _changes(kind)
        numbers = (ceil((reach * _deviation(truth) / kind.delta) ** 2), tasks_needed(kind.delta, truth) or 0)
        found = [_delivered(truth, tasks, n, [seed, 3, number])[i] for i, tasks in enumerate(numbers)]
        rows.append([f"{kind.name}: tasks for it", kind.seeds, *map(str, numbers), *found])
    for number, (tasks, kind) in enumerate(DETECTED):
        truth = _changes(kind)
        effects = (reach * _deviation(truth) / tasks**0.5, minimum_detectable_effect(tasks, truth) or 1.0)
        found = [
            _delivered(truth.tilted(one), tasks, n, [seed, 4, number])[i] for i, one in enumerate(effects)
        ]
        name = f"{kind.name}: effect that {tasks} tasks find"
        rows.append([name, kind.seeds, *map(_points, effects), *found])
    return Table(
        "Pilot: planned for a power of 0.8",
        ("kind: what is planned", "seeds", "planned, before", "now", "power, before", "now"),
        rows,
        f"The share of {n:,} pilots with that many tasks, or that effect, that are decided rightly. Before: "
        "planned by the normal approximation, decided as before. Now: both by the rule as it is.",
    )


def _deviation(truth: TaskChanges) -> float:
    """The standard deviation of a task's mean change."""
    return float((truth.chances @ (truth.values / truth.seeds) ** 2 - truth.effect**2) ** 0.5)


def _changes(kind: Kind) -> TaskChanges:
    """The chances of a task's changes where all its seeds start alike."""
    down, up = (expected_changes(p, kind.r, kind.d, kind.seeds, 0.0) for p in (0.0, 1.0))
    values = np.arange(-kind.seeds, kind.seeds + 1)
    chances = np.zeros(len(values))
    for share, one in ((1 - kind.p, down), (kind.p, up)):
        chances[one.values + kind.seeds] += share * one.chances
    return TaskChanges(values[chances > 0], chances[chances > 0], kind.seeds)


def _delivered(truth: TaskChanges, tasks: int, n: int, seed: list[int]) -> tuple[float, ...]:
    """The share of pilots decided on the side of the true effect, before and now."""
    changes = np.random.default_rng(seed).choice(truth.values, p=truth.chances, size=(n, 1, tasks))
    none = np.zeros_like(changes)
    lost, won = np.maximum(-changes, 0), np.maximum(changes, 0)
    cells = np.stack([truth.seeds - lost - won, lost, won, none], axis=-1)
    return tuple(one.share(1 if truth.effect > 0 else -1) for one in both(cells, np.full(n, 1 / n)))


def edges(n: int, seed: int) -> Table:
    """Whether the interval of p − p* holds where a rate is 0, and what transport says."""
    rows = []
    n //= 4
    for number, (tasks, kind) in enumerate(product((50, 15), EDGES)):
        cells = kind.cells(n, tasks, np.random.default_rng([seed, 5, number]))
        before, now = both(cells, np.full(n, 1 / n))
        some = cells[..., 1:3].any(axis=(1, 2, 3))  # else p* is undefined
        truth = kind.p - kind.d / (kind.r + kind.d)
        covers = [float(_holds(one.p_minus_p_star[some, 0], truth).mean()) for one in (before, now)]
        moves = np.array([_elsewhere(one, kind) for one in cells[:, 0]])
        rows.append([kind.name, kind.p, kind.seeds, tasks, *covers, *moves.mean(axis=0).tolist()])
    columns = ("kind", "p", "seeds", "tasks", "p − p* covers, before", "now")
    return Table(
        "Pilot: p − p*, and another deployment",
        (*columns, "transported effect covers, before", "now", "contradicts the pilot, before", "now"),
        rows,
        f"{n:,} pilots a row. Transport is to a deployment that fails at 0.3; contradicting is "
        "another decision than the pilot's at the pilot's own failure rate.",
    )


def _elsewhere(cells: IntArray, kind: Kind) -> list[bool]:
    """Of one pilot: whether the transported interval covers, and contradicts it; before and now each."""
    one = matched.Table(tuple(f"{i:04}" for i in range(len(cells))), cells)
    drawn = draw_rates([one], draws=DRAWS, seed=0, prior_tasks=1)
    tails = effect_tails(drawn, [0], CONFIDENCE)
    pilots = (decided_before([one], drawn, range(1))[0], decided_now([one], drawn, range(1))[0])
    own = rates(cells.sum(axis=0))

    def at(p: float) -> Interval:
        return bounds(transported(drawn, p)[:, 0], tails, p - 1, p)

    raw, new = effect_intervals(drawn, 0, tails).delta_success, pilots[1].delta_success
    widened = excludes_zero(raw) and not excludes_zero(new)
    p, there = float(own.p), 0.3
    truth = there * kind.r - (1 - there) * kind.d
    elsewhere = (at(there), moved(new, at(p), at(there), widened, p, there))
    here = (at(p), moved(new, at(p), at(p), widened, p, p))
    covers = [bool(_holds(np.array(one), truth)) for one in elsewhere]
    differ = [_side(one) != _side(pilot.delta_success) for one, pilot in zip(here, pilots, strict=True)]
    return [*covers, *differ]


def _side(interval: Interval) -> int:
    return int(interval.low > 1e-9) - int(interval.high < -1e-9)


def pilots(kind: Kind, n: int, tasks: int, seed: list[int]) -> tuple[IntArray, FloatArray]:
    """Cells [pilots, 1, tasks, 4] and their chances: of one seed every pilot that is at all likely."""
    if kind.seeds > 1:
        return kind.cells(n, tasks, np.random.default_rng(seed)), np.full(n, 1 / n)
    shares = [(1 - kind.p) * kind.d, kind.p * kind.r]
    lost, won = (one.ravel() for one in np.meshgrid(np.arange(tasks + 1), np.arange(tasks + 1)))
    possible = lost + won <= tasks
    counts = np.stack([tasks - lost - won, lost, won], axis=1)[possible]
    chances = multinomial.pmf(counts, tasks, [1 - sum(shares), *shares])
    counts, chances = counts[chances > _LIKELY], chances[chances > _LIKELY]
    kinds = np.stack([np.repeat(np.arange(3), row) for row in counts])
    return np.eye(4, dtype=np.int64)[kinds][:, None], chances / chances.sum()


def both(cells: IntArray, chances: FloatArray) -> tuple[Found, Found]:
    """The same pilots [pilots, conditions, tasks, 4] as they were decided on before, and now."""
    n, conditions, tasks, _ = cells.shape
    names = tuple(f"{i:04}" for i in range(tasks))
    found: list[list[EffectIntervals]] = [[], []]
    for start in range(0, n, AT_ONCE):
        some = [matched.Table(names, one) for one in cells[start : start + AT_ONCE].reshape(-1, tasks, 4)]
        drawn = draw_rates(some, draws=DRAWS, seed=0, prior_tasks=1)
        for first in range(0, len(some), conditions):
            family = range(first, first + conditions)
            for rule, answers in zip((decided_before, decided_now), found, strict=True):
                answers += rule(some, drawn, family)
    before, now = (np.array(answers).reshape(-1, conditions, 2, 2) for answers in found)
    return tuple(Found(one[:, :, 0], one[:, :, 1], chances) for one in (before, now))


def decided_before(some: list[matched.Table], drawn: PilotRates, family: range) -> list[EffectIntervals]:
    """Both bounds hold for all conditions at once, and a conditional exact test has to agree."""
    tails = simultaneous_tails(drawn.delta_success[:, list(family)], CONFIDENCE, -1.0, 1.0)
    tests = holm([group_swap_p(some[i].changes) for i in family])
    return [
        borne_out(effect_intervals(drawn, i, tails), p, CONFIDENCE)
        for i, p in zip(family, tests, strict=True)
    ]


def decided_now(some: list[matched.Table], drawn: PilotRates, family: range) -> list[EffectIntervals]:
    """As `analyse` has it."""
    tails = effect_tails(drawn, family, CONFIDENCE)
    tests = [unconditional_test(some[i].changes) for i in family]
    found = []
    for i, p, corrected in zip(family, tests, holm(tests), strict=True):
        score = score_interval(some[i].cells, ERROR / len(family), ERROR)
        exact_p = corrected if some[i].changes.sum() > 0 else p
        one = borne_out(effect_intervals(drawn, i, tails), exact_p, CONFIDENCE, score)
        _, lost, won, _ = some[i].cells.sum(axis=0).tolist()
        found.append(at_the_edge(one, _p(drawn, i, tails), lost, won))
    return found


def _p(drawn: PilotRates, column: int, tails: Tails) -> Interval:
    return bounds(drawn.p[:, column], tails, 0.0, 1.0)


def _holds(intervals: FloatArray, truth: float) -> FloatArray:
    """Which of the intervals [..., 2] hold the truth."""
    return (intervals[..., 0] <= truth + 1e-9) & (truth - 1e-9 <= intervals[..., 1])


def _points(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", "−")
