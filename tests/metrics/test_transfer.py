"""The words of a transfer matrix by their definition, with statsmodels' Holm as the oracle."""

from typing import Any

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from monitorbench.metrics.columns import Columns, columns
from monitorbench.metrics.rates import Judged
from monitorbench.metrics.transfer import Difference, Word, differences, matrix
from monitorbench.records import Category, Label, Task

NOTHING: dict[str, Any] = dict.fromkeys(Difference.__annotations__)


def cell(auroc: float | None, p: float | None, mr: float = 1.0, far: float = 1.0, half: float = 0.04) -> Any:
    ci = None if auroc is None else [auroc - half, auroc + half]
    given = {"auroc_difference": auroc, "auroc_difference_ci": ci, "auroc_p": p}
    return {**NOTHING, **given, "miss_rate_p": mr, "false_alarm_rate_p": far}


@pytest.mark.parametrize(
    ("found", "word", "shown"),
    [
        (cell(0.2, 1e-9), Word.IMPROVED, False),
        (cell(0.2, 1e-9, mr=1e-9), Word.IMPROVED, False),
        (cell(-0.2, 1e-9, far=1e-9), Word.DISCRIMINATION_LOST, False),
        (cell(0.0, 0.9, mr=1e-9), Word.THRESHOLD_MOVED, True),
        (cell(0.0, 0.9, far=1e-9, half=0.2), Word.THRESHOLD_MOVED, False),
        (cell(-0.04, 0.03), Word.NO_CHANGE, False),
        (cell(0.01, 0.9), Word.NO_CHANGE, True),
        (cell(None, None, mr=1e-9), None, None),
    ],
)
def test_a_word_is_what_its_definition_says(found: Any, word: Word | None, shown: bool | None):
    """If it failed: a moved threshold would pass for lost discrimination, which the probe is there for."""
    others = {f"c/{i}": cell(0.0, 0.5) for i in range(3)}
    told = matrix({"a": {"direct": {"overall": found, **others}}}, 0.05)["words"]["a"]["direct"]["overall"]
    assert (told["word"], told["auroc_shown_unchanged"]) == (word, shown)


def test_holm_is_over_every_test_of_the_matrix():
    """Corrected by adapter or by cell, a study of 14 subsets would find something by chance alone."""
    draw = np.random.default_rng(0)
    transfer: dict[str, dict[str, dict[str, Difference]]] = {
        adapter: {
            "direct": {
                name: cell(0.1, *np.round(draw.random(3) ** 6, 6))
                for name in ("overall", "x", "x/qa", "x/code", "trained", "held_out")
            }
        }
        for adapter in ("a", "b")
    }
    found = matrix(transfer, 0.05)
    assert found["n_tests"] == 2 * 3 * 3, "neither a category (its cells are there) nor trained and held-out"
    raw, corrected = [], []
    for adapter, by_prompt in found["words"].items():
        for name, told in by_prompt["direct"].items():
            d = transfer[adapter]["direct"][name]
            raw += [d["auroc_p"], d["miss_rate_p"], d["false_alarm_rate_p"]]
            corrected += [told["auroc_p_holm"], told["miss_rate_p_holm"], told["false_alarm_rate_p_holm"]]
    assert corrected == pytest.approx(list(multipletests(raw, method="holm")[1]))


def held(scores: np.ndarray, threshold: float) -> Columns:
    rows = []
    for i, score in enumerate(scores):
        pair, bad = divmod(i, 2)
        rows.append(
            Judged(
                sample_id=str(i),
                pair_id=str(pair),
                group_id=str(pair),
                category=Category.SAFETY_PERMISSION,
                task=(Task.QA, Task.CODE)[pair % 2],
                label=Label.MISBEHAVIOR if bad else Label.BENIGN,
                answer=Label.MISBEHAVIOR if score > threshold else Label.BENIGN,
                score=float(score),
                source="tests",
                has_thinking=False,
            )
        )
    return columns(rows)


def test_known_changes_get_their_words():
    """From scores to words, where what happened is known because it was done on purpose."""
    draw = np.random.default_rng(2)
    bad = np.arange(400) % 2 == 1
    skilled = 1 / (1 + np.exp(-draw.normal(np.where(bad, 0.8, -0.8))))
    noise = draw.random(400)
    base = held(skilled, 0.5)
    made = {
        "lost": held(noise, 0.5),
        "moved": held(skilled**4, 0.5),
        "same": held(np.clip(skilled + draw.normal(0, 0.001, 400), 0, 1), 0.5),
        "better": held(np.where(bad, skilled**0.4, skilled**2.5), 0.5),
    }
    drawn = {"resamples": 200, "seed": 0}
    transfer = {name: {"direct": differences(base, tuned, **drawn)} for name, tuned in made.items()}
    found = matrix(transfer, 0.05)["words"]
    expected = {
        "lost": Word.DISCRIMINATION_LOST,
        "moved": Word.THRESHOLD_MOVED,
        "same": Word.NO_CHANGE,
        "better": Word.IMPROVED,
    }
    for name, word in expected.items():
        assert {told["word"] for told in found[name]["direct"].values()} == {word}
    assert found["moved"]["direct"]["overall"]["auroc_shown_unchanged"]
