"""Does a gate fail an unchanged monitor in at most 5 % of checks, and does it see one that changed?

The whole way is drawn anew each time: calibration split, threshold, anchors, scores then and now. Scores are
normal and made probabilities; a judge's own noise from one asking to the next is a share of their variance.
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm

from benchmarks.coverage import Cell, Table, given
from monitorbench.config.deployment import Gate
from monitorbench.gate.answer import AnchorScores, Rules, compare
from monitorbench.gate.change import broken_p
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.columns import BoolArray
from monitorbench.metrics.guarantees.order_statistic import neyman_pearson_rank

ALPHA, DELTA = 0.05, 0.05
CALIBRATION = 200
"""Benign questions that the threshold is set on."""
_WORDS = ("PASS", "THRESHOLD_STALE", "DEGRADED", "INCONCLUSIVE")
_GATE = Gate()
RULES = Rules.model_validate(_GATE)


class Case(NamedTuple):
    """A change between freezing a gate and checking it."""

    name: str
    auroc: float = 0.95
    auroc_now: float = 0.95
    shift: float = 0.0
    """Shift of all scores, in SD."""
    noise: float = 0.0
    """The share of the scores' variance that is drawn anew each time the judge is asked."""
    unscored: float = 0.0
    """The share of anchors without a score now."""
    lost: float = 0.0
    """The share of anchors whose score is now one of either label, by chance."""
    at_margin: str = ""
    """`miss_rate` or `false_alarm_rate`: shifted so that it rises by just its margin."""


_NOISY = Case("nothing, noise 10 %", noise=0.1)
_CHANGED = Case("", noise=0.01)
UNCHANGED = (
    Case("nothing, same scores"),
    Case("nothing, noise 1 %", noise=0.01),
    _NOISY,
    Case("nothing, noise 30 %", noise=0.3),
    _NOISY._replace(name="nothing, noise 10 %, AUROC .8", auroc=0.8, auroc_now=0.8),
    _NOISY._replace(name="nothing, noise 10 %, AUROC .99", auroc=0.99, auroc_now=0.99),
    Case("nothing, 5 % unscored", noise=0.01, unscored=0.05),
)
CHANGED = (
    *(
        Case(f"scores {shift:+g} SD".replace("-", "−"), shift=shift, noise=0.01)
        for shift in (0.5, 1, -0.5, -1)
    ),
    _CHANGED._replace(name="labels closer, AUROC .95 to .9", auroc_now=0.9),
    *(
        Case(f"{lost:.0%} of scores by chance".replace("%", " %"), noise=0.01, lost=lost)
        for lost in (0.05, 0.1, 0.2)
    ),
    _CHANGED._replace(name="11.2 % by chance, AUROC fallen by its margin", lost=0.112),
    _CHANGED._replace(name="MR risen by its margin", at_margin="miss_rate"),
    _CHANGED._replace(name="FAR risen by its margin", at_margin="false_alarm_rate"),
    _CHANGED._replace(name="30 % unscored", unscored=0.3),
)


def tables(seed: int, effort: float) -> Iterator[Table]:
    """False fails, power and passes at the margins; `looks` has many checks of one gate."""
    n_runs = max(20, round(1000 * effort))
    yield _answers("A gate where nothing changed", UNCHANGED, seed, n_runs)
    yield _answers("A gate where something changed", CHANGED, seed, n_runs)


def _answers(title: str, cases: tuple[Case, ...], seed: int, n_runs: int) -> Table:
    rows: list[list[Cell]] = []
    for (i, case), n_pairs in product(enumerate(cases), (75, 100, 200, 400)):
        rng = np.random.default_rng([seed, i, n_pairs, round(100 * case.auroc_now)])
        counts: Counter[str] = Counter()
        while counts.total() < n_runs:
            if word := simulated(case, n_pairs, rng):
                counts[word] += 1
        rows.append([case.name, n_pairs, *(counts[word] / n_runs for word in _WORDS)])
    return Table(
        title,
        f"what changed | questions | {' | '.join(_WORDS)}",
        rows,
        f"{n_runs:,} gates a row; AUROC .95 where nothing else is said, anchors in pairs of a question, "
        f"threshold from {CALIBRATION} benign questions (FAR <= {ALPHA:g} with probability {1 - DELTA:g}), "
        f"margins {RULES.auroc_margin:g} of AUROC, {RULES.miss_margin:g} of MR, {RULES.alarm_margin:g} of "
        "FAR. Gates that a freeze refuses, since their anchors break the promise at once, are drawn again. "
        f"Claimed: fails (THRESHOLD_STALE and DEGRADED) in at most {RULES.level:g} where nothing changed, "
        "PASS in at most as many where something is worse by its margin.",
    )


def simulated(case: Case, n_pairs: int, rng: np.random.Generator) -> str:
    """The answer of one gate frozen and checked; empty where it would not have been frozen."""
    n, separation = 2 * n_pairs, np.sqrt(2) * norm.ppf(case.auroc)
    rank, _ = given(neyman_pearson_rank(CALIBRATION, ALPHA, DELTA))
    limit = np.sort(expit(rng.normal(size=CALIBRATION)))[rank - 1]
    is_bad = np.arange(n) % 2 == 0
    draw = partial(_scores, is_bad, rng.normal(size=n), case.noise, rng)
    before = draw(separation, 0.0)
    anchors = AnchorScores(is_bad, np.arange(n) // 2, np.full(n, limit), before, before, np.empty((0, n)))
    judged = partial(compare, rules=RULES, alpha=ALPHA, alpha_applies=True)
    as_frozen = judged(anchors)
    if as_frozen.word != "PASS" or broken_p(as_frozen.promise.n_alarmed, n_pairs, ALPHA) <= RULES.level:
        return ""
    shift = case.shift + _shift_to_margin(case.at_margin, float(logit(limit)), separation)
    now = before.copy()
    if case.noise or case.auroc_now != case.auroc or case.shift:
        now = draw(np.sqrt(2) * norm.ppf(case.auroc_now), shift)
    by_chance = _scores(rng.random(n) < 0.5, rng.normal(size=n), 0, rng, separation, shift)
    now = np.where(rng.random(n) < case.lost, by_chance, now)
    now[rng.random(n) < case.unscored] = np.nan
    return judged(anchors._replace(now=now)).word


def _shift_to_margin(rate: str, limit: float, separation: float) -> float:
    """Find the shift in SD that makes a rate rise by its margin at a threshold; 0 where none is named."""
    if rate == "miss_rate":
        missed = norm.cdf(limit - separation)
        return float(norm.ppf(missed) - norm.ppf(min(missed + RULES.miss_margin, 1 - 1e-9)))
    if rate == "false_alarm_rate":
        alarms = norm.sf(limit)
        return float(norm.ppf(alarms + RULES.alarm_margin) - norm.ppf(alarms))
    return 0.0


def _scores(
    is_bad: BoolArray,
    own: FloatArray,
    noise: float,
    rng: np.random.Generator,
    separation: float,
    shift: float,
) -> FloatArray:
    """Draw the anchors' scores [samples] as the judge gives them this time."""
    drawn = np.sqrt(1 - noise) * own + np.sqrt(noise) * rng.normal(size=len(own))
    scores: FloatArray = expit(drawn + is_bad * separation + shift)
    return scores
