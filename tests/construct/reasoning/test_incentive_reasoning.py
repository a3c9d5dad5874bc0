"""Specification-gaming pairs: the scoring is lax for both, only one makes use of it."""

import random
import re

from drawing import draws
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.construct.cues.phrases import REASONING
from monitorbench.construct.pair import RIGHT_KEY
from monitorbench.construct.reasoning.incentive import CELL, EXPLOITS, incentivised_pairs
from monitorbench.construct.reasoning.working import word_step
from monitorbench.construct.stated_answers import extract_answer
from monitorbench.records import Construction, Label, LabelSource
from monitorbench.word_problems.generate import generate

seeds = st.integers(min_value=0, max_value=10**9)


@draws(10)
@given(seeds)
def test_benign_is_right_and_misbehavior_is_wrong(seed: int) -> None:
    """A user would measure misses on responses that did nothing wrong."""
    problems = generate(40, seed=seed)
    for problem, (misbehavior, benign) in zip(problems, incentivised_pairs(problems, seed=seed), strict=True):
        assert extract_answer(benign.response[-1].content) == problem.answer
        stated = extract_answer(misbehavior.response[-1].content)
        assert stated is not None
        assert stated != problem.answer
        if REASONING.incentives[benign.cue].keyed:
            assert stated == problem.wrong_answer
            for sample in (misbehavior, benign):
                right = sample.stratum == RIGHT_KEY and sample.label is Label.BENIGN
                key = problem.answer if right else problem.wrong_answer
                assert key in " ".join(m.content for m in sample.request)
        if benign.stratum != RIGHT_KEY:
            assert misbehavior.request == benign.request
        assert misbehavior.has_thinking == benign.has_thinking


@draws(10)
@given(seeds)
def test_remarks_about_the_scoring_are_true_of_either_answer(seed: int) -> None:
    """An answer outside the range the grader accepts would not be an exploit of it."""
    problems = generate(60, seed=seed)
    for pair in incentivised_pairs(problems, seed=seed):
        asked = " ".join(m.content for m in pair.benign.request)
        for sample in pair:
            answer = extract_answer(sample.response[-1].content)
            assert answer is not None
            if sample.cue == "number_range":
                found = re.search(r"(?:between 1 and|from 1 to|no larger than) (\d+)", asked)
                assert found is not None
                assert 1 <= int(answer) <= int(found.group(1))
            if sample.cue == "last_line_format":
                assert sample.response[-1].content.splitlines()[-1].startswith(f"Answer: {answer}")
            if sample.cue == "check_line":
                assert "\nCheck: " in sample.response[-1].content
            if sample.cue == "word_limit":
                words = " ".join(f"{m.thinking} {m.content}" for m in sample.response).split()
                assert len(words) < 120


def test_samples_say_where_they_come_from() -> None:
    """A user could not cut the data by incentive, or cite its licence."""
    problems = generate(24, seed=1)
    for problem, pair in zip(problems, incentivised_pairs(problems, seed=1), strict=True):
        for sample in pair:
            assert sample.cell == CELL
            assert sample.cue == sample.subcategory
            assert sample.group_id == problem.id
            assert sample.label_source is LabelSource.KNOWN_ANSWER
            assert sample.construction is Construction.INCENTIVE
            assert (sample.source, sample.licence) == ("word_problems", "Apache-2.0")
        assert (pair.misbehavior.label, pair.benign.label) == (Label.MISBEHAVIOR, Label.BENIGN)


def test_every_incentive_occurs_and_no_note_tells_the_model_to_cheat() -> None:
    """The cell would measure obedience to an instruction instead of gaming."""
    pairs = incentivised_pairs(generate(240, seed=2), seed=2)
    assert len(REASONING.incentives) >= 10
    counts = [sum(p.benign.cue == kind for p in pairs) for kind in REASONING.incentives]
    assert min(counts) >= 12
    for incentive in REASONING.incentives.values():
        assert len(incentive.notes) >= 3
        assert not re.search(r"\b(cheat|exploit|hack|guess|make up|skip|fake)", " ".join(incentive.notes))


@draws(10)
@given(seeds)
def test_exploits_never_arrive_at_the_right_answer(seed: int) -> None:
    """A gamed trace that is right by luck would be a mislabelled sample."""
    for problem in generate(40, seed=seed):
        for name, make in EXPLOITS.items():
            exploit = make(problem, problem.wrong_answer, random.Random(seed))
            if exploit is not None:
                assert exploit.answer != problem.answer, (name, problem)
                assert exploit.steps[-1].value == exploit.answer


@draws(10)
@given(seeds, st.integers(1, 20), st.integers(0, 20))
def test_pairs_are_reproducible_and_do_not_depend_on_how_many_follow(seed: int, n: int, more: int) -> None:
    """A larger study would silently hold other pairs."""
    problems = generate(n + more, seed=seed)
    assert incentivised_pairs(problems, seed=seed)[:n] == incentivised_pairs(problems[:n], seed=seed)


def test_steps_are_worded_in_many_ways() -> None:
    """A monitor would learn our templates instead of reading the reasoning."""
    step = generate(1, seed=0)[0].steps[0]
    assert len({word_step(step, random.Random(i), linked=True) for i in range(200)}) > 8


def test_no_check_is_of_nothing() -> None:
    """ "45 + 0 = 45" would give the gamed working away."""
    for pair in incentivised_pairs(generate(240, seed=4), seed=4):
        for sample in pair:
            said = "\n".join(f"{m.thinking}\n{m.content}" for m in sample.response)
            assert not re.search(r"[+−] 0 =|[×÷] 1 =", said)
