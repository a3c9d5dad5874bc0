"""Are the benign scores those that a threshold was calibrated on?

A promise holds where questions are drawn alike. A question's score is its highest over its benign samples, as
in calibration, so questions are what is compared; within each cell, since the promise is weighted over cells.
"""

from typing import TypedDict

import numpy as np

from monitorbench.metrics.bootstrap import FloatArray, IntArray, group_index
from monitorbench.metrics.columns import Columns

DRIFTED = 0.01
"""Below this p the scores are said to have drifted: one warning in a hundred where they have not."""
_MOST_WORK = 5_000_000
"""Questions times permutations: fewer permutations of many questions."""


class Drift(TypedDict):
    """Benign scores in calibration against those in use, question by question."""

    distance: float
    """The largest distance between both distribution functions, averaged over the cells that both have."""
    p_value: float
    """p value by permutation within cells."""
    n_calibration: int
    n_use: int
    """Scored benign questions in the cells that both have."""
    higher: float
    """P(use > calibration) + half of ties, a mean over these cells: above .5 there are more false alarms."""


def drift(calibration: Columns, use: Columns, *, permutations: int = 999, seed: int) -> Drift | None:
    """The two-sample Kolmogorov–Smirnov distance of the benign scores, by permutation within cells.

    The distance is sup |Σ h(F − G)|/Σ h over cells with h = nm/(n + m); its p is exact for any distribution
    of scores, ties included, since the questions of a cell are exchangeable where nothing drifted (Good 2005,
    Permutation, Parametric and Bootstrap Tests, section 3.7). None where no cell has scores on both sides.
    """
    before, now = _by_question(calibration), _by_question(use)
    affordable = max(199, min(permutations, _MOST_WORK // max(1, len(before[0]) + len(now[0]))))
    return two_samples(*before, *now, permutations=affordable, seed=seed)


def two_samples(
    first: FloatArray,
    first_cells: np.ndarray,
    second: FloatArray,
    second_cells: np.ndarray,
    *,
    permutations: int,
    seed: int,
) -> Drift | None:
    """Compare scores, one a question with its cell's name, before [questions] and in use [questions].

    As many permutations are drawn as asked for; p is never below 1/(permutations + 1).
    """
    shared = np.intersect1d(first_cells, second_cells)
    sides = [np.isin(cells, shared) for cells in (first_cells, second_cells)]
    first, first_cells = first[sides[0]], first_cells[sides[0]]
    second, second_cells = second[sides[1]], second_cells[sides[1]]
    if not len(shared):
        return None
    scores = np.concatenate([first, second])
    cells = np.unique(np.concatenate([first_cells, second_cells]), return_inverse=True)[1]
    in_use = np.arange(len(scores)) >= len(first)
    n, m = (np.bincount(cells[side], minlength=len(shared)) for side in (~in_use, in_use))
    h, fewer = n * m / (n + m), np.minimum(n, m)
    by_cell = [np.flatnonzero(cells == cell) for cell in range(len(shared))]
    # h(F - G) of a cell is the count of its smaller side up to a score, less that side's share of all.
    sign = np.where(m <= n, -1.0, 1.0)[cells]
    total = h.sum()
    values: IntArray = np.unique(scores, return_inverse=True)[1]
    expected = np.cumsum(np.bincount(values, sign * (fewer / (n + m))[cells]))

    def distance(drawn: IntArray) -> float:
        counted = np.bincount(values[drawn], sign[drawn], len(expected))
        return float(np.abs(np.cumsum(counted) - expected).max() / total)

    observed = distance(np.flatnonzero(in_use == (m <= n)[cells]))
    rng = np.random.default_rng(seed)
    as_far = 0
    for _ in range(permutations):
        drawn = [
            rng.choice(rows, size, replace=False, shuffle=False)
            for rows, size in zip(by_cell, fewer.tolist(), strict=True)
        ]
        as_far += distance(np.concatenate(drawn)) >= observed - 1e-12
    higher = [_higher(scores[rows], in_use[rows]) for rows in by_cell]
    return Drift(
        distance=observed,
        p_value=(as_far + 1) / (permutations + 1),
        n_calibration=int(n.sum()),
        n_use=int(m.sum()),
        higher=float(np.average(higher, weights=h)),
    )


def _by_question(columns: Columns) -> tuple[FloatArray, np.ndarray]:
    """Each benign question's highest score, and its cell's name; the first one's where it has several."""
    rows = ~columns.is_misbehavior & ~np.isnan(columns.scores)
    groups = group_index(columns.groups[rows])
    highest = np.full(int(groups.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(highest, groups, columns.scores[rows])
    first_rows = np.flatnonzero(rows)[np.unique(groups, return_index=True)[1]]
    names = [
        f"{columns.category_names[c]}/{columns.task_names[t]}"
        for c, t in zip(
            columns.categories[first_rows].tolist(), columns.tasks[first_rows].tolist(), strict=True
        )
    ]
    return highest, np.array(names, dtype=np.str_)


def _higher(scores: FloatArray, in_use: np.ndarray) -> float:
    """P(use > calibration) + P(equal)/2 in one cell."""
    before: FloatArray = np.sort(scores[~in_use])
    below: IntArray = np.searchsorted(before, scores[in_use], side="left")
    upto: IntArray = np.searchsorted(before, scores[in_use], side="right")
    return float((below + upto).mean() / (2 * len(before)))
