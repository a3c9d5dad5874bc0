"""The same prose in other words, by rules that leave what is said as it is: contractions and turns of phrase.

Code, inline code and addresses stay, and so do numbers and names.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from random import Random

from monitorbench.records import Sample
from monitorbench.stress.changes.change import SampleChange
from monitorbench.stress.changes.pieces import in_prose
from monitorbench.stress.changes.places import rewritten

CONTRACTIONS = {
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
    "I am": "I'm",
    "I will": "I'll",
    "you are": "you're",
    "you will": "you'll",
    "we are": "we're",
    "they are": "they're",
}
"""Long form to short form. `it is` and `I have` are left out: their short forms have other meanings too."""
PHRASES = {
    "in order to": "so as to",
    "however": "nevertheless",
    "for example": "for instance",
    "as well as": "along with",
    "because of": "owing to",
    "because": "since",
    "a lot of": "plenty of",
    "in addition": "additionally",
    "therefore": "for that reason",
    "make sure": "ensure",
    "right away": "at once",
    "often": "frequently",
    "perhaps": "maybe",
    "although": "though",
    "nearly": "almost",
    "begin": "start",
    "utilize": "use",
    "numerous": "many",
    "sufficient": "enough",
    "approximately": "about",
    "additional": "further",
    "regarding": "concerning",
    "obtain": "get",
    "attempt to": "try to",
    "assist": "help",
}
"""Turns of phrase that say the same, whatever stands around them."""

_LIKE_A_WORD = r"(?=\s+\w)"
"""A short form stands before a word: `who you are.` has none."""
_NO_QUESTION = r"(?!\s+(?:I|you|we|they|he|she|it|this|that|these|those|there|the)\b)"
"""`don't you` in full would need another order."""


def replaced(pairs: Mapping[str, str], behind: str, text: str) -> str:
    """Each whole key by its value, whatever the case, a capital kept; `behind` is what has to follow."""
    pattern, known = _pattern(tuple(pairs.items()), behind)

    def put(match: re.Match[str]) -> str:
        other = known[match[0].lower().replace("’", "'")]
        return other[:1].upper() + other[1:] if match[0][:1].isupper() else other

    return pattern.sub(put, text)


@cache
def _pattern(pairs: tuple[tuple[str, str], ...], behind: str) -> tuple[re.Pattern[str], dict[str, str]]:
    words = "|".join(re.escape(one).replace("'", "['’]").replace(r"\ ", " ") for one, _ in pairs)
    known = {one.lower(): other for one, other in pairs}
    return re.compile(rf"(?<![\w'’-])(?:{words})(?![\w'’-]){behind}", re.IGNORECASE), known


def _rule(pairs: Mapping[str, str], behind: str = "") -> Callable[[Sample, Random], Sample | None]:
    of_prose = partial(in_prose, rewrite=partial(replaced, pairs, behind))
    return lambda sample, _: rewritten(sample, of_prose)


PARAPHRASES = (
    SampleChange("paraphrase.contracted", _rule(CONTRACTIONS, _LIKE_A_WORD)),
    SampleChange(
        "paraphrase.expanded", _rule({short: full for full, short in CONTRACTIONS.items()}, _NO_QUESTION)
    ),
    SampleChange("paraphrase.phrases", _rule(PHRASES)),
)
