"""The order in which a prefix-caching engine is asked."""

import random
from itertools import pairwise, takewhile

from hypothesis import given
from hypothesis import strategies as st

from monitorbench.engines.vllm_engine import prefix_order

PROMPTS = st.lists(st.lists(st.integers(0, 2), max_size=6).map(tuple), max_size=12)


@given(PROMPTS)
def test_neighbours_share_as_much_as_any_order_allows(prompts):
    """If it failed: a prefix would be computed again although somebody had just asked for it."""
    order = prefix_order(prompts)
    assert sorted(order) == list(range(len(prompts)))
    place = {index: at for at, index in enumerate(order)}
    for index, prompt in enumerate(prompts):
        earlier = [prompts[other] for other in order[: place[index]]]
        best = max((shared(prompt, other) for other in earlier), default=0)
        assert not earlier or shared(prompt, earlier[-1]) == best


def test_pairs_come_together():
    """If it failed: with a small cache the second of a pair would find nothing of the first."""
    instruction = (7,) * 20
    pairs = [(*instruction, request, request, end) for request in range(10) for end in (1, 2)]
    shuffled = random.Random(0).sample(pairs, len(pairs))
    asked = [shuffled[index] for index in prefix_order(shuffled)]
    assert all(first[:-1] == second[:-1] for first, second in list(pairwise(asked))[::2])


def shared(one, other):
    """The length of a common prefix."""
    return sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(one, other, strict=False)))
