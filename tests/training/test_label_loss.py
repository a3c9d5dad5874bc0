"""The loss that trains a monitor, against the full-vocabulary loss of transformers."""

import numpy as np
import pytest
import torch
from small_models import planted_samples
from studies import study
from transformers import AutoModelForCausalLM, AutoTokenizer

from monitorbench.prompts.label_tokens import score
from monitorbench.prompts.render import Renderer
from monitorbench.training.curve import label_logprobs
from monitorbench.training.examples import Example, collate, make_examples, pack
from monitorbench.training.layers import BY_SAMPLE
from monitorbench.training.objectives import margin_loss
from monitorbench.training.trainer import label_loss, supervised_logits


@pytest.fixture(scope="module")
def renderer(tiny):
    return Renderer(study().prompt, AutoTokenizer.from_pretrained(tiny))


@pytest.fixture(params=["sdpa", BY_SAMPLE])
def model(tiny, request):
    """With the attention that training uses, and with the plain one as its oracle."""
    return AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32, attn_implementation=request.param)


@pytest.fixture(scope="module")
def examples(renderer):
    """Of unlike lengths, one of them with a long answer as in `objective=mixed`."""
    samples = planted_samples(3, seed=1)
    response = samples[0].response[0].model_copy(update={"content": "Nothing."})
    short = samples[0].model_copy(update={"id": "", "response": (response,)})
    _, made = make_examples([*samples, short], renderer, max_tokens=512)
    return [*made, Example(made[0].prompt[:40], made[1].prompt[5:24])]


def loss_of(model, batch):
    return label_loss(supervised_logits(model, batch), batch)


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


def test_label_only_loss_equals_the_full_loss_and_its_gradients(model, renderer, examples):
    """If it failed: a faster trainer would quietly train something else than the papers' objective."""
    batch = collate(examples[:4], renderer.end_of_turn)
    labels = batch.ids_BT.clone()
    labels[:, :-2] = -100

    ours = loss_of(model, batch)
    full = model(
        input_ids=batch.ids_BT, attention_mask=batch.mask_BT, position_ids=batch.positions_BT, labels=labels
    ).loss

    assert ours.item() == pytest.approx(full.item(), abs=1e-6)
    our_gradients, full_gradients = gradients(model, ours), gradients(model, full)
    for name, gradient in full_gradients.items():
        torch.testing.assert_close(our_gradients[name], gradient, atol=1e-6, rtol=1e-4)


def test_padding_changes_nothing(model, renderer, examples):
    """If it failed: a sample's loss would depend on its neighbours in the batch."""
    together = loss_of(model, collate(examples, renderer.end_of_turn))
    alone = [loss_of(model, collate([example], renderer.end_of_turn)) for example in examples]

    assert len({example.n_tokens for example in examples}) > 2
    torch.testing.assert_close(together, sum(alone) / len(alone), atol=1e-5, rtol=1e-5)


def test_packed_equals_padded_in_logits_loss_and_gradients(model, renderer, examples):
    """If it failed: packed samples would see each other, and a label would be learned from a neighbour."""
    padded, packed = collate(examples, renderer.end_of_turn), pack(examples)

    assert packed.ids_BT.shape == (1, sum(example.n_tokens for example in examples))
    torch.testing.assert_close(
        supervised_logits(model, packed), supervised_logits(model, padded), atol=1e-5, rtol=1e-5
    )
    losses = [loss_of(model, batch) for batch in (packed, padded)]
    assert losses[0].item() == pytest.approx(losses[1].item(), abs=1e-5)
    ours, theirs = (gradients(model, loss) for loss in losses)
    for name, gradient in theirs.items():
        torch.testing.assert_close(ours[name], gradient, atol=1e-5, rtol=1e-4)


def test_a_packed_neighbour_may_be_anything(model, examples):
    """If it failed: the test above might have passed because its samples resemble each other."""
    first, second = examples[0], examples[1]
    other = Example(tuple(reversed(second.prompt)), second.completion)
    before = supervised_logits(model, pack([second, first]))[-2:]
    after = supervised_logits(model, pack([other, first]))[-2:]
    assert torch.equal(before, after)
    # And this is a thing that goes wrong: without lengths, positions that run on join the two.
    joined = pack([other, first])
    joined = joined._replace(positions_BT=torch.arange(joined.ids_BT.shape[1])[None], lengths=None)
    assert not torch.allclose(supervised_logits(model, joined)[-2:], after, atol=1e-4)


@pytest.mark.parametrize("packed", [False, True])
def test_the_margin_is_between_the_scores_that_evaluation_gives(model, renderer, packed):
    """If it failed: pairwise training would push at another number than AUROC is computed from."""
    samples = planted_samples(2, seed=4)
    samples, examples = make_examples(samples, renderer, max_tokens=512)
    tokens = renderer.label_tokens
    rows = label_logprobs(model.eval(), renderer, samples)
    p = np.array([score({i: row[i].item() for i in tokens.all}, tokens).score for row in rows])
    logit = np.log(p / (1 - p))
    expected = np.log1p(np.exp(1.5 - (logit[[0, 2]] - logit[[1, 3]]))).sum()

    batch = pack(examples) if packed else collate(examples, renderer.end_of_turn)
    pairs = torch.tensor([[0, 1], [2, 3]])
    ours = margin_loss(supervised_logits(model, batch), batch, pairs, tokens, 1.5)

    assert ours.item() == pytest.approx(expected, abs=1e-4)


def test_every_example_weighs_the_same_whatever_its_answer_is_long(model, renderer, examples):
    """If it failed: one worked answer would drown all the labels of its step."""
    per_example = [loss_of(model, pack([example])).item() for example in examples]
    assert loss_of(model, pack(examples)).item() == pytest.approx(np.mean(per_example), abs=1e-5)
