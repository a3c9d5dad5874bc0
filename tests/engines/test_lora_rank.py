"""The room that vLLM is asked to make for an adapter, before it has seen it."""

import json

import pytest

from monitorbench.config.base import UserError
from monitorbench.engines.vllm_engine import lora_rank


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
