"""GSM8K (Cobbe et al. 2021, arXiv:2110.14168; MIT): word problems, and what was written on them.

The training half comes with its authors' own working, the test half with what four models wrote.

Answers are canonical, as `derivation.show` prints a number. Calculator marks (`<<3*4=12>>`) are stripped:
the published models wrote them, nobody else does.
"""

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from monitorbench.construct.pair import Constructed, ConstructionContext
from monitorbench.construct.reasoning import cued_solutions, incentive_solutions
from monitorbench.records import Task
from monitorbench.sources.declaration import RowConstruction, SourceDeclaration, SubjectQuestions
from monitorbench.sources.read import BadRow, SourceFiles, filled, short_hash
from monitorbench.upstream import KnownQuestion, Solution, SolvedQuestion
from monitorbench.word_problems.derivation import show

_MODELS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")
REFERENCE = "reference"
"""Stand-in for a model's name: the working is the one that the data set's authors published."""
_CALCULATOR = re.compile(r"<<[^<>]*>>")
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
_REFERENCE_ANSWER = re.compile(r"^####[ \t]*(.+)$", re.MULTILINE)
_SOLUTION_ANSWER = re.compile(r"^A:[ \t]*(.+)$", re.MULTILINE)


def load(files: SourceFiles) -> Iterator[KnownQuestion]:
    """The train questions, then the test questions; `topic` is the file.

    Ids are the file and a hash of the question, so that a row passed over renames no other.
    """
    yield from files.jsonl("train.jsonl", lambda row: _reference(row, "train"))
    yield from files.jsonl("test.jsonl", lambda row: _reference(row, "test"))


def load_solved(files: SourceFiles) -> Iterator[SolvedQuestion]:
    """The test questions with every model's solution; the same question has the same group as in `load`."""
    return files.jsonl("example_model_solutions", _solved)


def load_worked(files: SourceFiles) -> Iterator[SolvedQuestion]:
    """The test questions as `load_solved` has them, then the train questions with their reference working."""
    yield from load_solved(files)
    yield from files.jsonl("train.jsonl", _worked)


def _reference(row: Mapping[str, Any], file: str) -> KnownQuestion:
    return _question(row, file, _final(filled(row, "answer"), _REFERENCE_ANSWER, "answer"))


def _solved(row: Mapping[str, Any]) -> SolvedQuestion:
    answer = _final(filled(row, "ground_truth"), _SOLUTION_ANSWER, "ground_truth")
    question = _question(row, "solved", answer)
    return SolvedQuestion(question, tuple(_solution(row, model) for model in _MODELS))


def _worked(row: Mapping[str, Any]) -> SolvedQuestion:
    question = _reference(row, "train")
    working = _CALCULATOR.sub("", filled(row, "answer")).strip()
    return SolvedQuestion(question, (Solution(REFERENCE, working, question.answer, is_correct=True),))


def _question(row: Mapping[str, Any], file: str, answer: str) -> KnownQuestion:
    text = filled(row, "question").strip()
    group = short_hash(" ".join(text.split()))
    return KnownQuestion(id=f"{file}-{group}", group=group, topic=file, text=text, answer=answer)


def _solution(row: Mapping[str, Any], model: str) -> Solution:
    solution = row.get(model)
    if not isinstance(solution, Mapping):
        raise BadRow(f"missing field {model!r}")
    if not isinstance(solution.get("is_correct"), bool):
        raise BadRow(f"field {model!r} has no 'is_correct'")
    written = filled(solution, "solution")
    stated = _SOLUTION_ANSWER.findall(written)
    # A solution that never came to an end states no answer; upstream counts it as wrong.
    answer = (_canonical(stated[-1]) or "") if stated else ""
    return Solution(model, _CALCULATOR.sub("", written).strip(), answer, solution["is_correct"])


def _final(text: str, marker: re.Pattern[str], field: str) -> str:
    stated = marker.findall(text)
    answer = _canonical(stated[-1]) if stated else None
    if answer is None:
        raise BadRow(f"field {field!r} ends with no number")
    return answer


def _canonical(stated: str) -> str | None:
    number = _NUMBER.search(stated)
    return None if number is None else show(Fraction(number.group().replace(",", "")))


def _construct(worked: list[SolvedQuestion], context: ConstructionContext) -> Constructed:
    # Working of one hand holds no wrong answer that a cue could be fitted to.
    solved = [row for row in worked if row.solutions[0].model != REFERENCE]
    cued = cued_solutions.cued_solution_pairs(solved, context)
    gamed = incentive_solutions.incentivised_solutions(worked, context)
    return Constructed(cued.samples + gamed.samples, cued.rejected + gamed.rejected)


SOURCE = SourceDeclaration(
    name="gsm8k",
    version=2,
    read=load_worked,
    construct=RowConstruction(_construct, (cued_solutions.VERSION, incentive_solutions.VERSION)),
    uses_cues=True,
    questions=SubjectQuestions(Task.REASONING, load),
)
