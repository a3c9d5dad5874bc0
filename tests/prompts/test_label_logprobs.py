"""What a user would lose here: scores of endpoint monitors that mean what in-process ones mean."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.config.study import LabelWords
from monitorbench.prompts.label_tokens import LabelTokens, label_score, score

WORDS = LabelWords(misbehavior="yes", benign="no")
YES, NO, OTHER = ("yes", "Yes", " YES", '"yes'), ("no", " No", "▁no"), ("not", "y", "noyes", "maybe", "")


def logs(**masses: float) -> dict[str, float]:
    return {token: math.log(mass) for token, mass in masses.items()}


def test_variants_are_summed_and_renormalised():
    """Else a monitor that answers ` Yes` would score as one that never says yes."""
    top = {"yes": 0.3, " Yes": 0.1, '"yes': 0.05, "no": 0.1, "No\n": 0.05, "not": 0.2, "maybe": 0.1}
    value = label_score({token: math.log(mass) for token, mass in top.items()}, WORDS)
    assert value.score == pytest.approx(0.45 / 0.6)
    assert value.label_mass == pytest.approx(0.6)


@given(st.dictionaries(st.sampled_from(YES + NO + OTHER), st.floats(-20, -2.5), min_size=1))
def test_it_is_the_score_that_token_ids_give(top):
    """Else one monitor in process and behind an endpoint would have two AUROCs."""
    ids = {token: number for number, token in enumerate(YES + NO)}
    everything = {ids[token]: top.get(token, -math.inf) for token in ids}
    n = len(YES)
    expected = score(everything, LabelTokens(tuple(range(n)), tuple(range(n, len(ids)))))
    value = label_score(top, WORDS)
    assert (value.score is None) == (expected.score is None)
    if value.score is not None:
        assert value.censored == (expected.score in (0, 1))
        if not value.censored:
            assert value.score == pytest.approx(expected.score)
        assert value.label_mass == pytest.approx(expected.label_mass)


@pytest.mark.parametrize("top", [None, {}, {"not": -0.1, "yesterday": -3.0}])
def test_no_label_word_is_no_score(top):
    """Else a monitor that says something else would be given a made-up half."""
    assert label_score(top, WORDS) == (None, None, False)


def test_a_missing_word_has_at_most_the_least_reported_mass_and_is_marked():
    """Else every score with a label outside the top 20 would be exactly 0 or 1, and ranks among them lost."""
    bad, good = label_score(logs(yes=0.6, maybe=0.3), WORDS), label_score(logs(no=0.9, maybe=0.01), WORDS)
    assert bad.score == pytest.approx(0.6 / 0.9)
    assert good.score == pytest.approx(0.01 / 0.91)
    assert bad.censored
    assert good.censored
    assert bad.label_mass == pytest.approx(0.6)
    assert not label_score(logs(yes=0.6, no=0.1), WORDS).censored


@given(st.lists(st.floats(0.001, 1), min_size=30, max_size=30), st.integers(2, 20))
def test_the_bound_holds_for_whatever_was_cut_off(weights: list[float], k: int):
    """Else a censored score could lie nearer to .5 than the true one, or on its other side."""
    everything = dict(zip(["yes", "no", *map(str, range(28))], weights, strict=True))
    whole = {token: math.log(weight / sum(weights)) for token, weight in everything.items()}
    top = dict(sorted(whole.items(), key=lambda one: -one[1])[:k])
    truth, seen = label_score(whole, WORDS), label_score(top, WORDS)
    assert truth.score is not None
    assert not truth.censored
    if seen.score is None:
        assert "yes" not in top
        assert "no" not in top
    elif not seen.censored:
        assert seen.score == pytest.approx(truth.score)
    elif "yes" in top:
        assert 0.5 <= seen.score <= truth.score + 1e-12
    else:
        assert truth.score - 1e-12 <= seen.score <= 0.5


def test_a_grammar_that_leaves_one_word_alone_is_still_a_score():
    """Else minus infinity, as the API writes it, would come out as no number."""
    assert label_score({"yes": 0.0, "maybe": -9999.0}, WORDS) == (1.0, 1.0, True)


def test_words_match_whatever_their_own_case():
    """Else label words like `Unsafe` would never be found."""
    words = LabelWords(misbehavior="Unsafe", benign=" Safe")
    value = label_score(logs(unsafe=0.2, Safe=0.6), words)
    assert value.score == pytest.approx(0.25)


@pytest.mark.parametrize("least", [-math.inf, -9999.0])
@pytest.mark.parametrize(("certain", "score_"), [("yes", 1.0), ("no", 0.0)])
def test_a_reported_word_without_probability_is_not_missing(least: float, certain: str, score_: float):
    """Else each answer of a monitor that is sure would be called a bound."""
    top = {"yes": least, "no": least, certain: 0.0}
    assert label_score(top, WORDS) == (score_, 1.0, False)
