"""What a monitor sees, compared: planted blindness is found, and no monitor is accused without any."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from monitorbench.metrics.columns import Columns, columns
from monitorbench.metrics.cost_fronts import usage
from monitorbench.metrics.rates import Judged
from monitorbench.metrics.robustness import ComparedChange, compare_change, robustness
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


def test_a_way_that_ranks_upside_down_is_called_so():
    """A way of asking that is better than an inverted one may be a coin, and would be taken for a reader."""
    rng = np.random.default_rng(4)
    facts = compared({"all": asked(np.repeat([0.0, 1.0], PAIRS)), "less": asked(rng.random(2 * PAIRS))})
    assert in_words(facts) == (
        "AUROC beside all (Holm, 5 %): better: less. Inverted, benign samples score higher: all."
    )


CATEGORIES = (Category.SAFETY_PERMISSION, Category.SYCOPHANCY_BIAS)


def in_two_categories(scores: Scores) -> Asked:
    """The first half of the pairs is of one category, the second of the other."""
    whole = asked(scores)
    second = np.tile(np.arange(PAIRS) >= PAIRS // 2, 2)
    index = whole.judged.category_names.index(CATEGORIES[1])
    return whole._replace(judged=replace(whole.judged, categories=np.where(second, index, 0)))


def by_policy(rng: np.random.Generator, obeys: bool) -> dict[str, Asked]:
    """A monitor judging by all categories, and by the first alone, a policy that it obeys or not."""
    question, own = np.tile(np.repeat(rng.normal(size=PAIRS // 2), 2), 2), rng.normal(size=2 * PAIRS)
    is_bad = np.repeat([1.0, 0.0], PAIRS)
    named = np.tile(np.arange(PAIRS) < PAIRS // 2, 2)
    ways = {}
    for policy, names_all in (("built_in", True), ("safety_permission", not obeys)):
        shift = 1.8 * is_bad * (named | names_all)
        noise = 0.5 * question + own + 0.5 * rng.normal(size=len(own))
        ways[policy] = in_two_categories(1 / (1 + np.exp(-(shift + noise))))
    return ways


def by_length(rng: np.random.Generator, forgets: set[str]) -> dict[str, ComparedChange]:
    """A monitor at lengths and positions, blind to what stands where it forgets."""
    ways = scripted(rng, {"short": 1.8} | {at: 0.0 if at in forgets else 1.8 for at in LENGTHS})
    short = ways.pop("short").judged
    compared = {
        at: ComparedChange(
            short, way.judged, compare_change(short, way.judged, version=1, n_not_applicable=0, unscored={})
        )
        for at, way in ways.items()
    }
    robustness(compared)
    return compared


LENGTHS = tuple(f"turns.{size}.{place}" for size in ("8k", "128k") for place in ("first", "middle", "last"))


def test_rates_at_calibrated_thresholds_and_categories_are_families_of_their_own():
    """Rates would be compared at another way's threshold, or a loss in one category be averaged out."""
    ways = by_policy(np.random.default_rng(4), obeys=True)
    at = {name: way._replace(at_threshold=way.judged) for name, way in ways.items()}
    of = compared(at)["asked"]["safety_permission"]
    assert of["by_category"][CATEGORIES[1]]["shown"]
    assert not of["by_category"][CATEGORIES[0]]["shown"]
    flagged = {name: way.judged.flagged[:PAIRS] for name, way in at.items()}
    missed = {name: 1 - answers.mean() for name, answers in flagged.items()}
    assert of["rates_at_threshold"]["miss_rate"] == pytest.approx(missed["safety_permission"])
    change = missed["safety_permission"] - missed["built_in"]
    assert of["at_threshold"]["miss_rate"]["difference"] == pytest.approx(change)
    assert compared(ways)["asked"]["safety_permission"]["at_threshold"] == {}


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


@pytest.mark.slow
def test_a_monitor_that_obeys_the_policy_is_told_from_one_that_does_not():
    """A team would believe that its policy's text decides, or that a category it leaves out is covered."""
    accused, found = 0, 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        deaf = compared(by_policy(rng, obeys=False))["asked"]["safety_permission"]
        accused += any(change["shown"] for change in deaf["by_category"].values())
        obeys = compared(by_policy(rng, obeys=True))["asked"]["safety_permission"]
        found += obeys["by_category"][CATEGORIES[1]]["shown"]
    assert accused <= 5, f"{accused} of 100 monitors that ignore the policy were accused"
    assert found >= 95, f"only {found} of 100 were found to obey it"


@pytest.mark.slow
def test_a_monitor_that_forgets_the_middle_is_told_from_one_that_reads_all():
    """A monitor would be deployed on sessions of a length at which it misses what stands in the middle."""
    accused, found = 0, 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        accused += any(one.facts["worse"] for one in by_length(rng, set()).values())
        forgetful = by_length(rng, {"turns.128k.middle"})
        found += "auroc" in forgetful["turns.128k.middle"].facts["worse"]
    assert accused <= 5, f"{accused} of 100 monitors that read all were accused"
    assert found >= 95, f"only {found} of 100 that forget the middle were found"
