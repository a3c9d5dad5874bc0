"""How a model that is trained computes: attention over packed rows, and adapted linear layers.

Attention goes sample by sample, so that its cost grows with each sample's length, not with the row's.
transformers knows packed rows from their positions and gives SDPA a block-diagonal mask, of which all blocks
are computed. Given `sample_lengths`, each sample is attended to by itself here, and no mask is made. On a CPU
in bfloat16 it goes in blocks of queries as well: PyTorch's fused kernel multiplies there at a seventh of the
rate of its matrix products, so that products, block by block, take a third of its time.

Adapted linear layers touch memory less often than PEFT's; the numbers are the same. PEFT casts the layer's
input to the adapter's float32, scales, adds and casts back, each a pass over all activations and a copy kept
for the backward pass. Here the two small products are added within the matrix products, in the input's
dtype, and what is kept is the input (shared by layers that read the same) and one value a rank. On two cores
that is most of what training costs beside the base's own products.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from peft import LoraConfig
from peft.tuners.lora import Linear
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

BY_SAMPLE = "by_sample"
"""Value for `attn_implementation`; PyTorch's SDPA wherever no lengths are given."""
_BLOCK = 128
"""Queries of a block: fewer make small products, more are masked for nothing."""


def attend_by_sample(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    sample_lengths: Sequence[int] | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Attention function for transformers: [1, heads, T, d] to [1, T, heads, d]; `sample_lengths` sum to T.

    With a mask (a sliding window's) it is SDPA over the whole row, which the mask keeps apart.
    """
    if sample_lengths is None or attention_mask is not None:
        result: tuple[torch.Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, **kwargs
        )
        return result
    if query.device.type == "cpu" and query.dtype is torch.bfloat16 and not kwargs.get("dropout"):
        scaling = kwargs.get("scaling") or query.shape[-1] ** -0.5
        return _Blocks.apply(query, key, value, tuple(sample_lengths), scaling), None
    parts = zip(*(tensor.split(list(sample_lengths), dim=2) for tensor in (query, key, value)), strict=True)
    attended = [sdpa_attention_forward(module, q, k, v, None, **kwargs)[0] for q, k, v in parts]
    return torch.cat(attended, dim=1), None


class _Blocks(torch.autograd.Function):
    """Causal attention of one row, softmax(s Q Kᵀ) V sample by sample, in blocks of queries.

    A block sees the keys up to its end. Weights are not kept for the backward pass but worked out again: what
    is kept is as large as the inputs. Heads that share a key are rows of one product.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        lengths: tuple[int, ...],
        scaling: float,
    ) -> torch.Tensor:
        q_KGTd = (query[0] * scaling).unflatten(0, (len(key[0]), -1))
        k_KTd, v_KTd = key[0].contiguous(), value[0].contiguous()
        ctx.save_for_backward(q_KGTd, k_KTd, v_KTd)
        ctx.lengths, ctx.scaling = lengths, scaling
        out_TKGd = q_KGTd.new_empty(q_KGTd.shape[2], *q_KGTd.shape[:2], value.shape[-1])
        for start, first, end in _blocks(lengths):
            weights_KQS = _weights(q_KGTd[:, :, first:end], k_KTd[:, start:end])
            out_KQd = weights_KQS @ v_KTd[:, start:end]
            out_TKGd[first:end] = out_KQd.unflatten(1, (-1, end - first)).permute(2, 0, 1, 3)
        return out_TKGd.flatten(1, 2)[None]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        q_KGTd, k_KTd, v_KTd = ctx.saved_tensors
        grad_KGTd = grad[0].unflatten(1, q_KGTd.shape[:2]).permute(1, 2, 0, 3)
        grad_q = torch.empty_like(q_KGTd)
        # Keys and values are seen by several blocks, whose parts are summed in float32.
        grad_k, grad_v = (torch.zeros_like(t, dtype=torch.float32) for t in (k_KTd, v_KTd))
        for start, first, end in _blocks(ctx.lengths):
            k, v = k_KTd[:, start:end], v_KTd[:, start:end]
            q_KQd, grad_KQd = (t[:, :, first:end].flatten(1, 2) for t in (q_KGTd, grad_KGTd))
            weights_KQS = _weights(q_KGTd[:, :, first:end], k)
            grad_v[:, start:end] += weights_KQS.mT @ grad_KQd
            grad_weights = grad_KQd @ v.mT
            grad_scores = torch._softmax_backward_data(grad_weights, weights_KQS, -1, grad.dtype)
            grad_q[:, :, first:end] = (grad_scores @ k).unflatten(1, (-1, end - first))
            grad_k[:, start:end] += grad_scores.mT @ q_KQd
        of_query = grad_q.mul_(ctx.scaling).flatten(0, 1)[None]
        return of_query, grad_k.to(grad.dtype)[None], grad_v.to(grad.dtype)[None], None, None


def _blocks(lengths: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield a sample's first position, and the first and the end of each of its blocks of queries."""
    start = 0
    for length in lengths:
        for first in range(start, start + length, _BLOCK):
            yield start, first, min(first + _BLOCK, start + length)
        start += length


def _weights(q_KGQd: torch.Tensor, k_KSd: torch.Tensor) -> torch.Tensor:
    """Weights [K, G·Q, S] of the last Q of S positions; each sees itself and those before it."""
    scores_KGQS = (q_KGQd.flatten(1, 2) @ k_KSd.mT).unflatten(1, q_KGQd.shape[1:3])
    n = q_KGQd.shape[2]
    scores_KGQS[..., -n:] += scores_KGQS.new_full((n, n), -torch.inf).triu_(1)
    return scores_KGQS.softmax(-1).flatten(1, 2)


def _mask(
    *args: Any, attention_mask: torch.Tensor | None = None, local_size: int | None = None, **kwargs: Any
) -> torch.Tensor | None:
    """Return the mask; None for rows without padding, which are causal or divided by `sample_lengths`."""
    if attention_mask is None and local_size is None:
        return None
    return sdpa_mask(*args, attention_mask=attention_mask, local_size=local_size, **kwargs)


AttentionInterface.register(BY_SAMPLE, attend_by_sample)
AttentionMaskInterface.register(BY_SAMPLE, _mask)


def use_fused_layers(config: LoraConfig) -> None:
    """Have PEFT build its adapted linear layers of the class below."""
    config._register_custom_module({nn.Linear: FusedLinear})


class FusedLinear(Linear):
    """PEFT's layer with one adapter and no dropout in another order of operations; else PEFT's own."""

    def forward(self, x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        """[…, in] to […, out]."""
        names = self.active_adapters
        if self.disable_adapters or self.merged or args or kwargs or len(names) != 1:
            return super().forward(x, *args, **kwargs)
        (name,) = names
        dropout = self.lora_dropout[name]
        if self.lora_variant or (self.training and not isinstance(dropout, nn.Identity)):
            return super().forward(x)
        base, a, b = self.get_base_layer(), self.lora_A[name].weight, self.lora_B[name].weight
        return _Adapted.apply(x, base.weight, base.bias, a, b, self.scaling[name])


class _Adapted(torch.autograd.Function):
    """y = x Wᵀ + bias + s (x Aᵀ) Bᵀ (Hu et al. 2021, section 4.1), with W and bias frozen."""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        a: torch.Tensor,
        b: torch.Tensor,
        scaling: float,
    ) -> torch.Tensor:
        x_NI = x.reshape(-1, x.shape[-1])
        low_NR = (x_NI @ a.to(x.dtype).t()).mul_(scaling)
        y_NO = functional.linear(x_NI, weight, bias).addmm_(low_NR, b.to(x.dtype).t())
        ctx.save_for_backward(x, weight, a, b, low_NR)
        ctx.scaling = scaling
        return y_NO.view(*x.shape[:-1], -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, weight, a, b, low_NR = ctx.saved_tensors
        grad_NO = grad.reshape(-1, grad.shape[-1])
        grad_low_NR = (grad_NO @ b.to(grad.dtype)).mul_(ctx.scaling)
        grad_x = None
        if ctx.needs_input_grad[0]:  # the first layer's input is a frozen embedding
            grad_x = (grad_NO @ weight).addmm_(grad_low_NR, a.to(grad.dtype)).view_as(x)
        grad_a = (grad_low_NR.t() @ x.reshape(-1, x.shape[-1])).to(a.dtype)
        grad_b = (grad_NO.t() @ low_NR).to(b.dtype)
        return grad_x, None, None, grad_a, grad_b, None
