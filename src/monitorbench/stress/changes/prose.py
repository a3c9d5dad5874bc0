"""Prose in other words or letters: contractions, turns of phrase, look-alikes, unseen characters.

Code stays, and so does what is `kept`: inline code, quotations, paths, addresses, names of a program. In
other words no question is rewritten, whose order of words depends on its contractions, and nothing in
capitals; a rule is here only where its two sides say the same whatever stands around them, or where what
stands around them is part of it. Look-alikes are Cyrillic letters among the Latin: what `prompts.lookalikes`
reads of the text is what it reads of the former.
"""

import re
import unicodedata
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from random import Random
from typing import NamedTuple

from monitorbench.records import Sample
from monitorbench.stress.changes.change import SampleChange, wordings
from monitorbench.stress.changes.pieces import TextSpan, in_prose, outside, united
from monitorbench.stress.changes.places import rewritten

_CONTRACTIONS: dict[str, dict[str, str]] = wordings()["contractions"]
NOT, PRONOUNS, IS = (_CONTRACTIONS[name] for name in ("not", "pronouns", "is"))
"""Long form to short form."""
PHRASES: dict[str, str] = wordings()["phrases"]

_BEFORE_A_WORD = r"(?=[ \n][^\W\d])"
"""A short form stands before a word."""
_NOT_LEFT_OUT = (
    r"(?=[ \n](?!(?:too|either|now|today|and|or|but|is|was|were|if|when|because|so|then|to|as|than)\b)[a-z])"
)
"""A short form stands only where no words are left out behind it, unlike `I know that you are too`."""
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


class _ParaphraseRule(NamedTuple):
    """Words and their replacements."""

    pairs: Mapping[str, str]
    behind: str = ""
    """Regular expression of what has to follow."""
    fits: Callable[[str, str], bool] = lambda _, __: True
    """Whether the replacement fits, by the sentence before it and the words found."""


def _is_no_question_within(before: str, _: str) -> bool:
    """Whether no word like `what` comes before: `what you are is` ends on the pronoun and its verb."""
    return not _ASKING.search(before)


def _is_in_order(before: str, found: str) -> bool:
    """Whether a negation keeps its order in full: only `Don't` begins a sentence, and none follows `why`."""
    words = before.split()
    if not words:
        return found[:3] == "Don"
    return not _ASKING.fullmatch(words[-1])


_CONTRACTED = (
    _ParaphraseRule(NOT, _BEFORE_A_WORD),
    _ParaphraseRule(PRONOUNS, _NOT_LEFT_OUT, _is_no_question_within),
)
_EXPANDED = (
    _ParaphraseRule({short: full for full, short in NOT.items()}, _NOT_TURNED, _is_in_order),
    _ParaphraseRule({short: full for full, short in PRONOUNS.items()}),
    _ParaphraseRule({short: full for full, short in IS.items()}, _IS),
)
_OTHER_PHRASES = (_ParaphraseRule(PHRASES),)


def _rephrased(rules: Sequence[_ParaphraseRule], text: str, kept: Sequence[TextSpan]) -> str:
    """The text by all rules, with capitals where they were; what is in `kept` stays, and so do questions."""
    sentences = list(_sentences(text))
    questions = [
        sentence
        for sentence in sentences
        if text[sentence.start : sentence.end].rstrip(_CLOSING).endswith("?")
    ]
    stays = united([*kept, *questions])
    puts = sorted(put for rule in rules for put in _puts(rule, text, stays, sentences))
    parts: list[str] = []
    position = 0
    for span, replacement in puts:
        if span.start >= position:
            parts += [text[position : span.start], replacement]
            position = span.end
    return "".join([*parts, text[position:]])


def _puts(
    rule: _ParaphraseRule, text: str, stays: Sequence[TextSpan], sentences: Sequence[TextSpan]
) -> Iterator[tuple[TextSpan, str]]:
    pattern, replacements = _pattern(tuple(rule.pairs.items()), rule.behind)
    for match in pattern.finditer(text):
        span, original = TextSpan(*match.span()), match[0]
        begun = sentences[bisect(sentences, span.start, key=lambda sentence: sentence.start) - 1].start
        before = text[max(begun, span.start - _LOOKED_BACK) : span.start]
        if not _touches(stays, span) and rule.fits(before, original):
            replacement = replacements[original.lower().replace("’", "'")]
            yield span, replacement[:1].upper() + replacement[1:] if original[0].isupper() else replacement


