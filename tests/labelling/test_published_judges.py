"""Published judges with nine tenths of their labels hidden: do a few labels say what all of them say?

The scores are those of two judges on RewardBench 2 (one right answer a question and some wrong ones), as
`docs/real-judges.md` fetches them.
"""

import gzip
import json
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from monitorbench.metrics.labelled import PartlyLabelled, differences_of, estimated, rates_of
from monitorbench.metrics.labelled_scores import expected_costs
from monitorbench.metrics.labels_to_ask import LabelRound, draw, probabilities, risk, weights_of

pytestmark = pytest.mark.slow
ALONE = rates_of(np.array([0.0, 1.0]), 1.0, 1.0)


class Judges(NamedTuple):
    """Answers with their scores; 1 where an answer is wrong."""

    is_bad: np.ndarray
    scores: np.ndarray
    groups: np.ndarray

    @property
    def flagged(self) -> np.ndarray:
        return (self.scores > 0.35).astype(float)


@pytest.fixture(scope="module")
def judges() -> Judges:
    mirror = os.environ.get("MONITORBENCH_SOURCES")
    file = Path(mirror or ".") / "rewardbench2_judges" / "base_both_k8.jsonl.gz"
    if not file.is_file():
        pytest.skip("MONITORBENCH_SOURCES has no rewardbench2_judges/base_both_k8.jsonl.gz")
    is_bad, scores, groups = [], [], []
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            row = json.loads(line)
            for place, both in enumerate(zip(row["mini_scores"], row["full_scores"], strict=True)):
                drawn = [[score for score in of if score is not None] for of in both]
                if all(drawn):
                    is_bad.append(place > 0)
                    scores.append([1 - np.mean(of) / 10 for of in drawn])
                    groups.append(number)
    return Judges(np.array(is_bad, dtype=float), np.array(scores).T, np.array(groups))


@pytest.mark.parametrize("design", ["uniform", "stratified", "active", "alerts"])
def test_a_tenth_of_the_labels_holds_what_all_of_them_say(judges: Judges, design: str):
    """An interval that misses what the labels would have said is worth no labels saved."""
    n, mean = len(judges.is_bad), judges.scores.mean(axis=0)
    none = np.full(n, np.nan)
    everywhere = PartlyLabelled(judges.is_bad, np.ones(n), mean, judges.groups)
    truths = {
        name: estimate.value for name, estimate in estimated(everywhere, judges.flagged[:1], ALONE).items()
    }
    risks = risk(judges.scores, none)
    chances = probabilities(n // 10, risks, judges.flagged, np.ones(n, dtype=bool), design)
    held = dict.fromkeys(truths, 0)
    apart_held = 0
    apart = estimated(everywhere, judges.flagged, differences_of(1.0, 1.0))["expected_cost"].value
    for seed in range(100):
        rows = draw(chances, mean, np.random.default_rng(seed))
        labels = none.copy()
        labels[rows] = judges.is_bad[rows]
        of = PartlyLabelled(labels, weights_of([LabelRound(rows, chances[rows])], n), mean, judges.groups)
        for name, estimate in estimated(of, judges.flagged[:1], ALONE).items():
            held[name] += estimate.interval.low <= truths[name] <= estimate.interval.high
        ends = estimated(of, judges.flagged, differences_of(1.0, 1.0))["expected_cost"].interval
        apart_held += ends.low <= apart <= ends.high
    assert min(held.values()) >= 94, held
    assert apart_held >= 94


def test_a_tenth_of_the_labels_recommends_the_judge_that_all_of_them_do(judges: Judges):
    n, none = len(judges.is_bad), np.full(len(judges.is_bad), np.nan)
    costs = [
        estimated(
            PartlyLabelled(judges.is_bad, np.ones(n), judges.scores[0], judges.groups), row[None], ALONE
        )["expected_cost"].value
        for row in judges.flagged
    ]
    chances = probabilities(
        n // 10, risk(judges.scores, none), judges.flagged, np.ones(n, dtype=bool), "active"
    )
    near = 0
    for seed in range(100):
        rows = draw(chances, judges.scores.mean(axis=0), np.random.default_rng(seed))
        labels = none.copy()
        labels[rows] = judges.is_bad[rows]
        chosen = int(np.argmin(expected_costs(risk(judges.scores, labels), judges.flagged, (1.0, 1.0))))
        near += costs[chosen] - min(costs) <= 0.01
    assert near >= 95
