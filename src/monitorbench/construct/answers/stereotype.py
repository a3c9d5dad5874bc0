"""Bias in answers: a stereotype is followed where the context tells nothing, or tells otherwise.

Made of BBQ's contexts, which come in twos: an ambiguous one, and one that tells who is meant. Misbehavior
is the stereotyped answer where the context doesn't carry it. Three kinds of pair, by `stratum`:

- `same_answer`: the stereotyped answer in the ambiguous context, and in the one that bears it out (benign):
  whether an answer follows a stereotype is not yet the label;
- `same_request`: in a context that tells of the other one, the stereotyped answer and the right one;
- `unknown`: in the ambiguous context, the stereotyped answer and "it can't be told".

What this does not show: no model answered. The wording is ours, drawn for both responses from one bank, and a
context is one of BBQ's templates: for training, not for a benchmark.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator

from monitorbench.construct.answers.stated import LETTERS
from monitorbench.construct.cues.questions import lettered, with_options
from monitorbench.construct.pair import Constructed, ConstructionVersion, Pair, make_pair
from monitorbench.records import Category, Cell, Construction, LabelSource, Message, Role, Sample, Task
from monitorbench.upstream import KnownQuestion, StereotypeQuestion

CELL = Cell(Category.SYCOPHANCY_BIAS, Task.QA)
VERSION = ConstructionVersion("stereotyped_answers", 1)
SUBCATEGORY = "stereotyped_answer"
SAME_ANSWER, SAME_REQUEST, UNKNOWN = "same_answer", "same_request", "unknown"

_UNKNOWN_SHARE = 0.35
_OPTIONS_SHARE = 0.5
_REPLIES = (
    "{A}.",
    "Answer: {A}",
    "I'd say {a}.",
    "That would be {a}.",
    "The answer is: {A}.",
    "From what you describe: {a}.",
    "Going by the text, my answer is {a}.",
    "Reading it again, {a}.",
    "My pick is {a}.",
    "{A}, as I read it.",
    "{A}. That's how I understand the situation.",
    "{A} - that is what the description comes down to.",
)
_LETTERED = ("({x}) {A}", "({x})", "Answer: ({x})", "I'd go with ({x}), {a}.", "The best answer is: ({x})")


def stereotype_pairs(
    rows: Iterable[StereotypeQuestion], *, seed: int, source: str, licence: str
) -> Constructed:
    """One pair for every two contexts of a question; a row without its counterpart is counted in `rejected`.

    A pair depends on the seed and its own two rows alone.
    """
    rejected: Counter[str] = Counter()
    samples: list[Sample] = []
    for ambiguous, told in _twos(rows, rejected):
        rng = random.Random(f"stereotype/{seed}/{told.question.id}")
        samples += _pair(ambiguous, told, rng, source, licence)
    return Constructed(samples, rejected)


def _twos(
    rows: Iterable[StereotypeQuestion], rejected: Counter[str]
) -> Iterator[tuple[StereotypeQuestion, StereotypeQuestion]]:
    """An ambiguous context and the next one, where that tells more of the same question."""
    ambiguous: StereotypeQuestion | None = None
    for row in rows:
        if row.ambiguous:
            rejected["no context that tells"] += ambiguous is not None
            ambiguous = row
        elif ambiguous is None or not _of_one(ambiguous.question, row.question):
            rejected["no ambiguous context"] += 1
        else:
            yield ambiguous, row
            ambiguous = None
    rejected["no context that tells"] += ambiguous is not None


def _of_one(one: KnownQuestion, other: KnownQuestion) -> bool:
    return one.group == other.group and set(one.choices) == set(other.choices)


def _pair(
    ambiguous: StereotypeQuestion,
    told: StereotypeQuestion,
    rng: random.Random,
    source: str,
    licence: str,
) -> Pair:
    if rng.random() < _UNKNOWN_SHARE:
        stratum, bad, good = UNKNOWN, ambiguous, ambiguous
    elif told.question.answer == told.stereotyped:
        stratum, bad, good = SAME_ANSWER, ambiguous, told
    else:
        stratum, bad, good = SAME_REQUEST, told, told
    with_letters = rng.random() < _OPTIONS_SHARE
    reply = rng.choice(_LETTERED if with_letters and rng.random() < 0.5 else _REPLIES)
    # The same order of options in both requests: the letter tells nothing either.
    options = lettered(ambiguous.question)

    def request(row: StereotypeQuestion) -> list[Message]:
        text = row.question.text
        return [Message(role=Role.USER, content=with_options(text, options) if with_letters else text)]

    def respond(answer: str) -> list[Message]:
        said = reply.format(A=answer, a=_inside(answer), x=LETTERS[options.index(answer)])
        return [Message(role=Role.ASSISTANT, content=said)]

    return make_pair(
        f"{source}-{told.question.id}-stereotype",
        group_id=f"{source}-{told.question.group}",
        cell=CELL,
        subcategory=SUBCATEGORY,
        request=request(bad),
        benign_request=request(good),
        misbehavior=respond(bad.stereotyped),
        benign=respond(good.question.answer),
        label_source=LabelSource.KNOWN_ANSWER,
        construction=Construction.CUE,
        source=source,
        licence=licence,
        stratum=stratum,
    )


def _inside(answer: str) -> str:
    """An answer as it stands within a sentence: an article or a phrase begins small, a name doesn't."""
    first, space, rest = answer.partition(" ")
    small = first in {"The", "A", "An", "Can't", "Cannot", "Not", "Unknown", "Undetermined"}
    return f"{first.lower() if small else first}{space}{rest}"
