"""Adapted linear layers that touch memory less often than PEFT's; the numbers are the same.

PEFT casts the layer's input to the adapter's float32, scales, adds and casts back, each a pass over all
activations and a copy kept for the backward pass. Here the two small products are added within the matrix
products, in the input's dtype, and what is kept is the input (shared by layers that read the same) and one
value a rank. On two cores that is most of what training costs beside the base's own products.
"""

from typing import Any

import torch
from peft import LoraConfig
from peft.tuners.lora import Linear
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn import functional


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
