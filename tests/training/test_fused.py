"""The layers that train: adapted ones against PEFT's own, attention against PyTorch's, gradients included."""

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

from monitorbench.training.layers import FusedLinear, _Adapted, attend_by_sample, use_fused_layers

IDS = torch.arange(5, 85).reshape(2, 40)
SHAPE = {"d": 32, "q": 32, "kv": 16, "f": 64, "layers": 2}
"""Of the tiny model."""


def adapted(weights, fused, dtype=torch.float32, dropout=0.0):
    base = AutoModelForCausalLM.from_pretrained(weights, dtype=dtype, attn_implementation="sdpa")
    config = LoraConfig(r=4, lora_alpha=8, lora_dropout=dropout, target_modules="all-linear")
    if fused:
        use_fused_layers(config)
    model = get_peft_model(base, config).train()
    draw = torch.Generator().manual_seed(0)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:  # zero at the start, and then nothing would reach A
            parameter.data.normal_(std=0.2, generator=draw)
        if "lora_A" in name:
            parameter.data.normal_(std=0.2, generator=draw)
    return model


def outcome(model):
    """Logits, and the gradients of their mean square."""
    logits = model(input_ids=IDS, use_cache=False).logits
    logits.float().square().mean().backward()
    named = model.named_parameters()
    return logits.detach(), {name: p.grad.float() for name, p in named if p.grad is not None}


def test_fused_layers_give_pefts_logits_and_gradients(tiny):
    """If it failed: a faster trainer would train another adapter than the one PEFT then loads."""
    fused = adapted(tiny, True)
    assert sum(isinstance(module, FusedLinear) for module in fused.modules()) == 14
    (logits, gradients), (theirs, their_gradients) = outcome(fused), outcome(adapted(tiny, False))
    torch.testing.assert_close(logits, theirs, atol=1e-6, rtol=1e-5)
    assert gradients.keys() == their_gradients.keys()
    assert len(gradients) == 28
    for name, gradient in their_gradients.items():
        torch.testing.assert_close(gradients[name], gradient, atol=1e-7, rtol=1e-4)


def test_in_bfloat16_they_are_as_exact_as_pefts(tiny):
    """If it failed: speed would have been bought with gradients that point elsewhere."""
    _, exact = outcome(adapted(tiny, False))

    def error(fused):
        _, found = outcome(adapted(tiny, fused, torch.bfloat16))
        apart = [(found[name] - exact[name]).norm() / exact[name].norm() for name in exact]
        return float(torch.stack(apart).mean())

    assert error(True) < 1.25 * error(False) < 0.1


def test_the_layers_gradients_are_those_of_finite_differences():
    """If it failed: PEFT and this would share a mistake."""
    draw = torch.Generator().manual_seed(0)

    def some(*shape, grad=True):
        return torch.randn(*shape, generator=draw, dtype=torch.float64).requires_grad_(grad)

    given = (some(2, 3, 5), some(4, 5, grad=False), some(4, grad=False), some(2, 5), some(4, 2), 0.5)
    assert torch.autograd.gradcheck(_Adapted.apply, given)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_without_the_adapter_it_is_the_base_and_dropout_is_pefts(tiny, dropout):
    """If it failed: the check that an adapter changes something would compare the adapter with itself."""
    fused, theirs = (adapted(tiny, kind, dropout=dropout) for kind in (True, False))
    base = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32, attn_implementation="sdpa")
    with torch.inference_mode():
        with fused.disable_adapter():
            assert torch.equal(fused(IDS).logits, base(IDS).logits)
        assert not torch.allclose(fused(IDS).logits, base(IDS).logits, atol=1e-2)
        drawn = []
        for model in (fused, theirs):
            torch.manual_seed(1)
            drawn.append(model(IDS).logits)
        torch.testing.assert_close(*drawn, atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(fused.eval()(IDS).logits, theirs.eval()(IDS).logits, atol=1e-6, rtol=1e-5)


def kept_bytes(model):
    """What a forward pass keeps for the backward pass, weights aside."""
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept = {}

    def note(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        model(input_ids=IDS, use_cache=False, logits_to_keep=1)
    return sum(storage.nbytes() for storage in kept.values())


def test_what_is_kept_is_what_the_docs_say(tiny):
    """If it failed: the tokens that docs/training.md promises for a GPU's memory would not fit."""
    s, ranks, n_tokens = SHAPE, 7 * 4, IDS.numel()
    layer = 12 * s["d"] + 6 * s["q"] + 4 * s["kv"] + 8 * s["f"] + 2 * ranks
    kept = kept_bytes(adapted(tiny, True, torch.bfloat16))
    assert kept == pytest.approx(s["layers"] * layer * n_tokens, rel=0.15)
    assert kept < 0.6 * kept_bytes(adapted(tiny, False, torch.bfloat16))


@pytest.mark.parametrize("lengths", [(1,), (128, 129), (300, 7, 64)])
@pytest.mark.parametrize("n_keys", [1, 2, 6])
def test_attention_in_blocks_is_as_exact_as_pytorchs(lengths, n_keys):
    """If it failed: a sample would see another one or its own future, or learn from coarser gradients."""
    draw = torch.Generator().manual_seed(0)
    n_tokens = sum(lengths)
    given = [torch.randn(1, heads, n_tokens, 16, generator=draw) for heads in (6, n_keys, n_keys)]
    weights = torch.randn(1, n_tokens, 6, 16, generator=draw)
    module = torch.nn.Module()
    module.num_key_value_groups, module.is_causal = 6 // n_keys, True

    def attended(dtype, sample_by_sample):
        """The output, and the gradients of queries, keys and values."""
        inputs = [tensor.detach().to(dtype).requires_grad_() for tensor in given]
        parts = [slice(0, n_tokens)]
        if sample_by_sample:
            ends = torch.tensor(lengths).cumsum(0).tolist()
            parts = [slice(end - n, end) for end, n in zip(ends, lengths, strict=True)]
        outputs = []
        for part in parts:
            own = (part.stop - part.start,) if sample_by_sample else lengths
            q, k, v = (tensor[:, :, part] for tensor in inputs)
            outputs.append(attend_by_sample(module, q, k, v, None, own, scaling=0.3)[0])
        output = torch.cat(outputs, dim=1)
        (output * weights.to(dtype)).sum().backward()
        return [output.detach().float(), *(tensor.grad.float() for tensor in inputs)]

    exact, ours = attended(torch.float32, True), attended(torch.bfloat16, False)
    for found, expected in zip(ours, exact, strict=True):
        assert (found - expected).norm() < 0.01 * expected.norm() + 1e-5
