"""Matched runs of each agent and condition, and the rates of an intervention from their 2×2 (2602.03338).

Of pairs (baseline, treated) A = fail/fail, B = success/fail, C = fail/success, D = success/success, and
F = A + C, S = B + D, N = F + S. Promises: every run is in exactly one pair of its condition or counted as
unmatched; a run that broke down counts as failed, and is counted apart as well; what has no denominator is
NaN, never 0. What follows from an effect is for `decision_rule` to say.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from monitorbench.config.base import UserError
from monitorbench.intervention.outcomes import BASELINE, Outcome
from monitorbench.metrics.bootstrap import FloatArray, IntArray

CELLS = ("A", "B", "C", "D")
"""Fail/fail, success→fail (disruption), fail→success (recovery), success/success (2602.03338)."""


class MatchedRuns(NamedTuple):
    """One task and seed, without and with intervention."""

    baseline: Outcome
    treated: Outcome

    @property
    def cell(self) -> str:
        """One of `CELLS`."""
        return CELLS[2 * self.treated.success + self.baseline.success]


class TaskTable(NamedTuple):
    """Pairs of runs by task."""

    tasks: tuple[str, ...]
    cells: IntArray
    """[tasks, 4] in the order of `CELLS`."""

    @property
    def changes(self) -> IntArray:
        """Recoveries less disruptions of each task: [tasks]."""
        return self.cells[:, 2] - self.cells[:, 1]

    def by_name(self) -> "TaskTable":
        """Sort the table by the tasks' names: sums come out alike whatever order runs ended in."""
        order = sorted(range(len(self.tasks)), key=self.tasks.__getitem__)
        return TaskTable(tuple(self.tasks[i] for i in order), self.cells[order])


class Matched(NamedTuple):
    """All pairs of one agent under one condition."""

    agent: str
    condition: str
    pairs: tuple[MatchedRuns, ...]
    """The pairs in the order in which the file has the treated runs."""
    unmatched_baseline: int
    """Baseline runs of the agent without a run of this condition."""
    unmatched_treated: int

    @property
    def n_broken(self) -> int:
        """Pairs in which a run broke down."""
        return sum(bool(pair.baseline.reason or pair.treated.reason) for pair in self.pairs)

    def without_broken(self) -> "Matched":
        """Leave out the pairs in which a run broke down."""
        unbroken = tuple(pair for pair in self.pairs if not (pair.baseline.reason or pair.treated.reason))
        return self._replace(pairs=unbroken)

    def by_task(self) -> TaskTable:
        """Count the pairs by task, in the order of the tasks' first pairs."""
        number: dict[str, int] = {}
        flat = [
            4 * number.setdefault(pair.baseline.task, len(number)) + CELLS.index(pair.cell)
            for pair in self.pairs
        ]
        cells = np.bincount(np.array(flat, dtype=np.int64), minlength=4 * len(number)).reshape(-1, 4)
        return TaskTable(tuple(number), cells)


def matched(outcomes: Sequence[Outcome]) -> list[Matched]:
    """One entry for each agent and condition but the baseline, by name.

    Raises `UserError` where an agent has two runs of one task, seed and condition, where there is no baseline
    or nothing but baselines, and where not a single run has its counterpart.
    """
    runs: dict[tuple[str, str], dict[tuple[str, int], Outcome]] = {}
    for outcome in outcomes:
        of_condition = runs.setdefault((outcome.agent, outcome.condition), {})
        if (outcome.task, outcome.seed) in of_condition:
            raise UserError(
                f"outcomes: two runs of agent {outcome.agent!r}, task {outcome.task!r}, seed {outcome.seed}, "
                f"condition {outcome.condition!r}; keep one of them"
            )
        of_condition[outcome.task, outcome.seed] = outcome
    conditions = sorted(key for key in runs if key[1] != BASELINE)
    if not conditions:
        raise UserError(
            f"outcomes: no run with an intervention; expected a condition other than {BASELINE!r}, the "
            "mechanism's name"
        )
    matches = [
        _match(agent, condition, runs.get((agent, BASELINE), {}), runs[agent, condition])
        for agent, condition in conditions
    ]
    if not any(condition_pairs.pairs for condition_pairs in matches):
        raise UserError(
            f"outcomes: no run has a baseline run (condition {BASELINE!r}) of the same agent, task and seed; "
            "run the same tasks and seeds without intervention"
        )
    return matches


