"""The pilot: how often its decision errs and finds an effect, and whether its intervals and plans hold.

Pilots of `Kind`s are simulated and decided on by the library's functions.
"""

from collections.abc import Iterator
from functools import cache
from itertools import product
from math import ceil
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import multinomial

from benchmarks.coverage import Cell, Table, means
from monitorbench.config.pilot import MOST_DECISIONS, PilotStatistics
from monitorbench.intervention.statistics.decision_rule import borne_out
from monitorbench.intervention.statistics.effect import PilotRates, TaskTable, rates, transported
from monitorbench.intervention.statistics.exact import score_interval, unconditional_test
from monitorbench.intervention.statistics.intervals import (
    EffectIntervals,
    at_the_edge,
    bounds,
    draw_rates,
    effect_intervals,
    effect_tails,
    excludes_zero,
    moved,
)
from monitorbench.intervention.statistics.planning import (
    TaskChanges,
    expected_changes,
    minimum_detectable_effect,
    tasks_needed,
)
from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.metrics.columns import BoolArray
from monitorbench.metrics.rates import Interval
from monitorbench.metrics.significance import holm

PILOTS, DRAWS, AT_ONCE = 1200, 2000, 200
CONFIDENCE, POWER = 0.95, 0.8
_LIKELY = 1e-7
_MOST_TASKS = 2000
_ERRORS = tuple(PilotStatistics(decided_before=number).error for number in range(MOST_DECISIONS))
"""Of each decision on a pilot."""


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
        """Draw pairs in A, B, C, D: [pilots, conditions, tasks, 4]; all seeds of a task start alike."""
        shape = (pilots, conditions, tasks)
        fails = rng.random((pilots, 1, tasks)) < self.p
        recovers = np.where(rng.random(shape) < self.takers, self.r / self.takers, 0)
        disrupts = np.where(rng.random(shape) < self.victims, self.d / self.victims, 0)
        changed = rng.binomial(self.seeds, np.where(fails, recovers, disrupts))
        same, none = self.seeds - changed, np.zeros_like(changed)
        failing, succeeding = (same, none, changed, none), (none, changed, none, same)
        return np.where(fails[..., None], np.stack(failing, axis=-1), np.stack(succeeding, axis=-1))

    @property
    def delta(self) -> float:
        """The true ΔSuccess."""
        return self.p * self.r - (1 - self.p) * self.d


def _at_p_star(name: str, r: float, d: float, seeds: int, takers: float = 1.0, victims: float = 1.0) -> Kind:
    """Make a kind without gain or loss."""
    return Kind(name, d / (r + d), r, d, seeds, takers, victims)


_RATES = {
    "the paper's r and d": (0.119, 0.5625),
    "rare changes": (0.03, 0.2),
    "very rare changes": (0.01, 0.05),
    "even": (0.25, 0.25),
}
NOTHING = (
    *(_at_p_star(name, r, d, seeds) for name, (r, d) in _RATES.items() for seeds in (1, 3)),
    _at_p_star("whole tasks", 0.2, 0.6, 3, takers=0.2, victims=0.6),
    _at_p_star("thin gains, whole losses", 0.1, 0.6, 3, takers=1.0, victims=0.6),
    _at_p_star("whole gains, thin losses", 0.1, 0.4, 3, takers=0.1, victims=1.0),
)
_LARGE_LOSS = Kind("−26 points", 0.3, 0.1, 29 / 70)
_NO_D = Kind("+16 points, d = 0", 0.5, 0.32, 0.0)
_PAPER = Kind("the paper's pilot", 0.893, 0.119, 0.5625)
_GAIN, _LOSS = Kind("a gain", 0.8, 0.3, 0.1), Kind("a loss", 0.2, 0.1, 0.4)
_SMALL = Kind("+7 points", 0.5, 0.2, 0.06)
HARMFUL = Kind("−16 points", 0.3, 0.1, 19 / 70)
SOMETHING = (
    *((30, _LARGE_LOSS), (30, _NO_D), (50, _PAPER), (50, _PAPER._replace(seeds=3)), (50, _GAIN)),
    *((30, _GAIN), (30, Kind("a gain", 0.8, 0.3, 0.1, 3, 0.6, 0.5)), (50, _LOSS)),
)
"""Numbers of tasks, and kinds with an effect."""
PLANNED = (_LARGE_LOSS, _NO_D, _GAIN, _LOSS, _SMALL, _PAPER, _SMALL._replace(seeds=3))
DETECTED = ((30, PLANNED[0]), (50, PLANNED[2]), (100, PLANNED[4]), (100, PLANNED[6]))
EDGES = (
    Kind("d = 0", 0.5, 0.32, 0.0),
    Kind("d = 0", 0.8, 0.15, 0.0),
    Kind("d = 0", 0.5, 0.32, 0.0, 3),
    Kind("r = 0", 0.3, 0.0, 0.4),
    Kind("r = 0", 0.6, 0.0, 0.2, 3),
    Kind("d = 2 %", 0.5, 0.32, 0.02),
    _PAPER._replace(name="the paper's"),
    Kind("even", 0.5, 0.25, 0.25, 3),
)


