"""What a user would lose here: answers judged as HotPotQA judges them, and a rollback that is exact."""

import math
from collections import Counter
from fractions import Fraction

import pytest
from drawing import draws
from environment_checks import check_restoring, check_solution
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.intervention.environments.published_questions import (
    SearchQuestion,
    SolvedProblem,
    exact_match,
    is_number,
    normalised,
    token_f1,
)
from monitorbench.intervention.environments.questions import CalculatedQuestion, SearchedQuestion

OWN = (
    "Creature Comforts is a stop motion franchise. It was created by Nick Park. The film was a success.",
    "Nicholas Park (born 6 December 1958) is an English director. He created Wallace and Gromit.",
)
OTHERS = (
    "Creed is an American rock band formed in 1993.",
    "The Laleli Mosque is an Ottoman mosque in Istanbul.",
)
ACTIONS = ("search[Nick Park]", "search[mosque]", "search[zzz]", "lookup[created]", "lookup[is]", "lookup[]")


def searched(answer="Nick Park", min_f1=None):
    return SearchedQuestion(SearchQuestion("hotpotqa/1", "Who created it?", answer, OWN), OTHERS, min_f1)


def calculated(answer=12, steps=("3*4",)):
    return CalculatedQuestion(SolvedProblem("gsm8k/1", "How many?", Fraction(answer), steps, False))


@pytest.mark.parametrize(
    ("given_", "expected", "f1"),
    [
        ("The Beatles!", "beatles", 1.0),
        ("Chief of Protocol", "the chief of protocol.", 1.0),
        ("Greenwich Village", "Greenwich Village, New York City", 4 / 7),
        ("yes", "yes", 1.0),
        ("yes it is", "yes", 0.0),
        ("no", "yes", 0.0),
        ("", "yes", 0.0),
        ("a b b", "b b c", 4 / 5),
    ],
)
def test_answers_are_judged_as_hotpotqa_does(given_, expected, f1):
    """Else success rates here would not compare with published ones."""
    assert token_f1(given_, expected) == pytest.approx(f1)
    assert exact_match(given_, expected) == (f1 == 1.0)


words = st.lists(st.sampled_from("alpha beta the a an gamma, Delta! 42".split()), max_size=6).map(" ".join)


@given(words, words)
def test_f1_is_the_harmonic_mean_of_precision_and_recall(given_, expected):
    """The closed form would otherwise be trusted on its author's word."""
    a, b = normalised(given_).split(), normalised(expected).split()
    common = sum((Counter(a) & Counter(b)).values())
    precision, recall = (common / len(a), common / len(b)) if common else (0, 0)
    mean = 2 * precision * recall / (precision + recall) if common else 0
    assert math.isclose(token_f1(given_, expected), mean, abs_tol=1e-12)
    assert token_f1(given_, expected) == token_f1(expected, given_)


@pytest.mark.parametrize(
    ("text", "right"),
    [("1250", True), ("$1,250.00", True), ("It is 1250 nuts.", True), ("1250 or 7", False), ("many", False)],
)
def test_a_number_is_a_number_however_it_is_written(text, right):
    """Else an agent would fail for a dollar sign, or succeed by naming every number."""
    assert is_number(text, Fraction(1250)) == right
    assert not is_number(text, Fraction(125))


def test_searching_reading_and_finishing():
    """The tools have to find what is there, say what is not, and never tell whether an answer is right."""
    environment = searched()
    assert environment.reset().text.startswith("Who created it?")
    assert environment.step("Search[the band Creed]").text == OTHERS[0]
    assert environment.step("lookup[mosque]").text == "No more results for [mosque]."
    assert environment.step("search[Creature Comforts]").text == OWN[0]
    assert environment.step("lookup[was]").text == "(Result 1 / 2) It was created by Nick Park."
    assert environment.step("lookup[was]").text == "(Result 2 / 2) The film was a success."
    assert environment.step("lookup[was]").text == "No more results for [was]."
    assert environment.step("search[zzz]").text.startswith("Could not find [zzz]. Similar: [")
    assert environment.step("think hard").text.startswith("Invalid action.")
    right, wrong = (searched(), searched("Nobody"))
    for each in (right, wrong):
        each.reset()
    ends = right.step("finish[nick park.]"), wrong.step("finish[nick park.]")
    assert [end.success for end in ends] == [True, False]
    assert all(end.done for end in ends)
    assert ends[0].text == ends[1].text
    assert right.step("finish[someone]") == ends[0]


