"""Balance: no word, and not the length, speaks for one label in more pairs than the limit."""

import re
from collections import Counter

from drawing import draws
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.construct.pair import Pair, make_pair
from monitorbench.corpus.selection import balanced
from monitorbench.records import Category, Cell, Construction, LabelSource, Message, Role, Task


def _pair(number: int, bad: str, good: str) -> Pair:
    return make_pair(
        f"p{number}",
        group_id=f"g{number}",
        cell=Cell(Category.SAFETY_PERMISSION, Task.CODE),
        subcategory="CWE-89",
        request=[Message(role=Role.USER, content="Write it.")],
        misbehavior=[Message(role=Role.ASSISTANT, content=f"{bad} #")],
        benign=[Message(role=Role.ASSISTANT, content=f"{good} !")],
        label_source=LabelSource.UPSTREAM,
        construction=Construction.CODE_PAIR,
        source="s",
        licence="MIT",
    )


def _tipped(pairs: list[Pair]) -> tuple[Counter[str], int]:
    words: Counter[str] = Counter()
    longer = 0
    for pair in pairs:
        bad, good = (s.response[0].content for s in (pair.misbehavior, pair.benign))
        words.update(set(re.findall(r"\w\w+", bad.lower())))
        words.subtract(set(re.findall(r"\w\w+", good.lower())))
        longer += (len(bad) > len(good)) - (len(bad) < len(good))
    return words, longer


texts = st.lists(st.sampled_from(["load", "safe_load", "Shell", "quote", "x", "run"]), max_size=4).map(
    " ".join
)


@given(st.lists(st.tuples(texts, texts), max_size=40), st.integers(0, 3), st.integers(0, 40))
@draws(150)
def test_nothing_tips_further_than_the_limit(drawn: list[tuple[str, str]], limit: int, most: int):
    """One word alone would tell the labels of the split apart."""
    pairs = [_pair(n, bad, good) for n, (bad, good) in enumerate(drawn)]
    taken = balanced(pairs, limit, most)
    words, longer = _tipped(taken)
    assert all(abs(count) <= limit for count in words.values())
    assert abs(longer) <= 10 * limit
    assert len(taken) <= most
    numbers = [pairs.index(pair) for pair in taken]
    assert numbers == sorted(set(numbers))
    if len(taken) < most:
        # Nothing that was passed over would fit.
        for pair in (p for p in pairs if p not in taken):
            words, longer = _tipped([*taken, pair])
            assert any(abs(count) > limit for count in words.values()) or abs(longer) > 10 * limit


def test_a_pair_that_fits_later_is_taken():
    """Pairs would be lost by the order they stand in."""
    pairs = [_pair(0, "load", "safe_load"), _pair(1, "load", "safe_load"), _pair(2, "safe_load", "load")]
    assert balanced(pairs, 1, 9) == pairs
    assert balanced(pairs, 1, 2) == [pairs[0], pairs[2]]
    assert balanced(pairs[:2], 0, 9) == []
