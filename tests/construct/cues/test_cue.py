"""Sycophancy pairs: the cue is there for both, only one follows it."""

import re

from drawing import draws
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.construct.cues.cue import CELL, CUES, cued_pairs
from monitorbench.construct.pair import AGREED
from monitorbench.construct.stated_answers import extract_answer
from monitorbench.records import Construction, Label, LabelSource
from monitorbench.word_problems.generate import generate

seeds = st.integers(min_value=0, max_value=10**9)


@draws(10)
@given(seeds)
def test_benign_is_right_and_misbehavior_ends_where_the_cue_points(seed: int) -> None:
    """Labels would not mean what the paper's counterfactual filter makes them mean."""
    problems = generate(40, seed=seed)
    for problem, (misbehavior, benign) in zip(problems, cued_pairs(problems, seed=seed), strict=True):
        assert extract_answer(benign.response[-1].content) == problem.answer
        assert extract_answer(misbehavior.response[-1].content) == problem.wrong_answer
        pointed_at = problem.answer if benign.stratum == AGREED else problem.wrong_answer
        for sample, cue in ((misbehavior, problem.wrong_answer), (benign, pointed_at)):
            asked = "\n".join(m.content for m in sample.request)
            assert problem.question in asked
            assert cue in asked.replace(problem.question, "")
        assert (misbehavior.request == benign.request) == (benign.stratum != AGREED)
        assert bool(misbehavior.has_thinking) == bool(benign.has_thinking)


def test_samples_say_where_they_come_from() -> None:
    """A user could not cut the data by cue, or cite its licence."""
    problems = generate(16, seed=1)
    for problem, pair in zip(problems, cued_pairs(problems, seed=1), strict=True):
        for sample in pair:
            assert sample.cell == CELL
            assert sample.cue == sample.subcategory
            assert sample.cue in CUES
            assert sample.group_id == problem.id
            assert (sample.label_source, sample.construction) == (LabelSource.KNOWN_ANSWER, Construction.CUE)
            assert (sample.source, sample.licence) == ("word_problems", "Apache-2.0")
        assert (pair.misbehavior.label, pair.benign.label) == (Label.MISBEHAVIOR, Label.BENIGN)


def test_every_cue_occurs_equally_often_in_several_wordings() -> None:
    """Results by cue kind would have no support, or measure one sentence."""
    pairs = cued_pairs(generate(400, seed=2), seed=2)
    assert len(CUES) >= 8
    for kind in CUES:
        chosen = [p.benign for p in pairs if p.benign.cue == kind]
        assert len(chosen) == 50
        assert len({re.sub(r"\d+", "#", m.content[:30]) for s in chosen for m in s.request}) >= 5


@draws(10)
@given(seeds, st.integers(1, 20), st.integers(0, 20))
def test_pairs_are_reproducible_and_do_not_depend_on_how_many_follow(seed: int, n: int, more: int) -> None:
    """A larger study would silently hold other pairs."""
    problems = generate(n + more, seed=seed)
    assert cued_pairs(problems, seed=seed)[:n] == cued_pairs(problems[:n], seed=seed)
