"""Nonsense samples of any number, for scale tests only: no one should train or judge on these.

Random words of a made-up vocabulary, about as long as the real samples. Their source is named
`synthetic`, so that no data card can pass them for real ones.
"""

import random
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import accumulate

from monitorbench.config.base import UserError
from monitorbench.records import Cell, Construction, Label, LabelSource, Message, Role, Sample

SOURCE = "synthetic"
VERSION = 1
"""Raised whenever the same settings give other samples."""

_REQUEST_WORDS = 40
_RESPONSE_WORDS = 110
_SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]


def samples(quotas: Mapping[Cell, int], start: int, count: int, seed: int) -> Iterator[Sample]:
    """Samples number `start` to `start + count`; each depends on its number and the seed alone.

    The cells follow one another, each as often as its quota says, and then again from the first.
    """
    words = _vocabulary(seed)
    cells, ends = list(quotas), list(accumulate(quotas.values()))
    if not ends or not ends[-1]:
        raise UserError("dataset.synthetic_samples: no cell has a quota; give dataset.corpus one")
    for number in range(start, start + count):
        rng = random.Random(f"{SOURCE}/{seed}/{number}")
        cell = cells[bisect_right(ends, number % ends[-1])]
        yield Sample(
            pair_id=f"{SOURCE}-{number}",
            group_id=f"{SOURCE}-{number}",
            category=cell.category,
            task=cell.task,
            subcategory=SOURCE,
            request=(Message(role=Role.USER, content=" ".join(rng.choices(words, k=_REQUEST_WORDS))),),
            response=(Message(role=Role.ASSISTANT, content=" ".join(rng.choices(words, k=_RESPONSE_WORDS))),),
            label=rng.choice(list(Label)),
            label_source=LabelSource.UPSTREAM,
            construction=Construction.LABELLED,
            source=SOURCE,
            licence="Apache-2.0",
        )


def _vocabulary(seed: int) -> list[str]:
    rng = random.Random(f"{SOURCE}/{seed}/words")
    return ["".join(rng.choices(_SYLLABLES, k=rng.randint(1, 4))) for _ in range(20_000)]
