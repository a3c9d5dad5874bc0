"""The same prose in other words, by rules that leave what is said as it is: contractions and turns of phrase.

Code stays, and so does what is `text.kept`: inline code, quotations, names. No question is rewritten, whose
order of words depends on its contractions, and nothing in capitals. A rule is here only where its two sides
say the same whatever stands around them, or where what stands around them is part of it.
"""

import re
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from random import Random
from typing import NamedTuple

from monitorbench.records import Sample
from monitorbench.stress.changes.change import SampleChange
from monitorbench.stress.changes.places import rewritten
from monitorbench.stress.changes.text.kept import TextSpan, united
from monitorbench.stress.changes.text.pieces import in_prose

NOT = {
    "do not": "don't",
    "does not": "doesn't",
    "did not": "didn't",
    "is not": "isn't",
    "are not": "aren't",
    "was not": "wasn't",
    "were not": "weren't",
    "has not": "hasn't",
    "have not": "haven't",
    "cannot": "can't",
    "could not": "couldn't",
    "should not": "shouldn't",
    "would not": "wouldn't",
    "will not": "won't",
}
PRONOUNS = {
    "I am": "I'm",
    "I will": "I'll",
    "you are": "you're",
    "you will": "you'll",
    "we are": "we're",
    "they are": "they're",
}
"""Long form to short form. `it is` and `I have` are left out: their short forms have other meanings too."""
IS = {"it is": "it's", "that is": "that's", "there is": "there's"}
"""Only in full, and in front of what `has` can't stand before."""
PHRASES = {
    "in order to": "so as to",
    "however,": "nevertheless,",
    "for example": "for instance",
    "because of": "owing to",
    "due to the fact that": "owing to the fact that",
    "in addition,": "additionally,",
    "moreover,": "furthermore,",
    "therefore,": "for that reason,",
    "as a result,": "consequently,",
    "in general,": "generally,",
    "in other words,": "put differently,",
    "first of all,": "to begin with,",
    "make sure that": "ensure that",
    "right away": "at once",
    "prior to": "before",
    "perhaps": "maybe",
    "although": "though",
    "until": "till",
    "each other": "one another",
    "someone": "somebody",
    "anyone": "anybody",
    "everyone": "everybody",
    "utilize": "use",
    "assist you": "help you",
    "assist with": "help with",
}
"""Turns of phrase that say the same, whatever stands around them."""

_BEFORE_A_WORD = r"(?=[ \n][^\W\d])"
"""A short form stands before a word."""
_NOT_LEFT_OUT = (
    r"(?=[ \n](?!(?:too|either|now|today|and|or|but|is|was|were|if|when|because|so|then|to|as|than)\b)[a-z])"
)
"""Where something is left out behind it there is none: `I know that you are too`."""
_IS = r"(?=[ \n](?:the|a|an|my|your|his|her|our|their|what|why|how|where|in|on|of)\b|[ \n]\d)"
_NOT_TURNED = (
    r"(?![ \n](?:I|you|we|they|he|she|it|this|that|these|those|there|the|a|an|my|your|his|her|our|their"
    r"|any|some|every|all|both|most|many|no)(?:one|body|thing)?\b)"
)
"""`don't you` in full would need another order."""
_ASKING = re.compile(
    r"\b(?:what|who|whom|whose|which|where|when|how|why|whatever|whoever|wherever|however|than|as)\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?][\"'”’)*\]]{0,3}(?=\s|\Z)|\n[ \t]?\n")
_CLOSING = "\"'”’)*] \n\t"
_LOOKED_BACK = 200
"""Characters of a sentence that are looked at before a place."""


class ParaphraseRule(NamedTuple):
    """Words and what is said for them."""

    pairs: Mapping[str, str]
    behind: str = ""
    """An expression of what has to follow."""
    fits: Callable[[str, str], bool] = lambda _, __: True
    """Whether it can be said so, by the sentence before it and what is there."""


def _is_no_question_within(before: str, _: str) -> bool:
    """`What you are is` ends on the pronoun and its verb, and so may all behind such a word."""
    return not _ASKING.search(before)