def _touches(spans: Sequence[TextSpan], span: TextSpan) -> bool:
    """Whether one of the spans has a character of this one."""
    number = bisect(spans, span.end - 1, key=lambda candidate: candidate.start)
    return number > 0 and spans[number - 1].end > span.start


def _sentences(text: str) -> Iterator[TextSpan]:
    start = 0
    for end in _SENTENCE_END.finditer(text):
        yield TextSpan(start, end.end())
        start = end.end()
    yield TextSpan(start, len(text))


@cache
def _pattern(pairs: tuple[tuple[str, str], ...], behind: str) -> tuple[re.Pattern[str], dict[str, str]]:
    words = "|".join(_in_any_case(phrase) for phrase, _ in pairs)
    replacements = {phrase.lower(): replacement for phrase, replacement in pairs}
    return re.compile(rf"(?<![\w'’-])(?:{words})(?![\w'’-]){behind}"), replacements


def _in_any_case(words: str) -> str:
    """An expression for the words as they stand within a sentence or in front of one."""
    first = words[0] if words[0].isupper() else f"[{words[0]}{words[0].upper()}]"
    return first + re.escape(words[1:]).replace("'", "['’]").replace(r"\ ", " ")


def _of(rules: Sequence[_ParaphraseRule]) -> Callable[[Sample, Random], Sample | None]:
    of_prose = partial(in_prose, rewrite=partial(_rephrased, rules))
    return lambda sample, _: rewritten(sample, of_prose)


PARAPHRASES = (
    SampleChange("paraphrase.contracted", _of(_CONTRACTED), version=2),
    SampleChange("paraphrase.expanded", _of(_EXPANDED), version=2),
    SampleChange("paraphrase.phrases", _of(_OTHER_PHRASES), version=2),
)


_LIKE = str.maketrans("aeopxysAEOPXYSTM", "аеорхуѕАЕОРХУЅТМ")
"""Latin to Cyrillic letters of one shape, all of which `prompts.lookalikes` reads as Latin again."""
UNSEEN = "\u200b"
"""Zero width space."""
_SOME = 0.15


def replaced(share: float, text: str, draw: Random) -> str:
    """Each letter that has a look-alike becomes it with probability `share`."""
    return "".join(letter.translate(_LIKE) if draw.random() < share else letter for letter in text)


def _interspersed(text: str, draw: Random) -> str:
    """An unseen character behind every third letter or so, but none between a letter and its marks."""
    return "".join(
        f"{letter}{UNSEEN}"
        if letter.isalpha() and not _is_joined(after) and draw.random() < 1 / 3
        else letter
        for letter, after in zip(text, [*text[1:], ""], strict=False)
    )


def _is_joined(character: str) -> bool:
    """Whether it is drawn as one with the letter before it: a mark, a joiner, a part of a Korean syllable."""
    is_korean = "\u1160" <= character <= "\u11ff"
    return bool(character) and (is_korean or unicodedata.category(character) in ("Mn", "Mc", "Me", "Cf"))


def _respelled(of_text: Callable[[str, Random], str], sample: Sample, draw: Random) -> Sample | None:
    def of_prose(text: str, kept: Sequence[TextSpan]) -> str:
        return "".join(of_text(piece, draw) if is_free else piece for piece, is_free in outside(kept, text))

    return rewritten(sample, partial(in_prose, rewrite=of_prose))


LOOKALIKES = (
    SampleChange("lookalikes.some", partial(_respelled, partial(replaced, _SOME)), version=2),
    SampleChange("lookalikes.all", partial(_respelled, partial(replaced, 1.0)), version=2),
    SampleChange("lookalikes.unseen", partial(_respelled, _interspersed), version=2),
)
