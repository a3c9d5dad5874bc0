"""The reading of a chat endpoint's response.

An endpoint may answer anything, so nothing in a body is trusted: what is no answer becomes a `Reply`
with a `failure`, and a failure is never a label.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Field, StrictInt, TypeAdapter, ValidationError, model_validator

from monitorbench import strict_json
from monitorbench.config.endpoint import OpenAiEngine
from monitorbench.conversations.chats import messages_in
from monitorbench.conversations.forms import MESSAGE
from monitorbench.conversations.uses import Use
from monitorbench.engines.endpoint.limits import cost, estimated_tokens
from monitorbench.engines.endpoint.logprobs import BadResponse, top_logprobs_at
from monitorbench.engines.protocol import Decoding, Failure, Reply, Request

_MOST_TOKENS = 10**8
_MOST_OBJECTS = 256
"""Braces at which an object is looked for: a text of `{{{{` must not cost minutes."""
_DETAIL_CHARACTERS = 200
_VERSION = re.compile(r"[-@:](\d{3,4}|\d{6}|\d{8}|\d{4}-\d{2}-\d{2})")
_SAME_END = {
    **dict.fromkeys(("eos_token", "eos", "stop_sequence", "end_turn", "STOP", "COMPLETE"), "stop"),
    **dict.fromkeys(("max_tokens", "MAX_TOKENS", "model_length"), "length"),
}
"""Words for an end of Text Generation Inference, Together, Anthropic, Google, Cohere and Mistral."""
_THOUGHTS = tuple(name for name, use in MESSAGE.fields.items() if use is Use.THOUGHT)
"""Fields of a message that hold reasoning, by whatever server."""


class _Message(BaseModel):
    """The answer's message; content that is a list of parts is its text, and its thoughts are reasoning."""

    content: str | None = None
    refusal: str | None = None
    reasoning: str = ""

    @model_validator(mode="before")
    @classmethod
    def _read(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        content = given.get("content")
        thoughts = {name: given[name] for name in _THOUGHTS if name in given}
        (thought, *_) = messages_in([{"role": "assistant", **thoughts}], "message")
        read = {**given, "reasoning": thought.thinking}
        if not isinstance(content, list) or not content:
            return read
        (message, *_) = messages_in([{"role": "assistant", "content": content}], "message", "refuse")
        if message.tool_calls:
            raise ValueError("a tool call in place of an answer")
        return {**read, "content": message.content, "reasoning": thought.thinking or message.thinking}


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None
    logprobs: Any = None


_Count = Annotated[StrictInt, Field(ge=0, le=_MOST_TOKENS)]


class _Cached(BaseModel):
    cached_tokens: _Count | None = None


class _Usage(BaseModel):
    prompt_tokens: _Count = 0
    completion_tokens: _Count = 0
    total_tokens: _Count = 0
    prompt_tokens_details: _Cached | None = None
    prompt_cache_hit_tokens: _Count = 0
    """DeepSeek's name for the cached ones."""


class _Body(BaseModel):
    choices: list[_Choice]
    model: str | None = None
    usage: Any = None
    error: Any = None


_USAGE = TypeAdapter(_Usage | None)


def read_reply(
    body: bytes, config: OpenAiEngine, decoding: Decoding, request: Request, seconds: float
) -> Reply:
    """The reply in the body of a successful response to a request."""
    try:
        strict_json.loads(body, of_python=True)  # for keys that stand there twice; the rest is below
        answer = _Body.model_validate_json(body)
    except (ValueError, RecursionError) as error:
        start = body[:60].decode("utf-8", "replace").replace("\0", "")
        return failed("bad_response", f"{_what_is_wrong(error)}; it begins {start!r}", seconds)
    choice = answer.choices[0] if answer.choices else _Choice(message=_Message(), finish_reason="")
    text = choice.message.content or ""
    reasoning, text, cut = _reasoning(choice.message, text, decoding)
    finish = _SAME_END.get(choice.finish_reason or "", choice.finish_reason or "")
    failure, detail = _failure(answer.choices, choice, text, finish)
    if failure == "empty" and finish == "length" and reasoning:
        detail += "; its reasoning used up the tokens; set monitor.reasoning, or its max_tokens higher"
    top: Mapping[str, float] | None = None
    logprobs_detail = ""
    served = answer.model or ""
    try:
        prompt, cached, completion, usage_detail = _usage(answer.usage, request.characters, len(text))
        if answer.error:
            raise BadResponse("an error stands beside the choices")
        if not failure and not is_model(served, config):
            raise BadResponse(
                f"answered by model {served[:60]!r}; expected {config.model!r}, or engine.served_model to "
                "name it"
            )
        if not failure:
            field = decoding.label_field
            after = _before_field(text, field) if field else decoding.label_after
            top, logprobs_detail = top_logprobs_at(choice.logprobs, text, after)
    except BadResponse as error:
        # What it has to say of itself is not to be relied on, but is paid for.
        prompt, cached, completion, usage_detail = _usage(None, request.characters, len(text))
        failure, detail = failure or "bad_response", "; ".join(filter(None, (detail, str(error))))
    return Reply(
        text=text,
        finish_reason=one_line(finish),
        top_logprobs=top,
        prompt_tokens=prompt,
        completion_tokens=completion,
        seconds=seconds,
        cost=cost(config.paid_prices, prompt, cached, completion),
        failure=failure,
        detail=one_line("; ".join(filter(None, (detail, logprobs_detail, usage_detail)))),
        reasoning=reasoning,
        reasoning_cut=cut,
        served_model=one_line(served),
    )


def _what_is_wrong(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc'])) or 'body'}: {first['msg']}"
    return f"body: {one_line(str(error))[:100]}"


def is_model(served: str, config: OpenAiEngine) -> bool:
    """Whether an answer that says it is by `served` is by the model that was asked for.

    It is where it doesn't say, where it says the same but for case and for what precedes a slash, with a date
    or a number of three or four digits behind it (`gpt-4o-mini-2024-07-18`, `gpt-4-0613`), also for
    `-latest`, and where it says what `engine.served_model` says.
    """
    if not served or served == config.served_model:
        return True
    answered, wanted = (name.casefold().rpartition("/")[2] for name in (served, config.model))
    if answered == wanted:
        return True
    stem = wanted.removesuffix("-latest")
    return answered.startswith(stem) and _VERSION.fullmatch(answered[len(stem) :]) is not None


def failed(failure: Failure, detail: str, seconds: float) -> Reply:
    """A reply where no answer came back."""
    return Reply("", "", seconds=seconds, failure=failure, detail=one_line(detail))


def one_line(text: str) -> str:
    """A text without line breaks, cut where it would fill the screen."""
    text = " ".join(text.split())
    return text if len(text) <= _DETAIL_CHARACTERS else f"{text[: _DETAIL_CHARACTERS - 1]}…"


def _failure(choices: list[_Choice], choice: _Choice, text: str, finish: str) -> tuple[Failure | None, str]:
    if not choices:
        return "bad_response", "no choices"
    if choice.message.refusal:
        return "refused", choice.message.refusal
    # Gemini's endpoint puts its reason behind it: "content_filter: PROHIBITED_CONTENT".
    if finish.startswith("content_filter"):
        return "refused", f"finish_reason {finish}"
    if not text.strip():
        return "empty", f"no text; finish_reason {finish or 'none'}"
    # DeepSeek's insufficient_system_resource, vLLM's abort: the text is a piece of an answer.
    if finish not in ("stop", "length", ""):
        return "bad_response", f"finish_reason {finish}"
    return None, ""


def _reasoning(message: _Message, text: str, decoding: Decoding) -> tuple[str, str, bool]:
    """Reasoning, answer, and whether the one was cut off the other; else the endpoint parted them.

    Judged text may spell `reasoning_end`, and a monitor may repeat it: in its thoughts, so that the last one
    counts, or in the quotes of an answer, so that one counts which such an answer follows.
    """
    thoughts, end = message.reasoning, decoding.reasoning_end
    if thoughts or not end or end not in text:
        return thoughts, text, False
    ends = [match.end() for match in re.finditer(re.escape(end), text)]
    begun = decoding.label_after.strip()[:1]
    cut = next((cut for cut in reversed(ends) if begun and _begins_with(text[cut:], begun)), ends[-1])
    return text[: cut - len(end)], text[cut:], True


def _begins_with(text: str, begun: str) -> bool:
    """Whether that is how it begins, a code fence's opening aside."""
    return re.match(rf"\s*(?:```\w*\s*)?{re.escape(begun)}", text) is not None


def _usage(given: Any, prompt_characters: int, text_characters: int) -> tuple[int, int, int, str]:
    """Tokens of the prompt, of these the cached, of the completion; and a remark on them.

    Raises `BadResponse` for counts that are none.
    """
    try:
        usage = _USAGE.validate_python(given) or _Usage()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "usage"
        raise BadResponse(f"{where}: {first['msg']}") from error
    if usage.prompt_tokens == 0:
        estimates = estimated_tokens(prompt_characters), estimated_tokens(text_characters)
        return estimates[0], 0, estimates[1], "no usage: token counts are estimates"
    details = usage.prompt_tokens_details or _Cached()
    cached = max(details.cached_tokens or 0, usage.prompt_cache_hit_tokens, 0)
    # Gemini's endpoint counts reasoning in the total alone, and bills it as completion.
    completion = max(usage.completion_tokens, usage.total_tokens - usage.prompt_tokens)
    return usage.prompt_tokens, min(cached, usage.prompt_tokens), completion, ""


def _before_field(text: str, field: str) -> str | None:
    """The text up to a field's value, its quote included; the last field with others in front of it."""
    prefix, start = None, -1
    for _ in range(_MOST_OBJECTS):
        start = text.find("{", start + 1)
        if start < 0:
            break
        members = strict_json.members_before(text, field, start)
        if members and members.field is not None and members.values:
            start = members.field
            prefix = text[: start + text.startswith('"', start)]
    return prefix