def _match(
    agent: str,
    condition: str,
    baseline: dict[tuple[str, int], Outcome],
    treated: dict[tuple[str, int], Outcome],
) -> Matched:
    pairs = tuple(MatchedRuns(baseline[key], run) for key, run in treated.items() if key in baseline)
    return Matched(agent, condition, pairs, len(baseline) - len(pairs), len(treated) - len(pairs))


_ROUNDING = 1e-9


class PilotRates(NamedTuple):
    """Each an array of one shape; NaN where undefined."""

    p: FloatArray
    """Baseline failure rate F/N, in [0, 1]."""
    r: FloatArray
    """Recovery rate C/F."""
    d: FloatArray
    """Disruption rate B/S."""
    p_star: FloatArray
    """d/(r + d): the failure rate above which the intervention gains."""
    p_minus_p_star: FloatArray
    delta_success: FloatArray
    """(C − B)/N = p·r − (1 − p)·d, in [−1, 1]; defined wherever there is a run."""


def rates(cells: FloatArray | IntArray) -> PilotRates:
    """All rates of counts [..., 4] in the order A, B, C, D; they need not be whole."""
    fail_fail, disrupted, recovered, success_success = np.moveaxis(np.asarray(cells, dtype=np.float64), -1, 0)
    failed, succeeded = fail_fail + recovered, disrupted + success_success
    p = _ratio(failed, failed + succeeded)
    r, d = _ratio(recovered, failed), _ratio(disrupted, succeeded)
    p_star = _ratio(d, r + d)
    return PilotRates(p, r, d, p_star, p - p_star, _ratio(recovered - disrupted, failed + succeeded))


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    ratio = np.full(np.shape(whole), np.nan)
    np.divide(part, whole, out=ratio, where=whole > 0)
    return ratio


def check_identity(found: PilotRates, success_baseline: float, success_treated: float) -> None:
    """ΔSuccess from the counts must be the difference of the success rates, and p·r − (1 − p)·d.

    All scalars. Raises ValueError where they disagree: the counts and the rates are not of the same runs.
    """
    delta = float(found.delta_success)
    by_rates = [success_treated - success_baseline]
    if not np.isnan(found.r) and not np.isnan(found.d):
        by_rates.append(float(found.p * found.r - (1 - found.p) * found.d))
    if any(abs(delta - by_rate) > _ROUNDING for by_rate in by_rates):
        raise ValueError(f"ΔSuccess {delta} by the counts, but {by_rates} by the rates")


def undefined(cells: IntArray) -> list[str]:
    """Say in words which rates have no denominator in counts [4]."""
    fail_fail, disrupted, recovered, success_success = cells.tolist()
    notes = []
    if fail_fail + recovered == 0:
        notes.append("r is undefined: the baseline never failed")
    if disrupted + success_success == 0:
        notes.append("d is undefined: the baseline never succeeded")
    if disrupted + recovered == 0:
        notes.append("p* is undefined: no run changed its outcome")
    return notes


def transported(found: PilotRates, p_target: float) -> FloatArray:
    """The expected effect, in [−1, 1], in a deployment whose baseline fails at `p_target`.

    ΔSuccess is the pilot's own. Where p is another and r and d carry over, the identity gives
    p_target·r − (1 − p_target)·d; that they carry over is an assumption which no pilot can check. There is
    one value for each of `found`, NaN where r or d is undefined and is needed.
    """
    gained = np.where(p_target == 0, 0.0, p_target * found.r)
    lost = np.where(p_target == 1, 0.0, (1 - p_target) * found.d)
    return np.asarray(gained - lost)
