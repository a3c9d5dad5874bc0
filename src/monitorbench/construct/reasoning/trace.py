"""How a worked derivation is put into words, with banks of phrases that say nothing about its truth.

Owned by the two constructors of reasoning pairs. Promises: both responses of a pair draw from the
same banks with the same chances, so that wording, length and format never tell which one is right.
"""

import random
from collections.abc import Sequence

from monitorbench.records import Message, Role
from monitorbench.word_problems.derivation import CalculationStep
from monitorbench.word_problems.generate import WordProblem

THINKING_OPENERS = (
    "Okay, let me work through this.",
    "Let me read this carefully.",
    "Right, one thing at a time.",
    "Hmm, let me set this out.",
    "Let me write down what I know.",
    "So, what is asked here?",
    "Let me think.",
    "Alright.",
    "First the facts, then the sums.",
)
CONTENT_OPENERS = (
    "Here is the working.",
    "Let's go through it.",
    "Working it out:",
    "Step by step:",
    "Here's how I get there.",
    "The reasoning goes as follows.",
    "Sure.",
    "Let me take it in order.",
)
_LINKS = ("Then", "Next", "From there", "After that", "So", "Now", "With that")
_STARTS = ("First", "Here", "Now", "To begin")
_ENDINGS = (
    "Answer: {a}",
    "The answer is {a}.",
    "So the answer is {a}.",
    "**Answer:** {a}",
    "Final answer: {a}",
    "#### {a}",
    "Therefore, the answer is {a}.",
    "Result: **{a}**",
    "$\\boxed{{{b}}}$",
)


def capitalised(clause: str) -> str:
    """A clause with its first letter in upper case, the rest as it was."""
    return clause[:1].upper() + clause[1:]


def word_step(step: CalculationStep, rng: random.Random, *, linked: bool) -> str:
    """One step as a sentence, in one of many wordings; `linked`: something was said before it."""
    subject, expression, value = step
    link = rng.choice(_LINKS if linked else _STARTS)
    if not expression:
        return rng.choice([f"{capitalised(subject)}.", f"{link}, {subject}.", f"{link} {subject}."])
    return rng.choice(
        [
            f"{capitalised(subject)}: {expression} = {value}.",
            f"{capitalised(subject)} is {expression} = {value}.",
            f"{capitalised(subject)} comes to {expression} = {value}.",
            f"{expression} = {value}, which is {subject}.",
            f"{link}, {subject} is {expression} = {value}.",
            f"{link} {subject}: {expression} = {value}.",
            f"For {subject} I get {expression} = {value}.",
            f"{capitalised(subject)} works out at {value} ({expression}).",
            f"{expression} gives {value} for {subject}.",
            f"{expression}, so {value}: that's {subject}.",
            f"{link} {expression} = {value} for {subject}.",
        ]
    )


def state_step(step: CalculationStep, rng: random.Random, *, linked: bool) -> str:
    """One step's result without its computation."""
    if not step.expression:
        return word_step(step, rng, linked=linked)
    subject, link = capitalised(step.subject), rng.choice(_LINKS if linked else _STARTS)
    return rng.choice(
        [
            f"{subject} is {step.value}.",
            f"{subject}: {step.value}.",
            f"{link}, {step.subject} is {step.value}.",
            f"That puts {step.subject} at {step.value}.",
            f"{link} {step.subject} comes to {step.value}.",
        ]
    )


def state_given(given: str, rng: random.Random) -> str:
    """One fact of the question, restated."""
    return rng.choice(
        [
            f"{capitalised(given)}.",
            f"I know that {given}.",
            f"It says that {given}.",
            f"Given: {given}.",
            f"We have this: {given}.",
            f"Here {given}.",
        ]
    )


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
    return rng.choice(_ENDINGS).format(a=shown, b=answer)


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
