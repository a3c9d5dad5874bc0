"""Agreement beyond chance against outside oracles; who is kept, and what an annotator can guess."""

import math
import statistics
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from drawing import draws
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import cohens_kappa as statsmodels_kappa

from monitorbench.annotation.labels import (
    KEPT,
    AnnotatorChoice,
    ItemStatus,
    UnlabelledSample,
    agreement,
    blind_order,
    candidate,
    cohens_kappa,
    draw,
    item_id,
    settle,
)
from monitorbench.records import Construction, Label, LabelSource, Sample, Split

choices = st.sampled_from(list(AnnotatorChoice))
two_readers = st.lists(st.tuples(choices, choices), min_size=1, max_size=60)


@draws(60)
@given(two_readers)
def test_kappa_is_scikit_learns(rows: list[tuple[AnnotatorChoice, AnnotatorChoice]]) -> None:
    """A κ that is off would call a corpus reliable that is not."""
    first, second = zip(*rows, strict=True)
    ours = cohens_kappa(first, second)
    if len(set(first) | set(second)) == 1:
        assert ours is None  # p_e is 1: scikit-learn warns and says nan
        return
    assert ours == pytest.approx(cohen_kappa_score(first, second))


def test_the_interval_agrees_with_the_asymptotic_one() -> None:
    """An interval that is too narrow makes chance agreement look like a finding."""
    rng = np.random.default_rng(0)
    first = [AnnotatorChoice.MISBEHAVIOR if x < 0.5 else AnnotatorChoice.BENIGN for x in rng.random(600)]
    flip = {
        AnnotatorChoice.MISBEHAVIOR: AnnotatorChoice.BENIGN,
        AnnotatorChoice.BENIGN: AnnotatorChoice.MISBEHAVIOR,
    }
    second = [flip[one] if x < 0.15 else one for one, x in zip(first, rng.random(600), strict=True)]
    table = np.zeros((3, 3))
    for one, other in zip(first, second, strict=True):
        table[list(AnnotatorChoice).index(one), list(AnnotatorChoice).index(other)] += 1
    found = agreement({"a": first, "b": second}, [f"g{i}" for i in range(600)], resamples=2000, seed=0)
    assert found["kappa_ci"] is not None
    expected = statsmodels_kappa(table[:2, :2])
    assert found["kappa"] == pytest.approx(expected.kappa)
    assert found["kappa_ci"] == pytest.approx([expected.kappa_low, expected.kappa_upp], abs=0.01)


def test_items_of_one_question_are_no_independent_evidence() -> None:
    """Ten copies of each item must not shrink the interval to a third."""
    first = [AnnotatorChoice.MISBEHAVIOR, AnnotatorChoice.BENIGN] * 30
    second = [AnnotatorChoice.BENIGN if i % 7 == 0 else one for i, one in enumerate(first)]
    once = agreement({"a": first, "b": second}, [f"g{i}" for i in range(60)], resamples=1000, seed=0)
    copies = {"a": first * 10, "b": second * 10}
    tenfold = agreement(copies, [f"g{i}" for i in range(60)] * 10, resamples=1000, seed=0)
    assert tenfold["kappa"] == pytest.approx(once["kappa"])
    assert tenfold["kappa_ci"] == pytest.approx(once["kappa_ci"])


def test_more_than_two_annotators_are_compared_pairwise() -> None:
    """One figure for three readers has to be said how: it is the mean of what each pair gets."""
    rng = np.random.default_rng(3)
    labels = {
        name: [list(AnnotatorChoice)[i] for i in rng.choice(3, 90, p=[0.6, 0.3, 0.1])] for name in "abc"
    }
    found = agreement(labels, [f"g{i}" for i in range(90)], resamples=200, seed=0)
    expected = {pair: cohen_kappa_score(labels[pair[0]], labels[pair[2]]) for pair in ("a/b", "a/c", "b/c")}
    assert {pair: one["kappa"] for pair, one in found["pairs"].items()} == pytest.approx(expected)
    assert found["kappa"] == pytest.approx(statistics.mean(expected.values()))
    assert found["kappa_ci"] is not None
    assert found["kappa_ci"][0] < found["kappa_ci"][1]


@given(st.lists(st.tuples(choices, choices, choices), min_size=1, max_size=30))
def test_every_item_is_counted_once(rows: list[tuple[AnnotatorChoice, ...]]) -> None:
    """An item that is in no count has silently left the corpus."""
    labels = dict(zip("abc", zip(*rows, strict=True), strict=True))
    found = agreement(labels, ["g"] * len(rows), resamples=100, seed=0)
    assert found["n_agreed"] + found["n_disagreed"] + found["n_unsure"] == found["n_items"] == len(rows)
    confusion = found["pairs"]["a/c"]["confusion"]
    assert Counter((a, c) for a, _, c in rows) == {
        (a, c): n for a, inner in confusion.items() for c, n in inner.items() if n
    }
    raw = statistics.mean(a == b for a, b, _ in rows)
    assert math.isclose(found["pairs"]["a/b"]["raw_agreement"], raw)
    assert found["kappa_ci"] is None, "one group shows no spread"


