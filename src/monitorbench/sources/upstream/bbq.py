"""BBQ (Parrish et al. 2022, arXiv:2110.08193; CC-BY-4.0): questions where a stereotype suggests an answer.

In the ambiguous context nothing tells who is meant, and the known answer is that it can't be told; in the
disambiguated one the context tells. Both are kept; the id ends with which it is.

Without a subject model, pairs for training are made of the contexts that tell who is meant, and mean the one
whom the stereotype doesn't: misbehavior is the stereotyped answer, benign the right one, to the same request.
Passed over are contexts that tell nothing (there "it can't be told" would be the label), and those that bear
the stereotype out. What this does not show: no model answered. The wording is ours, drawn for both responses
from one bank, and a monitor that is trained on these pairs alone will call honest errors bias.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from monitorbench.construct.cues.phrases import read_bank
from monitorbench.construct.cues.questions import lettered, with_options
from monitorbench.construct.pair import (
    Constructed,
    ConstructionContext,
    ConstructionVersion,
    Facts,
    Pair,
    make_pair,
    truth,
)
from monitorbench.construct.stated_answers import LETTERS
from monitorbench.records import Category, Cell, Construction, LabelSource, Message, Role, Sample, Task
from monitorbench.sources.declaration import RowConstruction, SourceDeclaration, SubjectQuestions
from monitorbench.sources.read import BadRow, SourceFiles, filled
from monitorbench.upstream import KnownQuestion, StereotypeQuestion

CELL = Cell(Category.SYCOPHANCY_BIAS, Task.QA)
STEREOTYPE_VERSION = ConstructionVersion("stereotyped_answers", 2)
SUBCATEGORY = "stereotyped_answer"

_OPTIONS_SHARE = 0.5
_BANK = read_bank("stereotypes")


def stereotype_pairs(rows: Iterable[StereotypeQuestion], context: ConstructionContext) -> Constructed:
    """One pair for every context that tells against the stereotype; the others are counted in `rejected`.

    A pair depends on the seed and its own row alone.
    """
    rejected: Counter[str] = Counter()
    samples: list[Sample] = []
    for row in rows:
        if row.ambiguous:
            rejected["the context tells nothing"] += 1
        elif row.question.answer == row.stereotyped:
            rejected["the context bears the stereotype out"] += 1
        else:
            rng = random.Random(f"stereotype/{context.seed}/{row.question.id}")
            samples += _pair(row, rng, context)
    return Constructed(samples, rejected)


def _pair(row: StereotypeQuestion, rng: random.Random, context: ConstructionContext) -> Pair:
    with_letters = rng.random() < _OPTIONS_SHARE
    reply = rng.choice(_BANK["lettered" if with_letters and rng.random() < 0.5 else "replies"])
    options, text = lettered(row.question), row.question.text

    def respond(answer: str) -> list[Message]:
        content = reply.format(A=answer, a=_inside(answer), x=LETTERS[options.index(answer)])
        return [Message(role=Role.ASSISTANT, content=content)]

    return make_pair(
        f"{context.source}-{row.question.id}-stereotype",
        group_id=f"{context.source}-{row.question.group}",
        cell=CELL,
        subcategory=SUBCATEGORY,
        request=[Message(role=Role.USER, content=with_options(text, options) if with_letters else text)],
        misbehavior=respond(row.stereotyped),
        benign=respond(row.question.answer),
        label_source=LabelSource.KNOWN_ANSWER,
        construction=Construction.CUE,
        source=context.source,
        licence=context.licence,
        facts=(Facts(truth(False), truth(False)), Facts(truth(False), truth(True))),
    )


def _inside(answer: str) -> str:
    """An answer as it stands within a sentence: an article or a phrase begins small, a name doesn't."""
    first, space, remainder = answer.partition(" ")
    small = first in {"The", "A", "An", "Can't", "Cannot", "Not", "Unknown", "Undetermined"}
    return f"{first.lower() if small else first}{space}{remainder}"


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
    construct=RowConstruction(stereotype_pairs, (STEREOTYPE_VERSION,)),
    questions=SubjectQuestions(Task.QA, _disambiguated),
)
