"""Numbers over seeds: numpy's mean and SD, and nothing made of a single run.

Cosines of heads and AUROC against chance: by hand, by numpy, by scipy.
"""

import numpy as np
import pytest
from scipy.spatial.distance import cosine
from sklearn.metrics import roc_auc_score

from monitorbench.metrics.columns import columns
from monitorbench.metrics.rates import Judged
from monitorbench.metrics.registry import as_json, from_json
from monitorbench.metrics.table import CHANCE, Place, Table
from monitorbench.metrics.trainings import (
    Found,
    common_place,
    directions,
    spread,
    spreads,
)
from monitorbench.metrics.words import add_chance
from monitorbench.records import Category, Label, Task


def test_mean_sd_and_range():
    """An SD with n in place of n − 1 makes three seeds look steadier than they are."""
    values = [0.6, 0.75, 0.5]
    found = spread([*values, None])
    assert found is not None
    assert found["n"] == 3
    assert found["mean"] == pytest.approx(np.mean(values))
    assert found["sd"] == pytest.approx(np.std(values, ddof=1))
    assert (found["low"], found["high"]) == (0.5, 0.75)
    assert spread([0.4]) == {"n": 1, "mean": 0.4, "sd": None, "low": 0.4, "high": 0.4}
    assert spread([None]) is None


def test_seeds_are_summed_up_by_cell_and_measure():
    """Another training's adapter among the seeds would be taken for luck, and a number of none for 0."""
    numbers = {"auroc": 0.5, "miss_rate": None, "false_alarm_rate": 0.1, "miss_rate_at_far_5": 0.9}
    table = Table()
    for name, auroc in (("m+all_seed0", 0.5), ("m+all_seed1", 0.7), ("m+code", 0.5)):
        table.add(Place(name, "direct"), from_json({**numbers, "auroc": auroc}))
    overall = spreads(table, ["m+all_seed0", "m+all_seed1"])["direct"]["overall"]
    assert overall["auroc"]["mean"] == pytest.approx(0.6)
    assert "miss_rate" not in overall


PLACE = (18, "last")


def heads(*weights: object, auroc: float = 0.8) -> list[dict[tuple[int, str], Found]]:
    return [{PLACE: Found(auroc, np.asarray(one, np.float32))} for one in weights]


def judged(seed: int, skill: float, pairs: int = 40, unscored: int = 0) -> list[Judged]:
    """One cell, whose misbehavior scores higher by `skill`, lower where it is negative."""
    draw = np.random.default_rng(seed)
    found = []
    for number in range(pairs):
        for label in Label:
            sign = 1 if label is Label.MISBEHAVIOR else -1
            score = float(1 / (1 + np.exp(-(sign * skill + draw.normal()))))
            found.append(
                Judged(
                    sample_id=f"{number}/{label}",
                    pair_id=f"{number}",
                    group_id=f"{number}",
                    category=Category.SAFETY_PERMISSION,
                    task=Task.QA,
                    label=label,
                    answer=label,
                    score=score,
                )
            )
    return found


def test_cosines_are_means_over_pairs_of_heads():
    """If it failed: a training's seeds would be averaged before they are compared, and look alike."""
    draw = np.random.default_rng(0)
    a, b = draw.normal(size=(3, 7)), draw.normal(size=(2, 7)) * 100
    facts = directions({"a": heads(*a), "b": heads(*b)}, PLACE)
    expected = np.mean([1 - cosine(x, y) for x in a for y in b])
    assert facts["cosines"][0][1] == pytest.approx(expected, abs=1e-6)
    assert facts["cosines"][1][0] == pytest.approx(expected, abs=1e-6)
    own = np.mean([1 - cosine(a[i], a[j]) for i, j in ((0, 1), (0, 2), (1, 2))])
    assert facts["cosines"][0][0] == pytest.approx(own, abs=1e-6)
    assert (facts["layer"], facts["position"], facts["hidden"], facts["n_seeds"]) == (18, "last", 7, [3, 2])


def test_one_seed_says_nothing_of_itself():
    """If it failed: a diagonal of ones would pass for perfect agreement."""
    facts = directions({"a": heads([1, 0]), "b": heads([0, 2])}, PLACE)
    assert facts["cosines"] == [[None, 0.0], [0.0, None]]


def test_the_place_is_the_best_over_trainings_not_over_heads():
    """If it failed: the training with the most seeds would choose where all are compared."""

    def head(first: float, second: float) -> dict[tuple[int, str], Found]:
        return {(1, "last"): Found(first, np.ones(2)), (2, "mean"): Found(second, np.ones(2))}

    many, one = [head(0.9, 0.8)] * 5, [head(0.5, 0.7)]
    assert common_place({"many": many, "one": one}) == (2, "mean")
    assert common_place({"many": many, "other": heads([1, 2])}) is None


@pytest.mark.parametrize("seeds", [1, 3])
def test_upside_down_is_told_from_chance(seeds: int):
    """If it failed: a head that points the wrong way would pass for one that knows nothing."""
    inverted = [columns(judged(seed, -1.0)) for seed in range(seeds)]
    guessing = [columns(judged(seed + 10, 0.0)) for seed in range(seeds)]
    table = Table()
    add_chance(table, {("inverted", "direct"): inverted, ("guessing", "direct"): guessing})
    found = table.compared(CHANCE)
    one = as_json(found["inverted"]["direct"]["safety_permission/qa"])
    assert one["auroc"] == pytest.approx(
        np.mean([roc_auc_score(seed.is_misbehavior, seed.scores) for seed in inverted])
    )
    assert one["p_holm"] < 0.05
    low, high = one["auroc_ci"] or (0.0, 1.0)
    assert low < one["auroc"] < high < 0.5
    other = as_json(found["guessing"]["direct"]["safety_permission/qa"])
    assert other["p_holm"] > 0.05
    assert other["p_holm"] >= other["p"]
    assert set(found["guessing"]["direct"]) == {"safety_permission/qa"}, "no sum over cells"


def test_one_label_has_no_number():
    """If it failed: a cell without misbehavior would stop the whole matrix."""
    benign = columns([one for one in judged(0, 1.0) if one.label is Label.BENIGN])
    table = Table()
    add_chance(table, {("a", "direct"): [benign]})
    assert not table.compared(CHANCE)
