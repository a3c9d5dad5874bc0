"""What vLLM is told of an adapter before it has seen it, and the order in which it is asked."""

import json
import random
from itertools import pairwise, takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.config.base import UserError
from monitorbench.engines.vllm_engine import lora_rank, prefix_order


def adapter(folder, **settings):
    (folder / "adapter_config.json").write_text(json.dumps(settings))
    return folder


@pytest.mark.parametrize(
    ("settings", "rank"),
    [({"r": 8}, 8), ({"r": 12}, 16), ({"r": 512}, 512), ({"r": 4, "rank_pattern": {"q_proj": 40}}, 64)],
)
def test_it_holds_the_largest_rank(tmp_path, settings, rank):
    """If it failed: vLLM would refuse an adapter that it could have judged with."""
    assert lora_rank([adapter(tmp_path, **settings)]) == rank


@pytest.mark.parametrize("rank", [None, 0, -1, 513, "16", 1.5])
def test_what_is_no_rank_is_refused_in_one_line(tmp_path, rank):
    """If it failed: a StopIteration, or a traceback of vLLM's, would be read."""
    with pytest.raises(UserError, match=r"ranks \[.*\]; expected numbers from 1 to 512"):
        lora_rank([adapter(tmp_path, r=rank)])


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
