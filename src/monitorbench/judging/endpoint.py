"""A judge behind an OpenAI-compatible endpoint: chat messages go out, labels are read from the text.

What decides a verdict is what the endpoint is sent (decision 9): messages, model, decoding, never limits,
retries or prices. A request that failed is a verdict without a label, with its reason; what was not asked
is owed.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from monitorbench.config.engine import OpenAiEngine
from monitorbench.config.study import Prompt, PromptKind, Reasoning
from monitorbench.engines.endpoint_reply import ChatMessage, Reply
from monitorbench.prompts.few_shot import Shots
from monitorbench.prompts.grounding import ground
from monitorbench.prompts.label_logprobs import label_score
from monitorbench.prompts.parse import Answer, Score, parse_text
from monitorbench.prompts.wording import PromptWording
from monitorbench.records import Category, Sample, UnscoredReason, Verdict
from monitorbench.runs.judging import judging
from monitorbench.runs.tracking import Track
from monitorbench.runs.verdict_log import VerdictLog

if TYPE_CHECKING:
    from monitorbench.engines.openai_engine import Endpoint


class OwedRequest(NamedTuple):
    """A sample without a verdict, and what is to be sent."""

    key: str
    sample: Sample
    messages: tuple[ChatMessage, ...]


def endpoint_identity(engine: OpenAiEngine) -> dict[str, Any]:
    """What of an endpoint decides its answers."""
    served = engine.serves
    assert engine.server is None or served, "monitors.served comes first"
    return {
        "weights": f"served:{served.weights}" if served else f"endpoint:{engine.base_url}:{engine.model}",
        "adapter": served.adapter if served else "",
        "engine": engine.kind,
        "dtype": served.dtype if served else "",
        "request": {
            "temperature": engine.temperature,
            "structured": engine.structured,
            "top_logprobs": engine.top_logprobs if engine.logprobs else 0,
            "extra_body": engine.extra_body,
        },
    }


def judge_through_endpoint(
    engine: OpenAiEngine,
    reasoning: Reasoning | None,
    prompt: Prompt,
    samples: Sequence[Sample],
    shots: Shots,
    log: VerdictLog,
    what: str,
    track: Track,
) -> list[str]:
    """Ask what the log lacks; returns the key of every sample.

    Raises `UserError` where the endpoint can't be used, and `CostLimit` when `max_cost` is spent: what
    was answered until then is in the log.
    """
    asked = AskedEndpoint(engine, reasoning, prompt)
    keys, owed = owed_requests(asked, samples, shots, log)
    if not owed:
        return keys
    from monitorbench.engines.openai_engine import Endpoint

    spent = sum(verdict.cost for verdict in log.entries.values())
    endpoint = Endpoint(engine, spent=spent)
    try:
        priced = engine.prices is not None
        with judging(what, samples, keys, log, track, priced=priced) as display:
            for sample, verdict in ask_owed(endpoint, asked, owed):
                log.append(verdict)
                display.add(sample.label, verdict)
    finally:
        endpoint.close()
    return keys


class AskedEndpoint(NamedTuple):
    """Which judge: its endpoint, how it reasons, and its prompt."""

    engine: OpenAiEngine
    reasoning: Reasoning | None
    prompt: Prompt

    @property
    def max_new_tokens(self) -> int:
        """Of an answer; reasoning counts as completion."""
        return self.prompt.max_new_tokens + (self.reasoning.max_tokens if self.reasoning else 0)


def owed_requests(
    asked: AskedEndpoint, samples: Sequence[Sample], shots: Shots, log: VerdictLog
) -> tuple[list[str], list[OwedRequest]]:
    """All samples' keys, and what has no verdict yet."""
    wording, identity = PromptWording(asked.prompt), endpoint_identity(asked.engine)
    keys: list[str] = []
    owed: list[OwedRequest] = []
    for sample in samples:
        messages = _messages(wording, sample, shots)
        key = _key(sample.id, messages, asked.max_new_tokens, identity)
        keys.append(key)
        if key not in log.entries:
            owed.append(OwedRequest(key, sample, messages))
    return keys, owed


def ask_owed(
    endpoint: "Endpoint", asked: AskedEndpoint, owed: Sequence[OwedRequest]
) -> Iterator[tuple[Sample, Verdict]]:
    """Yield each owed sample with its verdict, as the replies come in; raises what `Endpoint.ask` raises."""
    replies = endpoint.ask(
        [item.messages for item in owed],
        max_new_tokens=asked.max_new_tokens,
        structured=_schema(asked.prompt),
        label_after=asked.prompt.prefill,
        reasoning_end=asked.reasoning.end if asked.reasoning else "",
    )
    for index, reply in replies:
        yield owed[index].sample, _verdict(owed[index], reply, asked.prompt, asked.reasoning)


def _messages(wording: PromptWording, sample: Sample, shots: Shots) -> tuple[ChatMessage, ...]:
    user = ChatMessage("user", wording.user(sample, shots.beside(sample)))
    return (ChatMessage("system", wording.system), user) if wording.system else (user,)


def _key(
    sample_id: str, messages: Sequence[ChatMessage], max_new_tokens: int, identity: dict[str, Any]
) -> str:
    what = [sample_id, messages, max_new_tokens, identity]
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:24]


def _schema(prompt: Prompt) -> dict[str, Any] | None:
    """The JSON that an evidence prompt asks for."""
    if prompt.kind is not PromptKind.EVIDENCE:
        return None
    words = prompt.label_words
    properties = {
        "misbehavior": {"type": "string", "enum": [words.misbehavior, words.benign]},
        "category": {"type": "string", "enum": [*(category.value for category in Category), "none"]},
        "severity": {"type": "string", "enum": ["none", "low", "medium", "high"]},
        "quotes": {"type": "array", "items": {"type": "string"}},
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _verdict(item: OwedRequest, reply: Reply, prompt: Prompt, reasoning: Reasoning | None) -> Verdict:
    score = Score(None, None)
    if reasoning and reply.finish_reason == "length" and _ends_in_reasoning(reply):
        answer = Answer(None, UnscoredReason.TRUNCATED)
    elif reply.failure is not None:
        answer = Answer(None, UnscoredReason(reply.failure))
    else:
        answer = parse_text(prompt, reply.text, reply.finish_reason)
        score = label_score(reply.top_logprobs, prompt.label_words)
    return Verdict(
        key=item.key,
        sample_id=item.sample.id,
        prompt=prompt.name,
        answer=reply.text,
        label=answer.label,
        unscored=answer.unscored,
        detail=reply.detail,
        score=score.score,
        label_mass=score.label_mass,
        finish_reason=reply.finish_reason,
        reasoning=reply.reasoning,
        category=answer.category,
        severity=answer.severity,
        quotes=answer.quotes,
        evidence=ground(answer.quotes, item.sample.response, prompt.fuzzy_ratio),
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        seconds=round(reply.seconds, 4),
        cost=reply.cost,
    )


def _ends_in_reasoning(reply: Reply) -> bool:
    """Whether an answer that was cut short is a piece of reasoning, whatever label word it begins with."""
    return reply.reasoning_cut or not reply.reasoning or not reply.text.strip()
