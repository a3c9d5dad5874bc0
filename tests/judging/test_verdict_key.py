"""A verdict's key: all that decides the verdict, and nothing else."""

from collections.abc import Callable
from typing import Any

import pytest

from monitorbench.engines.protocol import Decoding
from monitorbench.judging.identity import verdict_key

BASE = {
    "sample_id": "s",
    "token_ids": (1, 2, 3),
    "weights": "pypi:m==1",
    "adapter": "",
    "decoding": Decoding(1, (2,), (5, 6)),
    "dtype": "bfloat16",
    "engine": "transformers",
}


@pytest.mark.parametrize(
    "changed",
    [
        {"sample_id": "t"},
        {"token_ids": (1, 2)},
        {"token_ids": (1, 23)},
        {"token_ids": (12, 3)},
        {"token_ids": (3, 2, 1)},
        {"weights": "pypi:m==2"},
        {"adapter": "0a"},
        {"decoding": Decoding(2, (2,), (5, 6))},
        {"decoding": Decoding(1, (3,), (5, 6))},
        {"decoding": Decoding(1, (2,), (5, 7))},
        {"decoding": Decoding(1, (2, 5), (6,))},
        {"dtype": "float32"},
        {"engine": "vllm"},
        {"weights": "pypi:m==1a", "adapter": ""},
        {"weights": "", "adapter": "pypi:m==1"},
    ],
)
def test_each_ingredient_changes_the_key(changed: dict[str, Any]):
    """A verdict of another model under the same key would be taken for this model's."""
    key: Callable[..., str] = verdict_key
    assert key(**BASE | changed) != key(**BASE)


def test_nothing_else_changes_the_key():
    """The same question to the same model has to be found again, however its ids are held."""
    again = BASE | {"token_ids": [1, 2, 3], "decoding": Decoding(1, (2,), (5, 6))}
    assert verdict_key(**again) == verdict_key(**BASE)  # type: ignore[arg-type]
    assert "threshold" not in verdict_key.__annotations__
