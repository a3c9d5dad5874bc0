"""Pairs chosen so that no single word, and not the length, tells the labels of a cell apart.

A fix adds more than it takes away, and the same few words come and go with it (`load`, `safe_load`). What
counts is the difference between the two responses of a pair: which words stand in one of them only, and which
is the longer. A pair is passed over where it would tip the balance of one of these further than the limit.
"""

import re
from collections import Counter
from collections.abc import Sequence

from monitorbench.construct.pair import Pair
from monitorbench.corpus.texts import response_text

_WORD = re.compile(r"\w\w+")
_LENGTH = ""
_LENGTH_LIMIT = 10
"""Limit of the length, in limits of a word: the length differs in nearly every pair, a word in few."""


def balanced(pairs: Sequence[Pair], limit: int, most: int) -> list[Pair]:
    """Choose the first pairs that fit, at most `most` of them, in their order.

    Among the chosen pairs, those in which a word stands in the misbehavior only and those in which it stands
    in the benign response only differ in number by at most `limit`. The pairs are searched again until no
    further one fits.
    """
    marks = [_marks(pair) for pair in pairs]
    tipped: Counter[str] = Counter()
    chosen: set[int] = set()
    grew = True
    while grew:
        grew = False
        for index, mark in enumerate(marks):
            if len(chosen) < most and index not in chosen and _fits(tipped, mark, limit):
                for word, side in mark.items():
                    tipped[word] += side
                chosen.add(index)
                grew = True
    return [pairs[index] for index in sorted(chosen)]


def _marks(pair: Pair) -> dict[str, int]:
    """Mark each word of one response only, and the longer one: 1 for misbehavior, -1 for benign."""
    bad, good = response_text(pair.misbehavior), response_text(pair.benign)
    of_bad, of_good = (set(_WORD.findall(text.casefold())) for text in (bad, good))
    marks = dict.fromkeys(of_bad - of_good, 1) | dict.fromkeys(of_good - of_bad, -1)
    if len(bad) != len(good):
        marks[_LENGTH] = 1 if len(bad) > len(good) else -1
    return marks


def _fits(tipped: Counter[str], marks: dict[str, int], limit: int) -> bool:
    return all(
        abs(tipped[word] + side) <= (limit if word != _LENGTH else limit * _LENGTH_LIMIT)
        for word, side in marks.items()
    )
