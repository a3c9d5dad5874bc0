"""Prose in letters that look the same: Cyrillic and Greek ones among the Latin, and characters nobody sees.

Code stays, and so does what is `text.kept`: inline code, quotations, paths, addresses, names of a program.
What `prompts.lookalikes` reads of the text is what it reads of the former.
"""

import unicodedata
from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from monitorbench.records import Sample
from monitorbench.stress.changes.change import SampleChange
from monitorbench.stress.changes.places import rewritten
from monitorbench.stress.changes.text.kept import TextSpan, outside
from monitorbench.stress.changes.text.pieces import in_prose

LIKE = str.maketrans("aeopxysAEOPXYSTM", "аеорхуѕАЕОРХУЅТМ")
"""Latin to Cyrillic letters of one shape, all of which `prompts.lookalikes` reads as Latin again."""
UNSEEN = "\u200b"
"""Zero width space."""
_SOME = 0.15


def replaced(share: float, text: str, draw: Random) -> str:
    """Each letter that has a look-alike becomes it with probability `share`."""
    return "".join(one.translate(LIKE) if draw.random() < share else one for one in text)


def interspersed(text: str, draw: Random) -> str:
    """An unseen character behind every third letter or so, but none between a letter and its marks."""
    return "".join(
        f"{one}{UNSEEN}" if one.isalpha() and not _is_joined(after) and draw.random() < 1 / 3 else one
        for one, after in zip(text, [*text[1:], ""], strict=False)
    )


def _is_joined(character: str) -> bool:
    """Whether it is drawn as one with the letter before it: a mark, a joiner, a part of a Korean syllable."""
    is_korean = "\u1160" <= character <= "\u11ff"
    return bool(character) and (is_korean or unicodedata.category(character) in ("Mn", "Mc", "Me", "Cf"))


def _respelled(of_text: Callable[[str, Random], str], sample: Sample, draw: Random) -> Sample | None:
    def of_prose(text: str, kept: Sequence[TextSpan]) -> str:
        return "".join(of_text(part, draw) if is_free else part for part, is_free in outside(kept, text))

    return rewritten(sample, partial(in_prose, rewrite=of_prose))


LOOKALIKES = (
    SampleChange("lookalikes.some", partial(_respelled, partial(replaced, _SOME)), version=2),
    SampleChange("lookalikes.all", partial(_respelled, partial(replaced, 1.0)), version=2),
    SampleChange("lookalikes.unseen", partial(_respelled, interspersed), version=2),
)
