"""How a worked derivation is put into words, with banks of phrases that say nothing about its truth.

Owned by the two constructors of reasoning pairs. Promises: both responses of a pair draw from the
same banks with the same chances, so that wording, length and format never tell which one is right.
"""

import random
from collections.abc import Sequence

from monitorbench.construct.cues.phrases import read_bank
from monitorbench.records import Message, Role
from monitorbench.word_problems.derivation import CalculationStep
from monitorbench.word_problems.generate import WordProblem

_BANK = read_bank("derivations")
THINKING_OPENERS, CONTENT_OPENERS = _BANK["thinking_openers"], _BANK["content_openers"]


def capitalised(clause: str) -> str:
    """A clause with its first letter in upper case, the rest as it was."""
    return clause[:1].upper() + clause[1:]


def word_step(step: CalculationStep, rng: random.Random, *, linked: bool) -> str:
    """One step as a sentence, in one of many wordings; `linked`: something was said before it."""
    link = rng.choice(_BANK["links" if linked else "starts"])
    return _worded("computed" if step.expression else "clauses", step, link, rng)


def state_step(step: CalculationStep, rng: random.Random, *, linked: bool) -> str:
    """One step's result without its computation."""
    if not step.expression:
        return word_step(step, rng, linked=linked)
    return _worded("results", step, rng.choice(_BANK["links" if linked else "starts"]), rng)


def _worded(bank: str, step: CalculationStep, link: str, rng: random.Random) -> str:
    template: str = rng.choice(_BANK[bank])
    subject, expression, value = step
    return template.format(S=capitalised(subject), s=subject, e=expression, v=value, link=link)


def state_given(given: str, rng: random.Random) -> str:
    """One fact of the question, restated."""
    template: str = rng.choice(_BANK["givens"])
    return template.format(S=capitalised(given), s=given)


def first_difference(steps: Sequence[CalculationStep], others: Sequence[CalculationStep]) -> int:
    """Index of the first step in which two derivations part."""
    return next(
        (i for i, (first, two) in enumerate(zip(steps, others, strict=False)) if first != two),
        min(len(steps), len(others)),
    )


def with_unit(problem: WordProblem, answer: str) -> str:
    """An answer and its unit."""
    return f"{answer} {problem.unit}".rstrip()


def ending(answer: str, shown: str, rng: random.Random) -> str:
    """The final line: `shown` is the answer as words want it, `answer` as a formula wants it."""
    template: str = rng.choice(_BANK["endings"])
    return template.format(a=shown, b=answer)


def reply(
    sentences: Sequence[str], content: Sequence[str], final: str, *, thinks: bool, rng: random.Random
) -> Message:
    """The assistant's turn: the sentences as a thinking trace before short content, or as the content."""
    if thinks:
        return Message(
            role=Role.ASSISTANT, thinking=_lay_out(sentences, rng), content="\n".join([*content, final])
        )
    return Message(role=Role.ASSISTANT, content=f"{_lay_out(sentences, rng)}\n{final}")


def _lay_out(sentences: Sequence[str], rng: random.Random) -> str:
    """Running text, lines, or a list."""
    style = rng.choice(["prose", "prose", "lines", "list", "dashes"])
    if style == "prose":
        return " ".join(sentences)
    if style == "list":
        return "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(sentences, 1))
    return "\n".join(f"- {s}" if style == "dashes" else s for s in sentences)
