"""A judge in this process: prompts are rendered to token ids here and given to an engine.

What decides a verdict is token ids, weights, adapter, decoding and dtype (decision 9). Promises: a prompt
that the context can't hold is a verdict with its reason, or is shortened where the prompt says so; an
adapter that changes nothing judges nothing.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import LocalEngine, Monitor, Prompt
from monitorbench.engines.open import open_engine
from monitorbench.engines.protocol import ADAPTER_GATE, Completion, Decoding, Engine
from monitorbench.engines.weights import adapter_folder, weights_folder
from monitorbench.judging.reasoning import NO_THOUGHT, Thought, think_first
from monitorbench.prompts.few_shot import Shots
from monitorbench.prompts.grounding import ground
from monitorbench.prompts.parse import Answer, Score, parse, score
from monitorbench.prompts.render import Renderer
from monitorbench.prompts.truncate import middle_truncate
from monitorbench.records import Sample, UnscoredReason, Verdict
from monitorbench.runs.judging import JudgingDisplay, judging
from monitorbench.runs.tracking import Track
from monitorbench.runs.verdict_log import VerdictLog, verdict_key


class Asked(NamedTuple):
    """Which judge: its monitor, engine and prompt, and the identity that names them all."""

    monitor: Monitor
    engine: LocalEngine
    models: Path
    """The folder that models are kept in."""
    prompt: Prompt
    identity: Mapping[str, Any]


class Owed(NamedTuple):
    """A sample without a verdict, and the prompt it is to be asked with."""

    key: str
    sample: Sample
    token_ids: tuple[int, ...]
    truncated_tokens: int = 0
    detail: str = ""


def judge_locally(
    asked: Asked, samples: Sequence[Sample], shots: Shots, log: VerdictLog, what: str, track: Track
) -> tuple[list[str], float | None]:
    """Run what the log lacks; returns the key of every sample, and an adapter's `refuse_idle_adapter`.

    Raises `UserError` for missing weights and for an adapter that changes nothing, `ConfigError` where
    prompt or reasoning don't fit the tokenizer.
    """
    from transformers import AutoTokenizer

    monitor, prompt = asked.monitor, asked.prompt
    weights = weights_folder(monitor, asked.models)
    adapter = adapter_folder(monitor.adapter)
    try:
        tokenizer = AutoTokenizer.from_pretrained(weights)
        renderer = Renderer(prompt, tokenizer, monitor.opening, monitor.reasoning)
    except ValueError as error:
        raise ConfigError(f"monitor={monitor.name} prompt={prompt.name}: {error}") from error
    decoding = Decoding(prompt.max_new_tokens, (renderer.end_of_turn,), renderer.label_tokens.all)
    keys, owed = owed_prompts(samples, shots, renderer, decoding, asked.identity, log)
    adapter_gate = None
    if owed:
        engine = open_engine(asked.engine, weights, adapter, monitor.context_tokens)
        try:
            if adapter:
                adapter_gate = refuse_idle_adapter(engine, owed[0].token_ids, decoding)
            with judging(what, samples, keys, log, track) as display:
                judge_owed(engine, owed, renderer, decoding, log, display)
        finally:
            engine.close()
    return keys, adapter_gate


def refuse_idle_adapter(engine: Engine, prompt: Sequence[int], decoding: Decoding) -> float:
    """The largest change of a label token's log-probability that the adapter makes on a prompt.

    Raises `UserError` below `ADAPTER_GATE`: the base would be judged under the adapter's name.
    """
    asked = Decoding(1, decoding.stop_token_ids, decoding.scored_token_ids)
    # The base first: an engine that holds one model at a time then has the right one loaded.
    ((_, base),) = engine.complete([prompt], asked, with_adapter=False)
    ((_, tuned),) = engine.complete([prompt], asked)
    asked_for = [i for i in decoding.scored_token_ids if math.isfinite(base.logprobs[i])]
    if not all(math.isfinite(tuned.logprobs[i]) for i in asked_for):
        raise UserError("the adapter gives a label a log-probability that is not finite: it is broken")
    change = max((abs(tuned.logprobs[i] - base.logprobs[i]) for i in asked_for), default=0.0)
    if change < ADAPTER_GATE:
        raise UserError(
            f"the adapter changes no log-probability by {ADAPTER_GATE:g} (largest change {change:.2g}): "
            "it is not on the model, or it was not trained"
        )
    return change


def owed_prompts(
    samples: Sequence[Sample],
    shots: Shots,
    renderer: Renderer,
    decoding: Decoding,
    judge: Mapping[str, Any],
    log: VerdictLog,
) -> tuple[list[str], list[Owed]]:
    """All samples' keys, and what has no verdict yet.

    A prompt too long for the context is shortened where the prompt says so; else its verdict is here.
    """
    fits = judge["context_tokens"] - decoding.max_new_tokens - _reasoning_room(renderer)
    names = {name: judge[name] for name in ("weights", "adapter", "dtype", "engine")}
    thinks = renderer.reasoning
    reasoning = (thinks.end, thinks.max_tokens, *thinks.answer_start) if thinks else ()
    keys: list[str] = []
    owed: list[Owed] = []
    for sample in samples:
        examples = shots.beside(sample)
        ids = renderer.render(sample, examples)
        truncated_tokens, detail = 0, f"{len(ids)} tokens, {fits} fit" if len(ids) > fits else ""
        if len(ids) > fits and renderer.prompt.too_long == "middle_truncate":
            shortened = middle_truncate(renderer, sample, fits, examples)
            ids, truncated_tokens, detail = shortened or (ids, 0, detail)
        key = verdict_key(sample.id, ids, decoding=decoding, reasoning=reasoning, **names)
        keys.append(key)
        if key in log.entries:
            continue
        if len(ids) > fits:
            log.append(_unscored(key, sample, renderer, UnscoredReason.TOO_LONG, detail, len(ids)))
        else:
            owed.append(Owed(key, sample, ids, truncated_tokens, detail))
    return keys, owed


def _reasoning_room(renderer: Renderer) -> int:
    """Tokens of the context that are kept for reasoning."""
    thinks = renderer.reasoning
    return thinks.max_tokens + 1 + len(thinks.answer_start) if thinks else 0


def judge_owed(
    engine: Engine,
    owed: Sequence[Owed],
    renderer: Renderer,
    decoding: Decoding,
    log: VerdictLog,
    display: JudgingDisplay | None,
) -> None:
    """Ask what is owed and append each verdict as it comes; without a display nothing is shown."""
    prompts = [item.token_ids for item in owed]
    if renderer.reasoning:
        answered = think_first(engine, prompts, decoding, renderer.reasoning)
    else:
        answered = ((index, NO_THOUGHT, answer) for index, answer in engine.complete(prompts, decoding))
    for index, thought, completion in answered:
        verdict = _verdict(owed[index], thought, completion, renderer)
        log.append(verdict)
        if display is not None:
            display.add(owed[index].sample.label, verdict)


def _verdict(item: Owed, thought: Thought, completion: Completion | None, renderer: Renderer) -> Verdict:
    """`completion` is None where the monitor did not get as far as an answer."""
    tokens, prompt = renderer.label_tokens, renderer.prompt
    detail = item.detail
    if completion is None:
        text, finish, seconds, n_tokens = "", thought.finish_reason, thought.seconds, 0
        cut_short = finish == "length"
        answer = Answer(None, UnscoredReason.TRUNCATED if cut_short else UnscoredReason.NO_LABEL)
        how = f"did not end in {thought.n_tokens} tokens" if cut_short else "ended without an answer"
        detail = "; ".join(filter(None, (detail, f"reasoning {how}")))
        value = Score(None, None)
    else:
        text, finish = prompt.prefill + completion.text, completion.finish_reason
        seconds, n_tokens = thought.seconds + completion.seconds, len(completion.token_ids)
        answer = parse(prompt, tokens, completion.token_ids, completion.text, finish)
        value = score(completion.logprobs, tokens)
    return Verdict(
        key=item.key,
        sample_id=item.sample.id,
        prompt=prompt.name,
        answer=text,
        label=answer.label,
        unscored=answer.unscored,
        score=value.score,
        label_mass=value.label_mass,
        finish_reason=finish,
        reasoning=thought.text,
        reasoning_tokens=thought.n_tokens,
        category=answer.category,
        severity=answer.severity,
        quotes=answer.quotes,
        evidence=ground(answer.quotes, item.sample.response, prompt.fuzzy_ratio),
        truncated_tokens=item.truncated_tokens,
        detail=detail,
        prompt_tokens=len(item.token_ids),
        completion_tokens=thought.n_tokens + n_tokens,
        seconds=round(seconds, 4),
    )


def _unscored(
    key: str, sample: Sample, renderer: Renderer, reason: UnscoredReason, detail: str, prompt_tokens: int
) -> Verdict:
    return Verdict(
        key=key,
        sample_id=sample.id,
        prompt=renderer.prompt.name,
        answer="",
        label=None,
        unscored=reason,
        detail=detail,
        score=None,
        label_mass=None,
        finish_reason="",
        prompt_tokens=prompt_tokens,
        completion_tokens=0,
        seconds=0.0,
    )