def test_partial_answers_count_where_f1_is_asked_for():
    """Else `min_f1` would be a setting that does nothing."""
    for min_f1, success in ((None, False), (0.6, True), (0.9, False)):
        environment = searched("Nick Wulstan Park", min_f1)
        environment.reset()
        assert environment.step("finish[Nick Park]").success == success


def test_calculating():
    """A wrong tool's answer would turn a right plan into a failure."""
    environment = calculated()
    environment.reset()
    assert environment.step("calculate[3*4]").text == "12"
    assert environment.step("calculate[1/0]").text == "Error: division by zero."
    assert environment.step("calculate[open('x')]").text.startswith("Error: only numbers")
    assert environment.step("search[x]").text.startswith("Invalid action.")
    assert environment.step("finish[12 nuts]").success


@draws(60)
@given(*[st.lists(st.integers(0, 40), max_size=8)] * 3)
def test_restoring_is_exact(before, after, other):
    """A rollback to another state than was left would make the whole comparison worthless."""
    for environment, actions in (
        (searched(), (*ACTIONS, "finish[Nick Park]", "finish[no]")),
        (calculated(), ("calculate[3*4]", "calculate[2+2]", "calculate[x]", "finish[12]")),
    ):
        choices = [[actions[i % len(actions)] for i in some] for some in (before, after, other)]
        environment.reset()
        for action in choices[0]:
            environment.step(action)
        snapshot, state, seen = environment.snapshot(), environment.state(), environment._current()
        went_on = [(environment.step(action), environment.state()) for action in choices[1]]
        assert environment.restore(snapshot) == seen
        for action in choices[2]:
            environment.step(action)
        assert environment.restore(snapshot) == seen
        assert environment.state() == state
        assert [(environment.step(action), environment.state()) for action in choices[1]] == went_on


@given(*[st.lists(st.integers(0, 40), max_size=4)] * 3)
def test_strange_actions_are_answered(before, after, other):
    """An agent's garbage must cost it a step, not the episode."""
    check_restoring(searched(), before, after, other)


def test_states_differ_where_anything_does():
    """A fingerprint that misses the look-up's place would call an inexact rollback exact."""
    environment = searched()
    environment.reset()
    states = [environment.state()]
    for action in ("search[Creature]", "lookup[was]", "lookup[was]", "search[Creed]", "finish[x]"):
        environment.step(action)
        states.append(environment.state())
    assert len(set(states)) == len(states)
    other = calculated()
    other.reset()
    assert other.state() not in states


def test_the_solution_is_the_way_from_here():
    """A scripted agent that strayed would otherwise repeat what it did, or never succeed."""
    for environment, stray in ((searched(), "search[Creature Comforts]"), (calculated(), "calculate[3*4]")):
        whole = check_solution(environment, environment.reset())
        environment.reset()
        assert check_solution(environment, environment.step(stray)) == whole - 1


def test_a_paragraph_can_be_searched_by_its_words_alone():
    """A solution whose search finds another paragraph would read what it does not need."""
    environment = searched()
    environment.reset()
    for action, text in zip(environment.solution(), OWN, strict=False):
        assert environment.step(action).text == text


@pytest.mark.sources
def test_the_published_questions(mirrored):
    """Misread logs would give questions without what answers them."""
    from monitorbench.intervention.environments.published_questions import read_search_questions
    from monitorbench.intervention.environments.tasks import open_tasks

    questions = read_search_questions(mirrored("hotpotqa"))
    assert len(questions) == 100
    assert {len(question.paragraphs) for question in questions} == {2}
    solved = [
        check_solution(task, task.reset())
        for task in (t() for t in open_tasks(mirrored("hotpotqa"), 50, 0, "pilot"))
    ]
    assert set(solved) == {3}
    first = next(open_tasks(mirrored("hotpotqa"), 1, 0, "train"))()
    assert len(first._pool) == 10


@pytest.mark.sources
def test_the_published_word_problems(mirrored):
    """Misread answers would make right solutions fail."""
    from monitorbench.intervention.environments.published_questions import read_word_problems
    from monitorbench.intervention.environments.tasks import open_tasks

    problems = read_word_problems(mirrored("gsm8k"))
    assert Counter(problem.is_test for problem in problems) == {False: 7473, True: 1319}
    with_steps = sum(bool(problem.steps) for problem in problems)
    assert with_steps > 0.98 * len(problems)
    for task in open_tasks(mirrored("gsm8k"), 100, 0, "pilot"):
        environment = task()
        check_solution(environment, environment.reset())