def _is_in_order(before: str, found: str) -> bool:
    """In front of a sentence only an order has the verb first, and nothing has it behind `why`."""
    words = before.split()
    if not words:
        return found[:3] == "Don"
    return not _ASKING.fullmatch(words[-1])


CONTRACTED = (
    ParaphraseRule(NOT, _BEFORE_A_WORD),
    ParaphraseRule(PRONOUNS, _NOT_LEFT_OUT, _is_no_question_within),
)
EXPANDED = (
    ParaphraseRule({short: full for full, short in NOT.items()}, _NOT_TURNED, _is_in_order),
    ParaphraseRule({short: full for full, short in PRONOUNS.items()}),
    ParaphraseRule({short: full for full, short in IS.items()}, _IS),
)
OTHER_PHRASES = (ParaphraseRule(PHRASES),)


def rephrased(rules: Sequence[ParaphraseRule], text: str, kept: Sequence[TextSpan]) -> str:
    """The text by all rules, with capitals where they were; what is in `kept` stays, and so do questions."""
    sentences = list(_sentences(text))
    asked = [one for one in sentences if text[one.start : one.end].rstrip(_CLOSING).endswith("?")]
    stays = united([*kept, *asked])
    puts = sorted(put for rule in rules for put in _puts(rule, text, stays, sentences))
    parts: list[str] = []
    at = 0
    for span, other in puts:
        if span.start >= at:
            parts += [text[at : span.start], other]
            at = span.end
    return "".join([*parts, text[at:]])


def _puts(
    rule: ParaphraseRule, text: str, stays: Sequence[TextSpan], sentences: Sequence[TextSpan]
) -> Iterator[tuple[TextSpan, str]]:
    pattern, known = _pattern(tuple(rule.pairs.items()), rule.behind)
    for match in pattern.finditer(text):
        span, found = TextSpan(*match.span()), match[0]
        begun = sentences[bisect(sentences, span.start, key=lambda one: one.start) - 1].start
        before = text[max(begun, span.start - _LOOKED_BACK) : span.start]
        if not _touches(stays, span) and rule.fits(before, found):
            other = known[found.lower().replace("’", "'")]
            yield span, other[:1].upper() + other[1:] if found[0].isupper() else other


def _touches(spans: Sequence[TextSpan], span: TextSpan) -> bool:
    """Whether one of the spans has a character of this one."""
    number = bisect(spans, span.end - 1, key=lambda one: one.start)
    return number > 0 and spans[number - 1].end > span.start


def _sentences(text: str) -> Iterator[TextSpan]:
    start = 0
    for end in _SENTENCE_END.finditer(text):
        yield TextSpan(start, end.end())
        start = end.end()
    yield TextSpan(start, len(text))


@cache
def _pattern(pairs: tuple[tuple[str, str], ...], behind: str) -> tuple[re.Pattern[str], dict[str, str]]:
    words = "|".join(_in_any_case(one) for one, _ in pairs)
    known = {one.lower(): other for one, other in pairs}
    return re.compile(rf"(?<![\w'’-])(?:{words})(?![\w'’-]){behind}"), known


def _in_any_case(words: str) -> str:
    """An expression for the words as they stand within a sentence or in front of one."""
    first = words[0] if words[0].isupper() else f"[{words[0]}{words[0].upper()}]"
    return first + re.escape(words[1:]).replace("'", "['’]").replace(r"\ ", " ")


def _of(rules: Sequence[ParaphraseRule]) -> Callable[[Sample, Random], Sample | None]:
    of_prose = partial(in_prose, rewrite=partial(rephrased, rules))
    return lambda sample, _: rewritten(sample, of_prose)


PARAPHRASES = (
    SampleChange("paraphrase.contracted", _of(CONTRACTED), version=2),
    SampleChange("paraphrase.expanded", _of(EXPANDED), version=2),
    SampleChange("paraphrase.phrases", _of(OTHER_PHRASES), version=2),
)