class Found(NamedTuple):
    """Answers of pilots: [pilots, conditions, 2], the two intervals of each condition."""

    delta: FloatArray
    p_minus_p_star: FloatArray
    chances: FloatArray
    """[pilots]: of each; one of many where they are simulated."""

    @property
    def side(self) -> IntArray:
        """1 intervene, −1 don't, 0 inconclusive: [pilots, conditions]."""
        return (self.delta[..., 0] > 1e-9).astype(np.int64) - (self.delta[..., 1] < -1e-9)

    def share(self, side: int) -> float:
        """Share of the pilots whose first condition is on that side."""
        return float((self.side[:, 0] == side) @ self.chances)

    def covers(self, truth: float) -> float:
        """The share of the first condition's intervals that hold the true ΔSuccess."""
        return float(_holds(self.delta[:, 0], truth) @ self.chances)


def tables(seed: int, effort: float) -> Iterator[Table]:
    """Tabulate all that the pilot claims."""
    n = max(100, round(PILOTS * effort))
    yield _false_decisions(4 * n, seed)
    yield _power(n, seed)
    yield _obeyed(n, seed)
    yield _every_mechanism(n // 4, seed)
    yield _plans(n, seed)
    yield _edges(n // 4, seed)


def _false_decisions(n: int, seed: int) -> Table:
    """Share of pilots without an effect that find one."""
    rows: list[list[Cell]] = []
    for tasks, (number, kind) in product((50, 30), enumerate(NOTHING)):
        found = _decided(*_pilots(kind, n, tasks, [seed, 0, tasks, number]))
        shares = [found.share(side) for side in (1, -1)]
        rows.append([kind.name, kind.seeds, tasks, *shares, found.covers(kind.delta)])
    return Table(
        "Pilot: wrong decisions where ΔSuccess is 0",
        "kind | seeds | tasks | intervene | don't | interval covers",
        rows,
        f"With three seeds {n:,} pilots a row; with one seed all pilots there are, by their chance. Either "
        "decision may come in 0.025. The unconditional exact test decides about 0 where each task's "
        "runs ended alike, as one run does; else it has to agree with the draws.",
    )


def _power(n: int, seed: int) -> Table:
    """Share of pilots with an effect that find it."""
    rows: list[list[Cell]] = []
    for number, (tasks, kind) in enumerate(SOMETHING):
        found = _decided(*_pilots(kind, n, tasks, [seed, 1, number]))
        right = 1 if kind.delta > 0 else -1
        shares = [found.share(side) for side in (right, -right)]
        rows.append([kind.name, _points(kind.delta), kind.seeds, tasks, *shares, found.covers(kind.delta)])
    return Table(
        "Pilot: effects found",
        "kind | points | seeds | tasks | found | wrong side | interval covers",
        rows,
        f"With three seeds {n:,} pilots a row; with one seed all pilots there are.",
    )


def _obeyed(n: int, seed: int) -> Table:
    """Tabulate wrong and right decisions where whoever runs the pilot adds the tasks that it asks for."""
    rows: list[list[Cell]] = []
    kinds = [*(kind for kind in NOTHING if kind.seeds == 1), _PAPER, _SMALL, _GAIN, _LOSS]
    for number, kind in enumerate(kinds):
        shares = [(1 - kind.p) * kind.d, kind.p * kind.r]
        rng = np.random.default_rng([seed, 6, number])
        signs = rng.choice([-1, 1, 0], p=[*shares, 1 - sum(shares)], size=(n, _MOST_TASKS))
        counts = np.cumsum(np.stack([signs == -1, signs == 1], axis=-1), axis=1, dtype=np.int64)
        ends = [_ended(pilot) for pilot in counts]
        found = [float(np.mean([end[0] == side for end in ends])) for side in (1, -1)]
        used = f"{np.mean([end[1] for end in ends]):,.0f}"
        rows.append([kind.name, _points(kind.delta), *found, used])
    return Table(
        "Pilot: further tasks are run as advised, and all decided again",
        "kind | points | intervene | don't | tasks in the end",
        rows,
        f"{n:,} pilots a row of 50 tasks at first, one seed a task, at most {MOST_DECISIONS} decisions; who "
        f"would have to run more than {_MOST_TASKS:,} tasks gives up. Tasks for the observed effect are "
        "planned by the normal approximation. Where the points are 0 either decision may come in 0.025. "
        "Each decision is at nine tenths of what is left of that.",
    )


def _ended(counts: IntArray) -> tuple[int, int]:
    """The side that one pilot ends on (0: inconclusive), and its tasks.

    `counts` [tasks, 2] are disruptions and recoveries up to each task.
    """
    tasks = 50
    for number, error in enumerate(_ERRORS):
        lost, won = counts[tasks - 1].tolist()
        if _exact_p(tasks, lost, won) <= 2 * error:
            return int(np.sign(won - lost)), tasks
        if won == lost or number + 1 == len(_ERRORS):
            break
        variance = (won + lost) / tasks - ((won - lost) / tasks) ** 2
        reach = float(ndtri(POWER) - ndtri(_ERRORS[number + 1])) * tasks / (won - lost)
        needed = max(tasks + 1, ceil(reach**2 * variance))
        if needed > len(counts):
            break
        tasks = needed
    return 0, tasks


@cache
def _exact_p(tasks: int, lost: int, won: int) -> float:
    return unconditional_test(np.repeat([-1, 1, 0], [lost, won, tasks - lost - won]))


def _every_mechanism(n: int, seed: int) -> Table:
    """Decisions of pilots in which all conditions harm, or none does anything."""
    rows: list[list[Cell]] = []
    cases = enumerate([(HARMFUL, 50), (HARMFUL, 100), (NOTHING[6], 50)])
    for (number, (kind, tasks)), conditions in product(cases, (1, 2, 4)):
        cells = kind.cells(n, tasks, np.random.default_rng([seed, 2, number, conditions]), conditions)
        side = _decided(cells, np.full(n, 1 / n)).side
        shares = (side == -1).all(axis=1).mean(), (side == 1).any(axis=1).mean()
        rows.append([kind.name, tasks, conditions, *map(float, shares)])
    return Table(
        "Pilot: every mechanism harms",
        "each condition | tasks | conditions | don't | any intervene",
        rows,
        f"{n:,} pilots a row. The top level says don't where each condition does, each at its own level; "
        "intervene is corrected for how many there are.",
    )


def _plans(n: int, seed: int) -> Table:
    """Whether as many tasks as are planned, and an effect as large as is promised, have the power."""
    rows: list[list[Cell]] = []
    for number, kind in enumerate(PLANNED):
        truth = _changes(kind)
        tasks = tasks_needed(kind.delta, truth) or 0
        power = _delivered(truth, tasks, n, [seed, 3, number])
        rows.append([f"{kind.name}: tasks for it", kind.seeds, str(tasks), power])
    for number, (tasks, kind) in enumerate(DETECTED):
        truth = _changes(kind)
        effect = minimum_detectable_effect(tasks, truth) or 1.0
        power = _delivered(truth.tilted(effect), tasks, n, [seed, 4, number])
        rows.append([f"{kind.name}: effect that {tasks} tasks find", kind.seeds, _points(effect), power])
    return Table(
        "Pilot: planned for a power of 0.8",
        "kind: what is planned | seeds | planned | power",
        rows,
        f"The share of {n:,} pilots with that many tasks, or that effect, that are decided rightly.",
    )


def _changes(kind: Kind) -> TaskChanges:
    """The chances of a task's changes where all its seeds start alike."""
    down, up = (expected_changes(p, kind.r, kind.d, kind.seeds, 0.0) for p in (0.0, 1.0))
    values = np.arange(-kind.seeds, kind.seeds + 1)
    chances = np.zeros(len(values))
    for share, one in ((1 - kind.p, down), (kind.p, up)):
        chances[one.values + kind.seeds] += share * one.chances
    return TaskChanges(values[chances > 0], chances[chances > 0], kind.seeds)


def _delivered(truth: TaskChanges, tasks: int, n: int, seed: list[int]) -> float:
    """The share of pilots decided on the side of the true effect."""
    changes = np.random.default_rng(seed).choice(truth.values, p=truth.chances, size=(n, 1, tasks))
    lost, won = np.maximum(-changes, 0), np.maximum(changes, 0)
    cells = np.stack([truth.seeds - lost - won, lost, won, np.zeros_like(changes)], axis=-1)
    return _decided(cells, np.full(n, 1 / n)).share(1 if truth.effect > 0 else -1)


def _edges(n: int, seed: int) -> Table:
    """Whether the interval of p − p* holds where a rate is 0, and what transport says."""
    rows: list[list[Cell]] = []
    for number, (tasks, kind) in enumerate(product((50, 15), EDGES)):
        cells = kind.cells(n, tasks, np.random.default_rng([seed, 5, number]))
        is_defined = cells[..., 1:3].any(axis=(1, 2, 3))  # else p* is undefined
        truth = kind.p - kind.d / (kind.r + kind.d)
        intervals = _decided(cells, np.full(n, 1 / n)).p_minus_p_star[is_defined, 0]
        moves = means(_transported(pilot, kind) for pilot in cells[:, 0])
        rows.append([kind.name, kind.p, kind.seeds, tasks, float(_holds(intervals, truth).mean()), *moves])
    return Table(
        "Pilot: p − p*, and another deployment",
        "kind | p | seeds | tasks | p − p* covers | transported effect covers | contradicts the pilot",
        rows,
        f"{n:,} pilots a row. Transport is to a deployment that fails at 0.3; contradicting is "
        "another decision than the pilot's at the pilot's own failure rate.",
    )


def _transported(cells: IntArray, kind: Kind) -> list[bool]:
    """Whether one pilot's transported interval covers, and whether it contradicts the pilot."""
    table = TaskTable(tuple(f"{i:04}" for i in range(len(cells))), cells)
    drawn = draw_rates([table], draws=DRAWS, seed=0, prior_tasks=1)
    tails = effect_tails(drawn, [0], CONFIDENCE)
    own = _decide([table], drawn, range(1))[0].delta_success

    def at(p: float) -> Interval:
        return bounds(transported(drawn, p)[:, 0], tails, p - 1, p)

    raw = effect_intervals(drawn, 0, tails).delta_success
    widened = excludes_zero(raw) and not excludes_zero(own)
    p, p_there = float(rates(cells.sum(axis=0)).p), 0.3
    truth = p_there * kind.r - (1 - p_there) * kind.d
    there, here = (moved(own, at(p), at(at_p), widened, p, at_p) for at_p in (p_there, p))
    return [bool(_holds(np.array(there), truth)), _side(here) != _side(own)]


def _side(interval: Interval) -> int:
    return int(interval.low > 1e-9) - int(interval.high < -1e-9)


def _pilots(kind: Kind, n: int, tasks: int, seed: list[int]) -> tuple[IntArray, FloatArray]:
    """Cells [pilots, 1, tasks, 4] and their chances: of one seed every pilot that is at all likely."""
    if kind.seeds > 1:
        return kind.cells(n, tasks, np.random.default_rng(seed)), np.full(n, 1 / n)
    shares = [(1 - kind.p) * kind.d, kind.p * kind.r]
    lost, won = (axis.ravel() for axis in np.meshgrid(np.arange(tasks + 1), np.arange(tasks + 1)))
    possible = lost + won <= tasks
    counts = np.stack([tasks - lost - won, lost, won], axis=1)[possible]
    chances = multinomial.pmf(counts, tasks, [1 - sum(shares), *shares])
    counts, chances = counts[chances > _LIKELY], chances[chances > _LIKELY]
    kinds = np.stack([np.repeat(np.arange(3), row) for row in counts])
    return np.eye(4, dtype=np.int64)[kinds][:, None], chances / chances.sum()


def _decided(cells: IntArray, chances: FloatArray) -> Found:
    """Decide on pilots [pilots, conditions, tasks, 4]."""
    n, conditions, tasks, _ = cells.shape
    names = tuple(f"{i:04}" for i in range(tasks))
    decisions: list[EffectIntervals] = []
    for start in range(0, n, AT_ONCE):
        batch = cells[start : start + AT_ONCE].reshape(-1, tasks, 4)
        pilots = [TaskTable(names, pilot) for pilot in batch]
        drawn = draw_rates(pilots, draws=DRAWS, seed=0, prior_tasks=1)
        for first in range(0, len(pilots), conditions):
            decisions += _decide(pilots, drawn, range(first, first + conditions))
    intervals = np.array(decisions).reshape(-1, conditions, 2, 2)
    return Found(intervals[:, :, 0], intervals[:, :, 1], chances)


def _decide(pilots: list[TaskTable], drawn: PilotRates, family: range) -> list[EffectIntervals]:
    """Decide as `analyse` does."""
    error, tails = PilotStatistics().error, effect_tails(drawn, family, CONFIDENCE)
    tests = [unconditional_test(pilots[i].changes) for i in family]
    decisions = []
    for i, p, corrected in zip(family, tests, holm(tests), strict=True):
        score = score_interval(pilots[i].cells, error / len(family), error)
        exact_p = corrected if pilots[i].changes.sum() > 0 else p
        intervals = borne_out(effect_intervals(drawn, i, tails), exact_p, error, score)
        _, lost, won, _ = pilots[i].cells.sum(axis=0).tolist()
        decisions.append(at_the_edge(intervals, bounds(drawn.p[:, i], tails, 0.0, 1.0), lost, won))
    return decisions


def _holds(intervals: FloatArray, truth: float) -> BoolArray:
    """Which of the intervals [..., 2] hold the truth."""
    holds: BoolArray = (intervals[..., 0] <= truth + 1e-9) & (truth - 1e-9 <= intervals[..., 1])
    return holds


def _points(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", "−")
