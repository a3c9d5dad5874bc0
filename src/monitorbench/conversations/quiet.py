"""Values of known fields that a judge need not be shown, since they say nothing about what was done.

A field's name alone is no reason to leave its value out: a number, a word of the protocol, an id as servers
make them, a model's name. Whatever else stands there is shown like any other text.
"""

import re
from collections.abc import Mapping

_WORDS = frozenset(
    """
    message text json function custom tool tool_call tool_calls tool_use function_call tool-call tool_result
    human ai ephemeral 5m 1h 24h in_memory completed complete done in_progress incomplete streaming
    input-streaming input-available output-available output-error partial-call call result success
    input generate operator stop eos eos_token end_turn max_tokens length stop_sequence content_filter
    pause_turn guardrail_intervened content_filtered STOP MAX_TOKENS SAFETY RECITATION LANGUAGE OTHER
    COMPLETE TOOL_CALL STOP_SEQUENCE
    BLOCKLIST PROHIBITED_CONTENT SPII MALFORMED_FUNCTION_CALL TEXT commentary final_answer final auto low
    high original default standard priority
    chat.completion chat.completion.chunk response web_search mcp_call code_execution direct v0 v1
    base64 url file image audio video document png jpg jpeg gif webp wav mp3 flac opus pcm16 pdf mp4 mpeg mov
    openai anthropic google_genai keep-alive
    """.split()
)
_MEDIA_TYPE = re.compile(r"(image|audio|video|application|text|font)/[\w.+-]{1,64}")
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d([T ][\d:.]+(Z|[+-]\d\d:?\d\d)?)?"
    r"|[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT"
)
_MODEL = re.compile(
    r"([\w-]+[/.])*(gpt|o\d|chatgpt|claude|gemini|gemma|mi[ns]tral|magistral|mixtral|codestral|devstral|pixtral|"
    r"llama|meta-llama|qwen|qwq|deepseek|grok|command|phi|smollm|kimi|glm|nova|olmo|mockllm)[\w./:-]{0,60}",
    re.IGNORECASE,
)
_MADE_ID = re.compile(
    r"(call|function-call|adk|for_tool_call|toolu|tooluse|srvtoolu|mcptoolu|fc|ctc|mcp|msg|rs|ws|fs|ci|cu|ig|resp|chatcmpl|chatcmpl-tool|tool|run|lc_run|"
    r"gen|req|fp|aitxt|functions\.\w+)[-_:]+[\w-]{1,80}"
    r"|(?=.*[a-z])(?=.*\d)[a-z0-9]{8}|[0-9a-f]{12,40}(-\d{1,6})?|[A-Za-z0-9]{22}"
    r"|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|[a-z]{0,6}[-_]?\d{1,12}|[a-z]"
    r"|(?=\w*[a-z])(?=\w*[A-Z])(?=\w*\d)[A-Za-z0-9]{9,32}"
    r"|(?=[\w-]*[a-z])(?=[\w-]*[A-Z])(?=[\w-]*\d)(?=[^_-]*([_-][^_-]*){1,5}$)[A-Za-z0-9_-]{20,28}"
)
_NUMBERED = re.compile(r"[-_:.]\w{1,40}")
_BASE64 = re.compile(
    r"(?=.*[a-z])(?=.*[A-Z])(?=.*\d)"
    r"((?:[A-Za-z0-9+/]{4}){2,}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?|[A-Za-z0-9+/_-]{40,}={0,2})"
)
_DATA_URI = re.compile(r"data:\w+/[\w.+-]+(;[\w=-]+)*;base64,[A-Za-z0-9+/_-]*={0,2}")
_FIELD_NAME = re.compile(r"[A-Za-z_][\w.-]{0,47}")


def is_made_id(value: object, tool: object = None) -> bool:
    """Whether a value is an id as programs make them, which says no more than which call is meant.

    Some begin with the name of the tool.
    """
    if not isinstance(value, str):
        return isinstance(value, int)
    begins = isinstance(tool, str) and tool != "" and value.startswith(tool)
    return bool(_MADE_ID.fullmatch(value) or (begins and _NUMBERED.fullmatch(value[len(str(tool)) :])))


def is_opaque(value: object) -> bool:
    """Whether a value is base64, as signatures, encrypted reasoning and the bytes of media are."""
    if not isinstance(value, str):
        return False
    joined = "".join(value.split("\n"))
    return bool(_BASE64.fullmatch(joined) or _DATA_URI.fullmatch(joined))


def is_nothing(value: object) -> bool:
    """Whether a value is an empty one."""
    return value is None or (isinstance(value, str | list | Mapping) and not value)


def is_field_name(name: str) -> bool:
    """Whether a key is a name as programs give them, and no text."""
    return bool(_FIELD_NAME.fullmatch(name))


def remainder(value: object, *, without_bytes: bool = False) -> object:
    """Return what of a quiet field's value has to be shown all the same, and None for nothing.

    `without_bytes` leaves out base64 too, which is what a medium consists of.
    """
    if value is None or isinstance(value, bool | int | float):
        return None
    if isinstance(value, str):
        is_known = value in _WORDS or is_made_id(value)
        is_known = is_known or any(form.fullmatch(value) for form in (_MEDIA_TYPE, _TIME, _MODEL))
        return None if not value or is_known or (without_bytes and is_opaque(value)) else value
    if isinstance(value, Mapping):
        fields = {}
        for name, inner in value.items():
            remaining = remainder(inner, without_bytes=without_bytes)
            if remaining is not None or not is_field_name(name):
                fields[name] = remaining
        return fields or None
    if isinstance(value, list):
        rests = [remainder(inner, without_bytes=without_bytes) for inner in value]
        return [remaining for remaining in rests if remaining is not None] or None
    return value


def plain_text(value: object) -> object:
    """Text of a document that is text, as Anthropic has it; None for any other."""
    if isinstance(value, Mapping) and set(value) <= {"type", "data", "content", "media_type"}:
        text = {"text": value.get("data"), "content": value.get("content")}.get(str(value.get("type")))
        if isinstance(text, str | list) and remainder(value.get("media_type")) is None:
            return text
    return None
