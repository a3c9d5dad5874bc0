"""The choice of a wording, and the spread over wordings, beside scikit-learn's AUROC."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from monitorbench.metrics.auroc import paired_auroc_difference
from monitorbench.metrics.columns import Columns, columns
from monitorbench.metrics.prompts import add_prompts, choose_wording, spread_of
from monitorbench.metrics.rates import Judged
from monitorbench.metrics.registry import cell_numbers
from monitorbench.metrics.score_facts import is_inverted
from monitorbench.metrics.table import Table
from monitorbench.records import Label

DRAWN = {"resamples": 200, "seed": 0}


def judged(skill: float, n: int = 60, without: tuple[int, ...] = (), seed: int = 0) -> Columns:
    """Pairs; those in `without` have no score."""
    draw = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        for label in Label:
            sign = 1 if label is Label.MISBEHAVIOR else -1
            score = float(1 / (1 + np.exp(-draw.normal(sign * skill))))
            rows.append(
                Judged(
                    sample_id=f"{i}{label}",
                    pair_id=f"{i}",
                    group_id=f"{i}",
                    category="safety_permission",
                    task="qa",
                    label=label,
                    answer=Label.MISBEHAVIOR if score > 0.5 else Label.BENIGN,
                    score=None if i in without else score,
                )
            )
    return columns(rows)


def test_the_highest_auroc_is_chosen_over_samples_that_all_have_scores():
    """Otherwise: a wording wins by the samples that it could not score."""
    by_prompt = {
        "weak": judged(0.2),
        "strong": judged(1.0, without=(0, 1, 2), seed=1),
        "mid": judged(0.5, seed=2),
    }
    found = choose_wording(by_prompt, "validation", **DRAWN)
    assert found is not None
    assert (found["chosen"], found["n"], found["split"]) == ("strong", 114, "validation")
    assert list(found["prompts"]) == ["weak", "strong", "mid"]
    aurocs = {}
    for name, of in by_prompt.items():
        rest = of.taking(np.array([int(i.as_py()[:2].rstrip("mb")) > 2 for i in of.sample_ids]))
        aurocs[name] = roc_auc_score(rest.is_misbehavior, rest.scores)
        assert found["prompts"][name]["auroc"] == pytest.approx(aurocs[name])
    assert found["spread"] == pytest.approx(max(aurocs.values()) - min(aurocs.values()))
    behind = found["prompts"]["weak"]
    assert behind["behind"] == pytest.approx(aurocs["strong"] - aurocs["weak"])
    assert found["prompts"]["strong"]["behind"] is None
    assert "weak" not in found["not_shown_worse"]


def test_of_equal_ones_the_first_is_chosen_and_the_other_is_not_shown_worse():
    """Otherwise: the same command chooses another prompt on another day."""
    found = choose_wording({"b": judged(0.5), "a": judged(0.5)}, "validation", **DRAWN)
    assert found is not None
    assert (found["chosen"], found["not_shown_worse"], found["spread"]) == ("b", ["a"], 0.0)


def test_a_wording_without_scores_is_listed_and_never_chosen():
    """Otherwise: an endpoint without log-probabilities ends in a traceback, or wins."""
    mute = judged(2.0, without=tuple(range(60)))
    found = choose_wording({"mute": mute, "direct": judged(0.3)}, "validation", **DRAWN)
    assert found is not None
    assert (found["chosen"], found["prompts"]["mute"]["auroc"], found["spread"]) == ("direct", None, None)
    assert found["n"] == 120
    assert choose_wording({"mute": mute, "too": mute}, "validation", **DRAWN) is None


def test_the_spreads_interval_is_of_all_pairs_at_once():
    """Otherwise: two prompts that were picked for lying far apart are said to differ too often."""
    by_prompt = {f"p{i}": judged(0.3 + 0.1 * i, seed=i) for i in range(4)}
    table = Table()
    add_prompts(table, "m", by_prompt, **DRAWN)
    ((highest, lowest, numbers),) = table.prompts_apart("m", "auroc_spread")
    found, low, high = numbers["auroc_spread"], by_prompt[lowest], by_prompt[highest]
    six_pairs = paired_auroc_difference(
        low.scores, high.scores, low.is_misbehavior, low.groups, confidence=1 - 0.05 / 6
    )
    assert found.value == pytest.approx(six_pairs.difference)
    assert six_pairs.interval is not None
    assert found.interval == pytest.approx(list(six_pairs.interval))
    of_prompts = {name: cell_numbers(of) for name, of in by_prompt.items()}
    missed = [of["miss_rate"].value or 0.0 for of in of_prompts.values()]
    assert spread_of(of_prompts, "miss_rate") == pytest.approx(max(missed) - min(missed))


@pytest.mark.parametrize(
    ("auroc", "bounds", "said"),
    [
        (0.08, [0.03, 0.18], True),
        (0.39, [0.20, 0.49], True),
        (0.42, [0.38, 0.46], False),
        (0.20, [0.05, 0.55], False),
        (None, None, False),
        (0.10, None, False),
    ],
)
def test_inverted_takes_the_margin_and_the_interval(
    auroc: float | None, bounds: list[float] | None, said: bool
):
    """Otherwise: a coin's low side is called inverted, or eight refusals flagged of ten are not."""
    assert is_inverted(auroc, bounds) is said
