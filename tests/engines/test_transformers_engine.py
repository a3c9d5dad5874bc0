"""The transformers engine, held against a plain forward pass."""

import pytest
import torch
from peft import LoraConfig, get_peft_model
from studies import study
from transformers import AutoModelForCausalLM

from monitorbench.engines.open import LocalModel, open_engine
from monitorbench.engines.protocol import Decoding, Request
from monitorbench.engines.two_passes import think_first
from monitorbench.prompts.render import ReasoningTokens

PROMPTS = [[5, 6, 7, 8], [11, 12], [20, 21, 22, 23, 24, 25, 26]]
SCORED = (10, 200, 3000)


@pytest.fixture(scope="module")
def adapter(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("adapter")
    torch.manual_seed(1)
    lora = LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False, task_type="CAUSAL_LM")
    get_peft_model(AutoModelForCausalLM.from_pretrained(tiny), lora).save_pretrained(folder)
    return folder


def fp32():
    return study("engine.dtype=float32", "engine.device=cpu", "engine.batch_size=2").engine


def test_scores_and_answers_are_those_of_a_forward_pass(tiny):
    """If it failed: padding or batching would move the scores that thresholds are set on."""
    engine = open_engine(fp32(), tiny, [], 2048)
    model = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32).eval()
    completions = dict(engine.complete(PROMPTS, Decoding(3, (2,), SCORED)))

    assert sorted(completions) == [0, 1, 2]
    for index, prompt in enumerate(PROMPTS):
        ids = list(prompt)
        for step, token in enumerate(completions[index].token_ids):
            with torch.no_grad():
                logprobs = model(torch.tensor([ids])).logits[0, -1].log_softmax(-1)
            assert int(logprobs.argmax()) == token
            if step == 0:
                ours = [completions[index].logprobs[i] for i in SCORED]
                assert ours == pytest.approx(logprobs[list(SCORED)].tolist(), abs=1e-4)
            ids.append(token)


def test_the_base_can_be_asked_beside_the_adapter(tiny, adapter):
    """If it failed: the gate would compare an adapter with itself, and the base pass for tuned."""
    plain = open_engine(fp32(), tiny, [], 2048)
    tuned = open_engine(fp32(), tiny, [adapter], 2048)
    tuned.take(adapter)
    decoding = Decoding(1, (2,), SCORED)
    ((_, base),) = plain.complete(PROMPTS[:1], decoding)
    ((_, without),) = tuned.complete(PROMPTS[:1], decoding, with_adapter=False)
    ((_, with_adapter),) = tuned.complete(PROMPTS[:1], decoding)

    assert without.logprobs == pytest.approx(base.logprobs, abs=1e-5)
    assert max(abs(with_adapter.logprobs[i] - base.logprobs[i]) for i in SCORED) > 1e-3


def test_the_end_of_the_turn_ends_the_answer_and_is_no_part_of_it(tiny):
    """If it failed: an answer would carry a control token into its parser."""
    engine = open_engine(fp32(), tiny, [], 2048)
    ((_, free),) = engine.complete([PROMPTS[0]], Decoding(3, (2,), SCORED))
    ((_, stopped),) = engine.complete([PROMPTS[0]], Decoding(3, (free.token_ids[0],), SCORED))

    assert free.finish_reason == "length"
    assert (stopped.token_ids, stopped.text, stopped.finish_reason) == ((), "", "stop")
    assert (free.stop_token_id, stopped.stop_token_id) == (None, free.token_ids[0])


def test_a_label_behind_reasoning_is_scored_as_in_one_long_prompt(tiny):
    """If it failed: a reasoning monitor's score would be read at another place than its answer's."""
    engine = open_engine(fp32(), tiny, [], 2048)
    ((_, free),) = engine.complete([PROMPTS[0]], Decoding(6, (2,), ()))
    end = next(token for i, token in enumerate(free.token_ids) if i and token not in free.token_ids[:i])
    thought = free.token_ids[: free.token_ids.index(end)]
    tokens = ReasoningTokens(end, (9, 10), 6)
    request = Request(token_ids=tuple(PROMPTS[0]))
    ((_, answer),) = think_first(
        LocalModel(None, lambda: engine), [request], Decoding(1, (2,), SCORED), tokens
    )
    ((_, whole),) = engine.complete([[*PROMPTS[0], *thought, end, 9, 10]], Decoding(1, (2,), SCORED))

    assert answer.reasoning_tokens == len(thought) + 1
    assert answer.failure is None
    assert answer.token_ids == whole.token_ids
    assert answer.logprobs == pytest.approx(whole.logprobs, abs=1e-5)
