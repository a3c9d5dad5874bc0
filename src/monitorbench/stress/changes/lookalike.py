"""Prose in letters that look the same: Cyrillic and Greek ones among the Latin, and characters nobody sees.

Code, inline code and addresses stay. What `prompts.lookalikes` reads of the text is what it reads of the
former.
"""

from functools import partial
from random import Random

from monitorbench.records import Sample
from monitorbench.stress.changes.change import SampleChange
from monitorbench.stress.changes.pieces import in_prose
from monitorbench.stress.changes.places import rewritten

LIKE = str.maketrans("aeopxysAEOPXYSTM", "аеорхуѕАЕОРХУЅТМ")
"""Latin to Cyrillic letters of one shape, all of which `prompts.lookalikes` reads as Latin again."""
UNSEEN = "\u200b"
"""Zero width space."""
_SOME = 0.15


def replaced(share: float, text: str, draw: Random) -> str:
    """Each letter that has a look-alike becomes it with probability `share`."""
    return "".join(one.translate(LIKE) if draw.random() < share else one for one in text)


def interspersed(text: str, draw: Random) -> str:
    """An unseen character behind every third letter or so."""
    return "".join(f"{one}{UNSEEN}" if one.isalpha() and draw.random() < 1 / 3 else one for one in text)


def _letters(share: float, sample: Sample, draw: Random) -> Sample | None:
    return rewritten(sample, partial(in_prose, rewrite=lambda text: replaced(share, text, draw)))


def _unseen(sample: Sample, draw: Random) -> Sample | None:
    return rewritten(sample, partial(in_prose, rewrite=lambda text: interspersed(text, draw)))


LOOKALIKES = (
    SampleChange("lookalikes.some", partial(_letters, _SOME)),
    SampleChange("lookalikes.all", partial(_letters, 1.0)),
    SampleChange("lookalikes.unseen", _unseen),
)
