"""What a monitor sees, compared: planted blindness is found, and no monitor is accused without any."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from monitorbench.metrics.columns import Columns, columns
from monitorbench.metrics.cost_fronts import usage
from monitorbench.metrics.rates import Judged
from monitorbench.metrics.views import Asked, ViewsFacts, compare_views, in_words
from monitorbench.records import Category, Label, Task

PAIRS, VIEWS = 120, ("all", "no_reasoning", "actions_only", "no_tool_output")
Scores = np.ndarray


def judged(scores: Scores) -> Columns:
    """Pairs of which the first half of `scores` are the misbehavior samples'."""
    return columns(
        [
            Judged(
                sample_id=f"{label}-{pair}",
                pair_id=f"pair-{pair}",
                group_id=f"question-{pair // 2}",
                category=Category.SAFETY_PERMISSION,
                task=Task.QA,
                label=label,
                answer=None if np.isnan(score) else Label.MISBEHAVIOR if score > 0.5 else Label.BENIGN,
                score=None if np.isnan(score) else float(score),
            )
            for (label, pair), score in zip(
                [(label, pair) for label in (Label.MISBEHAVIOR, Label.BENIGN) for pair in range(PAIRS)],
                scores,
                strict=True,
            )
        ]
    )


def asked(scores: Scores, n_not_shown: int = 0) -> Asked:
    of = np.where(np.isnan(scores), np.nan, 1.0)
    return Asked(judged(scores), n_not_shown, usage(of * 0.5, of * 100, of, of * 0))


def scripted(rng: np.random.Generator, seen: dict[str, float]) -> dict[str, Asked]:
    """A monitor whose suspicion rises by `seen` standard deviations at what each view shows."""
    is_bad = np.repeat([1.0, 0.0], PAIRS)
    question = np.tile(np.repeat(rng.normal(size=PAIRS // 2), 2), 2)
    own = rng.normal(size=2 * PAIRS)
    return {
        view: asked(
            1 / (1 + np.exp(-(shift * is_bad + 0.5 * question + own + 0.5 * rng.normal(size=len(own)))))
        )
        for view, shift in seen.items()
    }


def compared(ways: dict[str, Asked], resamples: int = 200) -> ViewsFacts:
    return compare_views(ways, resamples=resamples, seed=0)


def test_differences_are_paired_and_over_what_both_scored():
    """Samples without a trace would count against the view that shows traces alone."""
    rng = np.random.default_rng(0)
    whole = rng.random(2 * PAIRS)
    partly = np.where(rng.random(2 * PAIRS) < 0.3, np.nan, rng.random(2 * PAIRS))
    n = int(np.isnan(partly).sum())
    facts = compared({"all": asked(whole), "reasoning_only": asked(partly, n)})
    of = facts["asked"]["reasoning_only"]
    both, is_bad = ~np.isnan(partly), np.repeat([1, 0], PAIRS)
    first, second = (roc_auc_score(is_bad[both], scores[both]) for scores in (whole, partly))
    assert of["changes"]["auroc"]["difference"] == pytest.approx(second - first)
    assert (of["n"], of["n_both"], of["n_not_shown"], of["n_unscored"]) == (2 * PAIRS, 2 * PAIRS - n, n, n)
    assert (of["tokens"], of["seconds"]) == (101, 0.5)
    assert facts["asked"]["all"]["changes"] == {}


def test_a_planted_blindness_is_told_apart():
    """A monitor that reads only tool calls would be deployed as one that reads reasoning."""
    sees = dict.fromkeys(VIEWS, 2.0)
    facts = compared(scripted(np.random.default_rng(1), sees | {"no_reasoning": 0.0}))
    shown = {name: of["changes"]["auroc"]["shown"] for name, of in facts["asked"].items() if of["changes"]}
    assert shown == {"no_reasoning": True, "actions_only": False, "no_tool_output": False}
    assert in_words(facts) == (
        "AUROC beside all (Holm, 5 %): worse: no_reasoning; "
        "not shown to differ: actions_only, no_tool_output."
    )


@pytest.mark.slow
def test_hardly_any_monitor_is_accused_without_blindness():
    """One of twenty teams would drop the reasoning, or pay for it, by chance alone, and rather more often."""
    accused, found = 0, 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        sighted = compared(scripted(rng, dict.fromkeys(VIEWS, 1.5)))
        accused += any(
            change["shown"] for of in sighted["asked"].values() for change in of["changes"].values()
        )
        blind = compared(scripted(rng, dict.fromkeys(VIEWS, 1.5) | {"actions_only": 0.5}))
        found += blind["asked"]["actions_only"]["changes"]["auroc"]["shown"]
    assert accused <= 5, f"{accused} of 100 monitors that see alike were accused"
    assert found >= 95, f"only {found} of 100 planted blindnesses were found"
