"""Features are numbers whatever the text is, and cost no more on a hostile one."""

import math
import time
from collections.abc import Callable
from functools import lru_cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.corpus.classifiers import Looks
from monitorbench.corpus.shortcuts import FAMILIES, SIZES, features, final_answer, in_order
from monitorbench.metrics.marks import SURFACES
from monitorbench.records import Sample

TEXTS = st.text(max_size=300) | st.lists(
    st.sampled_from(
        ["(A)", "B", "answer is", "####", "42", '"', "`", "\n", " ", "I think", "\\boxed{", "}", "é", "1,"]
    ),
    max_size=60,
).map(" ".join)
HOSTILE = [
    " " * 60_000,
    '"' * 60_000,
    "answer " * 9_000,
    "answer: " + "* " * 30_000,
    "1," * 30_000,
    '"a" ' * 15_000,
    "(" * 60_000,
    "a" * 60_000,
    "\n" * 60_000,
    "I think " * 8_000,
    "a b " * 15_000,
    "\\boxed{" * 8_000,
]


@given(asked=TEXTS, said=TEXTS)
def test_features_are_total_and_finite(make_sample: Callable[..., Sample], asked: str, said: str):
    """One odd text of sixty thousand would end a build of the data card."""
    sample = make_sample(asked or " ", said or " ")
    named = [list(features(sample)[family]) for family in FAMILIES]
    assert named == [list(features(make_sample("a", "b"))[family]) for family in FAMILIES]
    for family in FAMILIES:
        assert all(math.isfinite(value) for value in features(sample)[family].values())
    names = [name for family in named for name in family]
    assert len(names) == len(set(names)), "a rule in words names one feature"
    assert set(SIZES) <= set(names)
    assert final_answer(said) != ""


@pytest.mark.parametrize("said", ["The answer is 42.", "I can't help with that.", "It was in 1969."])
def test_only_what_stands_in_the_request_is_an_echo(make_sample: Callable[..., Sample], said: str):
    """Refusals state no number: a check that only sees whether one is stated would be reported as copying."""
    assert not any(features(make_sample("How many are there, 7 or 9?", said))["echo"].values())
    assert any(features(make_sample("I think it is 42, not 7.", "The answer is 42."))["echo"].values())


@given(asked=TEXTS, said=TEXTS)
def test_every_classifier_sees_every_text(make_sample: Callable[..., Sample], asked: str, said: str):
    """A look that fails on an empty or wordless text fails for the whole cell."""
    looks = Looks([make_sample(asked or " ", said or " ")])
    for surface in SURFACES:
        assert len(looks.at(surface)) == 1


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_text_takes_no_longer(make_sample: Callable[..., Sample], text: str):
    """Judged text is hostile: one response must not hold up the audit."""
    start = time.process_time()
    for pair in ((text, text), ("What is 6 times 7?", text), (text, "42")):
        features(make_sample(*pair))
    assert time.process_time() - start < 5


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_what_is_in_order_is_the_longest_common_subsequence(one: list[str], two: list[str]):
    """The bits are quick and easily wrong; the oracle is the definition."""

    @lru_cache(None)
    def longest(i: int, j: int) -> int:
        if i == len(one) or j == len(two):
            return 0
        if one[i] == two[j]:
            return 1 + longest(i + 1, j + 1)
        return max(longest(i + 1, j), longest(i, j + 1))

    assert in_order(one, two) == longest(0, 0)


@pytest.mark.parametrize(
    ("response", "similarity"),
    [
        ("one two three four", 1.0),
        ("one three", 2 * 2 / 6),
        ("five six", 0.0),
        ("four three two one", 2 * 1 / 8),
    ],
)
def test_the_edit_similarity_is_that_of_insertions_and_deletions(
    make_sample: Callable[..., Sample], response: str, similarity: float
):
    """Worked by hand: twice the words in order over all words."""
    found = features(make_sample("one two three four", response))["overlap"]
    assert found["edit similarity of it and the request"] == pytest.approx(similarity)
