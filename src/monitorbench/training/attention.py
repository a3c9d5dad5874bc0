"""Attention over packed rows, sample by sample: cost grows with each sample's length, not with the row's.

transformers knows packed rows from their positions and gives SDPA a block-diagonal mask, of which all blocks
are computed. Given `sample_lengths`, each sample is attended to by itself here, and no mask is made.
"""

from collections.abc import Sequence
from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

BY_SAMPLE = "by_sample"
"""Value for `attn_implementation`; PyTorch's SDPA wherever no lengths are given."""


def attend_by_sample(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    sample_lengths: Sequence[int] | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """As transformers asks for it: [1, heads, T, d] to [1, T, heads, d], `sample_lengths` summing to T.

    With a mask (a sliding window's) it is SDPA over the whole row, which the mask keeps apart.
    """
    if sample_lengths is None or attention_mask is not None:
        whole: tuple[torch.Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, **kwargs
        )
        return whole
    parts = zip(*(part.split(list(sample_lengths), dim=2) for part in (query, key, value)), strict=True)
    attended = [sdpa_attention_forward(module, q, k, v, None, **kwargs)[0] for q, k, v in parts]
    return torch.cat(attended, dim=1), None


def _mask(
    *args: Any, attention_mask: torch.Tensor | None = None, local_size: int | None = None, **kwargs: Any
) -> torch.Tensor | None:
    """None for rows without padding: causal, or told apart by `sample_lengths`."""
    if attention_mask is None and local_size is None:
        return None
    return sdpa_mask(*args, attention_mask=attention_mask, local_size=local_size, **kwargs)


AttentionInterface.register(BY_SAMPLE, attend_by_sample)
AttentionMaskInterface.register(BY_SAMPLE, _mask)