def test_only_agreement_is_kept_and_the_third_reader_decides_the_rest() -> None:
    """A label two people dispute, or one of them doubts, is no ground truth."""
    m, b, u = AnnotatorChoice
    assert settle([m, m]) == (ItemStatus.AGREED, Label.MISBEHAVIOR)
    assert settle([b, b, b]) == (ItemStatus.AGREED, Label.BENIGN)
    assert settle([m, b]) == (ItemStatus.DISAGREED, None)
    assert settle([b, b, m]) == (ItemStatus.DISAGREED, None), "a majority is no agreement"
    assert settle([m, u]) == settle([u, u]) == (ItemStatus.UNSURE, None)
    assert settle([m, b], b) == (ItemStatus.ADJUDICATED, Label.BENIGN)
    assert settle([u, u], m) == (ItemStatus.ADJUDICATED, Label.MISBEHAVIOR)
    assert settle([m, b], u) == (ItemStatus.DISAGREED, None), "unsure settles nothing"
    assert {ItemStatus.AGREED, ItemStatus.ADJUDICATED} == set(KEPT)


@pytest.fixture(scope="module")
def pairs(make_sample: Callable[..., Sample]) -> list[UnlabelledSample]:
    """Forty pairs about forty questions."""
    return [
        candidate(
            make_sample(f"question {i}", f"{label} {i}", pair_id=f"p{i}", group_id=f"g{i}", label=label)
        )
        for i in range(40)
        for label in Label
    ]


def test_a_candidate_becomes_the_same_sample_with_the_annotators_label(
    make_sample: Callable[..., Sample],
) -> None:
    """Verdicts and overlap removal find a sample by its id; its origin has to say annotators."""
    before = make_sample(cue="praise", split=Split.TEST, label=Label.BENIGN)
    after = candidate(before).labelled(Label.MISBEHAVIOR, Split.TEST)
    changed = {"label", "label_source", "construction"}
    assert after.id == before.id
    assert after.model_dump(exclude=changed) == before.model_dump(exclude=changed)
    assert (after.label, after.label_source, after.construction) == (
        Label.MISBEHAVIOR,
        LabelSource.ANNOTATORS,
        Construction.ANNOTATION,
    )


def test_orders_differ_and_twins_stand_apart(pairs: list[UnlabelledSample]) -> None:
    """Annotators who see a response beside its better twin judge the difference, not the response."""
    items = {item_id(one, 0): one for one in pairs}
    groups = {item: sample.group_id for item, sample in items.items()}
    orders = [blind_order(groups, reader, 0) for reader in ("a", "b")]
    assert orders[0] != orders[1]
    for order in orders:
        assert sorted(order) == sorted(items)
        halves = [{items[item].pair_id for item in half} for half in (order[:40], order[40:])]
        assert halves[0] == halves[1], "both versions in one half"
        first = [items[item].prior for item in order[:40]]
        assert 8 <= first.count(Label.BENIGN) <= 32, "the first half gives the labels away"
    again = blind_order(dict(reversed(groups.items())), "a", 0)
    assert again == orders[0], "the order depends on how the samples came in"
    assert blind_order(groups, "a", 1) != orders[0]


def test_item_names_are_opaque(pairs: list[UnlabelledSample], make_sample: Callable[..., Sample]) -> None:
    """A name that depends on the label is a hint; one that a spreadsheet reads as a number is lost."""
    names = {item_id(one, 0) for one in pairs}
    assert len(names) == len(pairs)
    assert all(name.startswith("item-") for name in names)
    assert names.isdisjoint(item_id(one, 1) for one in pairs), "rows of another batch would be accepted"
    either = {item_id(candidate(make_sample(label=label)), 0) for label in Label}
    assert len(either) == 1


def test_a_draw_takes_whole_pairs_and_grows(pairs: list[UnlabelledSample]) -> None:
    """More annotation money has to add to what was labelled, and half pairs can't be benchmarked."""
    drawn = {n: draw(pairs, n, seed=0) for n in (10, 20, 30)}
    assert [len(drawn[n]) for n in drawn] == [10, 20, 30]
    assert {one.id for one in drawn[10]} < {one.id for one in drawn[20]} < {one.id for one in drawn[30]}
    assert set(Counter(one.pair_id for one in drawn[10]).values()) == {2}
    assert draw(pairs[::-1], 10, seed=0) == drawn[10]
    assert draw(pairs, 10, seed=1) != drawn[10]
    assert len(draw(pairs, None, seed=0)) == len(pairs)
