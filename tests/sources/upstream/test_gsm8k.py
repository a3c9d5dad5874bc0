"""What a user would lose here: exact answers, and solutions that belong to their question."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.config.base import UserError
from monitorbench.construct.stated_answers import extract_answer
from monitorbench.sources.upstream import gsm8k

MODELS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")
QUESTION = "Ann has 3 bags of 4 nuts. How many nuts?"


def a_solution(text="She has 3 * 4 = <<3*4=12>>12 nuts.\nA: 12", *, is_correct=True):
    return {"is_correct": is_correct, "solution": text}


def a_solved_row(**fields):
    return {
        "question": QUESTION,
        "ground_truth": "3 * 4 = <<3*4=12>>12\nA: 12",
        **{model: a_solution() for model in MODELS},
        **fields,
    }


def load(source_files, *answers):
    rows = [{"question": f"{QUESTION} ({n})", "answer": answer} for n, answer in enumerate(answers)]
    return list(gsm8k.load(source_files("gsm8k", *rows, path="data/train.jsonl")))


def load_solved(source_files, **fields):
    row = a_solved_row(**fields)
    return list(gsm8k.load_solved(source_files("gsm8k", row, path="example_model_solutions.jsonl")))


@pytest.mark.parametrize(
    ("stated", "answer"), [("12", "12"), ("1,250", "1250"), ("-3", "-3"), ("2.50", "2.5"), ("$7.00", "7")]
)
def test_the_answer_is_canonical(source_files, stated, answer):
    """Else a right response would count as wrong for its commas."""
    (record,) = load(source_files, f"12 * 2 = <<12*2=24>>24\n#### {stated}")
    assert record.answer == answer


@given(st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**9), max_value=10**9))
def test_answers_compare_with_extracted_ones(value):
    """Else a response that states the right number would never equal the known answer."""
    assert gsm8k._canonical(f"{value:,}") == extract_answer(f"#### {value:,}")
    assert Fraction(gsm8k._canonical(f"{value:,}")) == Fraction(value)


def test_a_question_with_solutions_is_the_same_group(source_files):
    """Else a question would be in train, and its solutions in the test split."""
    row = {"question": QUESTION, "answer": "#### 12"}
    (asked,) = gsm8k.load(source_files("gsm8k", row, path="data/test.jsonl"))
    (solved,) = load_solved(source_files, question=f" {QUESTION.replace(' nuts?', '  nuts?')}")
    assert asked.group == solved.question.group
    assert asked.id != solved.question.id
    assert asked.id.startswith("test-")
    assert solved.question.answer == "12"


def test_solutions_are_as_published_without_calculator_marks(source_files):
    """Else marks that only these models write would give a solution away."""
    wrong = a_solution("3 + 4 = <<3+4=7>>7\nA: 7,000.50", is_correct=False)
    endless = a_solution("3 + 4 = 7 and 7 and <<7", is_correct=False)
    twice = a_solution("A: 5\nNo.\nA: 12")
    (solved,) = load_solved(
        source_files, **{"6b_verification": wrong, "175b_finetuning": endless, "175b_verification": twice}
    )
    assert tuple(solution.model for solution in solved.solutions) == MODELS
    assert [s.answer for s in solved.solutions] == ["12", "7000.5", "", "12"]
    assert [s.is_correct for s in solved.solutions] == [True, False, False, True]
    assert solved.solutions[0].text == "She has 3 * 4 = 12 nuts.\nA: 12"


def test_the_training_half_comes_with_its_own_working(source_files):
    """Else the cell of gaming would be made of the test half's questions alone."""
    row = {"question": QUESTION, "answer": "3 bags hold 3 * 4 = <<3*4=12>>12 nuts.\n#### 12"}
    files = source_files("gsm8k", row, path="data/train.jsonl")
    (worked,) = gsm8k.load_worked(files)
    (asked,) = gsm8k.load(files)
    (solution,) = worked.solutions
    assert worked.question == asked
    assert (solution.model, solution.answer, solution.is_correct) == (gsm8k.REFERENCE, "12", True)
    assert solution.text == "3 bags hold 3 * 4 = 12 nuts.\n#### 12"


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"question": ""}, "'question' is empty"),
        ({"ground_truth": "twelve"}, "'ground_truth' ends with no number"),
        ({"6b_verification": None}, "missing field '6b_verification'"),
        ({"6b_verification": {"solution": "A: 1", "is_correct": "no"}}, "has no 'is_correct'"),
    ],
)
def test_a_bad_row_is_named(source_files, fields, what):
    """Else a question would be judged by a missing answer."""
    with pytest.raises(UserError, match=what):
        load_solved(source_files, **fields)


@pytest.mark.parametrize("answer", ["12", "#### twelve"])
def test_a_question_without_a_number_is_named(source_files, answer):
    """Else the reasoning before the answer would be read as the answer."""
    with pytest.raises(UserError, match="'answer' ends with no number"):
        load(source_files, answer)


@pytest.mark.sources
def test_the_published_files(mirror_files):
    """Upstream's own mark of right and wrong would contradict the answers read here."""
    files = mirror_files("gsm8k")
    questions = {question.group: question for question in gsm8k.load(files)}
    assert len(questions) == 7473 + 1319
    solved = list(gsm8k.load_solved(files))
    assert len(solved) == 1319
    both = 0
    for question, solutions in solved:
        assert questions[question.group].answer == question.answer
        both += len({solution.is_correct for solution in solutions}) == 2
        for solution in solutions:
            assert ">>" not in solution.text or "<<" not in solution.text
            assert (solution.answer == question.answer) == solution.is_correct
    assert both == 731
    assert len(list(gsm8k.load_worked(files))) == 1319 + 7473
