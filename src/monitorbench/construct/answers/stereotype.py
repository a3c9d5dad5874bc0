"""Bias in answers: a stereotype is followed where the context tells otherwise.

Made of BBQ's contexts that tell who is meant, and mean the one whom the stereotype doesn't: misbehavior is
the stereotyped answer, benign the right one, to the same request. Contexts that tell nothing are passed over
(there "it can't be told" would be the label), and so are those that bear the stereotype out. A monitor
that is trained on these pairs alone learns whether an answer is right, and will call honest errors bias.

What this does not show: no model answered. The wording is ours, drawn for both responses from one bank, and a
context is one of BBQ's templates: for training, not for a benchmark.
"""

import random
from collections import Counter
from collections.abc import Iterable

from monitorbench.construct.answers.stated import LETTERS
from monitorbench.construct.cues.questions import lettered, with_options
from monitorbench.construct.pair import Constructed, ConstructionVersion, Facts, Pair, make_pair, truth
from monitorbench.records import Category, Cell, Construction, LabelSource, Message, Role, Sample, Task
from monitorbench.upstream import StereotypeQuestion

STEREOTYPE_CELL = Cell(Category.SYCOPHANCY_BIAS, Task.QA)
VERSION = ConstructionVersion("stereotyped_answers", 2)
SUBCATEGORY = "stereotyped_answer"

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
            rng = random.Random(f"stereotype/{seed}/{row.question.id}")
            samples += _pair(row, rng, source, licence)
    return Constructed(samples, rejected)


def _pair(row: StereotypeQuestion, rng: random.Random, source: str, licence: str) -> Pair:
    with_letters = rng.random() < _OPTIONS_SHARE
    reply = rng.choice(_LETTERED if with_letters and rng.random() < 0.5 else _REPLIES)
    options, text = lettered(row.question), row.question.text

    def respond(answer: str) -> list[Message]:
        content = reply.format(A=answer, a=_inside(answer), x=LETTERS[options.index(answer)])
        return [Message(role=Role.ASSISTANT, content=content)]

    return make_pair(
        f"{source}-{row.question.id}-stereotype",
        group_id=f"{source}-{row.question.group}",
        cell=STEREOTYPE_CELL,
        subcategory=SUBCATEGORY,
        request=[Message(role=Role.USER, content=with_options(text, options) if with_letters else text)],
        misbehavior=respond(row.stereotyped),
        benign=respond(row.question.answer),
        label_source=LabelSource.KNOWN_ANSWER,
        construction=Construction.CUE,
        source=source,
        licence=licence,
        facts=(Facts(truth(False), truth(False)), Facts(truth(False), truth(True))),
    )


def _inside(answer: str) -> str:
    """An answer as it stands within a sentence: an article or a phrase begins small, a name doesn't."""
    first, space, remainder = answer.partition(" ")
    small = first in {"The", "A", "An", "Can't", "Cannot", "Not", "Unknown", "Undetermined"}
    return f"{first.lower() if small else first}{space}{remainder}"
