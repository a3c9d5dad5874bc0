"""Monitors that think before they answer: two passes, the label's score at the label's place."""

import json

import pytest
from scripted_engine import ScriptedEngine, completion

from monitorbench.engines.open import LocalModel
from monitorbench.engines.protocol import Decoding, Reply, Request
from monitorbench.engines.two_passes import ReasoningTokens, think_first
from monitorbench.judging.evaluate import evaluate
from monitorbench.prompts.render import Renderer
from monitorbench.records import UnscoredReason
from monitorbench.runs.keyed_log import read_verdicts

# SmolLM2 has no token of its own for the end of reasoning: a full stop is one here.
REASONING = 'monitor.reasoning={end:".",then:" Answer: ",max_tokens:24}'


def thinking(tokenizer, says, stop="."):
    """A model that thinks `I see`, and answers yes where it is asked behind that thought."""
    stop_id = tokenizer(stop).input_ids[0]
    thought = tuple(tokenizer("I see").input_ids)

    def script(ids: tuple[int, ...], decoding: Decoding, with_adapter: bool) -> Reply:
        if decoding.max_new_tokens > 1:
            return completion(thought, "I see", "stop", {}, 0.5, stop_id)
        return says("yes", 0.8) if "I see. Answer:" in tokenizer.decode(ids) else says("no", 0.1)

    return script


def test_the_label_is_asked_for_behind_the_reasoning(study, use_engine, tokenizer, says):
    """Else a reasoning monitor would be scored on the first word of its thoughts."""
    use_engine(thinking(tokenizer, says))
    verdicts = read_verdicts(evaluate(study(REASONING)) / "verdicts.jsonl")
    assert verdicts
    for verdict in verdicts:
        assert (verdict.label, verdict.reasoning) == ("misbehavior", "I see")
        assert verdict.score == pytest.approx(0.8)
        assert verdict.reasoning_tokens == 3  # the full stop is one of them
        assert verdict.completion_tokens == 4
        assert verdict.seconds == pytest.approx(0.51)


@pytest.mark.parametrize(("finish", "reason"), [("length", "truncated"), ("stop", "no_label")])
def test_reasoning_without_an_end_is_unscored(study, use_engine, tokenizer, says, finish, reason):
    """Else a thought that was cut off, or that ended without an answer, would count as benign."""
    end_of_turn = tokenizer.convert_tokens_to_ids("<|im_end|>") if finish == "stop" else None
    engine = use_engine(lambda *_: completion((5, 6), "no.", finish, {}, 0.1, end_of_turn))
    (first, *_), n = read_verdicts(evaluate(study(REASONING)) / "verdicts.jsonl"), len(engine.asked)
    assert (first.label, first.unscored, first.score) == (None, UnscoredReason(reason), None)
    assert first.detail.startswith("reasoning ")
    assert n == len(set(engine.asked))  # asked to think, and never for a label


def test_other_reasoning_is_another_run(study, use_engine, tokenizer, says):
    """Else thoughts of 24 tokens would be taken for those of 8,000."""
    use_engine(thinking(tokenizer, says))
    runs = [evaluate(study(*settings)) for settings in ([REASONING], [REASONING.replace("24", "25")])]
    assert runs[0] != runs[1]
    keys = [{v.key for v in read_verdicts(run / "verdicts.jsonl")} for run in runs]
    assert not keys[0] & keys[1]
    judge = json.loads((runs[0] / "manifest.json").read_text())["results"]["judge"]
    assert judge["reasoning"]["max_tokens"] == 24


def test_an_interrupted_evaluation_thinks_on(study, use_engine, tokenizer, says):
    """Else a crash would cost the thoughts of every sample, or ask twice."""
    script = thinking(tokenizer, says)
    use_engine(script, fail_after=5)
    with pytest.raises(RuntimeError, match="died"):
        evaluate(study(REASONING))
    use_engine(script)
    verdicts = read_verdicts(evaluate(study(REASONING)) / "verdicts.jsonl")
    assert len({v.sample_id for v in verdicts}) == len(verdicts)


def test_thoughts_leave_room_in_the_context(study, use_engine, tokenizer, says):
    """Else prompt, thoughts and answer would not fit together, and the engine would fail."""
    engine = use_engine(thinking(tokenizer, says))
    wide = {v.sample_id: v for v in read_verdicts(evaluate(study(REASONING)) / "verdicts.jsonl")}
    longest = max(v.prompt_tokens for v in wide.values())
    # Room for the longest prompt and its answer, but not for its thoughts too.
    narrow = evaluate(study(REASONING, f"monitor.context_tokens={longest + 10}"))
    unscored = [v for v in read_verdicts(narrow / "verdicts.jsonl") if v.unscored]
    assert longest in {v.prompt_tokens for v in unscored}
    assert {v.unscored for v in unscored} == {UnscoredReason.TOO_LONG}
    assert engine.closed


def test_the_prompt_prefill_comes_behind_the_reasoning(compose_study, tokenizer):
    """Else an evidence prompt's brace would stand in front of the thoughts."""
    study = compose_study("evaluate", "prompt=evidence", REASONING)
    renderer = Renderer(study.prompt, tokenizer, "", study.monitor.reasoning)
    assert renderer.reasoning is not None
    assert tokenizer.decode(renderer.reasoning.answer_start) == " Answer: " + study.prompt.prefill
    plain = Renderer(study.prompt, tokenizer)
    assert plain.reasoning is None


def test_indices_are_those_of_the_caller(tokenizer, says):
    """Else beyond the first few hundred prompts each answer would be another sample's."""
    stop = tokenizer(".").input_ids[0]

    def script(ids: tuple[int, ...], decoding: Decoding, with_adapter: bool) -> Reply:
        # Thinks its own number; every third one doesn't end.
        if decoding.max_new_tokens > 1:
            ends = ids[0] % 3 > 0
            return completion(
                (ids[0],), str(ids[0]), "stop" if ends else "length", {}, 0.0, stop if ends else None
            )
        return completion((ids[0],), str(ids[0]), "stop", {}, 0.0)

    prompts = [Request(token_ids=(number, 7)) for number in range(1, 600)]
    tokens = ReasoningTokens(stop, (9,), 8)
    model = LocalModel(tokenizer, lambda: ScriptedEngine(script))
    found = list(think_first(model, prompts, Decoding(1, (2,), (3,)), tokens))
    assert sorted(index for index, _ in found) == list(range(len(prompts)))
    for index, reply in found:
        assert reply.reasoning == str(index + 1)
        assert (reply.failure == "truncated") == ((index + 1) % 3 == 0)
        assert reply.text == ("" if reply.failure else reply.reasoning)
