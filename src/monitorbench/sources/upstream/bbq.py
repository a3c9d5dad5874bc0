"""BBQ (Parrish et al. 2022, arXiv:2110.08193; CC-BY-4.0): questions where a stereotype suggests an answer.

In the ambiguous context nothing tells who is meant, and the known answer is that it can't be told; in the
disambiguated one the context tells. Both are kept; the id ends with which it is. Without a subject
model, their contexts make pairs for training (`construct.answers.stereotype`).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from monitorbench.construct.answers import stereotype
from monitorbench.records import Task
from monitorbench.sources.declaration import SourceDeclaration, SubjectQuestions, constructed_by
from monitorbench.sources.read import BadRow, SourceFiles, filled
from monitorbench.upstream import KnownQuestion, StereotypeQuestion

_POLARITIES = ("neg", "nonneg")
_CONDITIONS = ("ambig", "disambig")


def load(files: SourceFiles) -> Iterator[KnownQuestion]:
    """Every question; all fillings of one template (same category and `question_index`) are one group."""
    return (row.question for row in _read(files))


def _read(files: SourceFiles) -> Iterator[StereotypeQuestion]:
    return files.jsonl("", _question)


def _question(row: Mapping[str, Any]) -> StereotypeQuestion:
    category, condition = filled(row, "category"), filled(row, "context_condition")
    if condition not in _CONDITIONS:
        raise BadRow(f"field 'context_condition' is none of {', '.join(_CONDITIONS)}")
    choices = tuple(filled(row, f"ans{index}") for index in range(3))
    label, number = row.get("label"), row.get("example_id")
    if label not in (0, 1, 2):
        raise BadRow("field 'label' is none of 0, 1, 2")
    if not isinstance(number, int):
        raise BadRow("field 'example_id' is not a whole number")
    stereotyped, opposite, unknown = _by_stereotype(row)
    question = KnownQuestion(
        id=f"{category}-{number}-{condition}",
        group=f"{category}-{filled(row, 'question_index')}",
        topic=category,
        text=f"{filled(row, 'context').strip()} {filled(row, 'question').strip()}",
        answer=choices[label],
        choices=choices,
        wrong=tuple(choices[index] for index in (stereotyped, opposite, unknown) if index != label),
    )
    return StereotypeQuestion(question, choices[stereotyped], condition == "ambig")


def _by_stereotype(row: Mapping[str, Any]) -> tuple[int, int, int]:
    """Index of the answer that agrees with the stereotype, of the one against it, of "can't be known".

    A stereotype says something bad of a group. So the answer that agrees with it is the group where the
    question asks who did the bad thing (`neg`), and the other one where it asks who did not (`nonneg`).
    """
    polarity = filled(row, "question_polarity")
    if polarity not in _POLARITIES:
        raise BadRow(f"field 'question_polarity' is none of {', '.join(_POLARITIES)}")
    try:
        infos = [[str(value) for value in row["answer_info"][f"ans{index}"]] for index in range(3)]
        groups = {str(name).casefold() for name in row["additional_metadata"]["stereotyped_groups"]}
    except (KeyError, TypeError) as error:
        raise BadRow("no 'answer_info' or 'stereotyped_groups' as BBQ has them") from error
    unknown = [index for index, info in enumerate(infos) if "unknown" in info[1:]]
    stereotyped = [
        index
        for index, info in enumerate(infos)
        if index not in unknown and groups & {value.casefold() for value in info}
    ]
    if len(unknown) != 1 or len(stereotyped) != 1:
        raise BadRow("the answers don't show which one the stereotype is about")
    (opposite,) = {0, 1, 2} - {*unknown, *stereotyped}
    return (
        (stereotyped[0], opposite, unknown[0])
        if polarity == "neg"
        else (opposite, stereotyped[0], unknown[0])
    )


def _disambiguated(files: SourceFiles) -> Iterator[KnownQuestion]:
    # In the ambiguous half nothing but the cue tells who is meant.
    return (question for question in load(files) if question.id.endswith("-disambig"))


SOURCE = SourceDeclaration(
    name="bbq",
    version=2,
    read=_read,
    construct=constructed_by(stereotype.stereotype_pairs, stereotype.VERSION),
    questions=SubjectQuestions(Task.QA, _disambiguated),
)
