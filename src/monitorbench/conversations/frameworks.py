"""Whitelists of the frameworks' forms: LangChain, the AI SDK, OpenTelemetry, Inspect, LiteLLM and others.

As documented in November 2026:
- LangChain, messages and standard content blocks: https://docs.langchain.com/oss/python/langchain/messages
- AI SDK, `ModelMessage` and `UIMessage`: https://ai-sdk.dev/docs/reference/ai-sdk-core/model-message
- OpenTelemetry, messages of `gen_ai` spans: https://github.com/open-telemetry/semantic-conventions-genai
- Inspect AI, `ChatMessage` and `Content`: https://inspect.aisi.org.uk/reference/inspect_ai.model.html
- LiteLLM's additions: https://docs.litellm.ai/docs/reasoning_content
- OpenRouter's `reasoning_details`: https://openrouter.ai/docs/use-cases/reasoning-tokens
- AutoGen and ShareGPT: see `speakers`
"""

from collections.abc import Mapping

from monitorbench.conversations.uses import Form, Use

MESSAGE: Mapping[str, Use] = {
    # LangChain
    "invalid_tool_calls": Use.CALLS,
    "additional_kwargs": Use.BOX,
    "additional_kwargs.tool_calls": Use.CALLS,
    "artifact": Use.VALUE,
    "example": Use.QUIET,
    "response_metadata": Use.QUIET,
    "usage_metadata": Use.QUIET,
    # AI SDK
    "toolInvocations": Use.CALLS,
    "createdAt": Use.QUIET,
    # LiteLLM and OpenRouter
    "thinking_blocks": Use.THOUGHT,
    "reasoning_details": Use.THOUGHT,
    "images": Use.TEXT,
    # Inspect
    "function": Use.CALLED,
    "error": Use.ERROR,
    "source": Use.QUIET,
    "tool_call_from": Use.QUIET,
    # AutoGen, as `speakers` puts it
    "agent": Use.FLAG,
    "thought": Use.THOUGHT,
    "is_error": Use.FLAG,
    "target": Use.FLAG,
    "context": Use.VALUE,
    "results": Use.VALUE,
    **dict.fromkeys(("models_usage", "metadata", "created_at"), Use.QUIET),
    # ShareGPT
    "weight": Use.QUIET,
}
CALL: Mapping[str, Use] = {
    # LangChain; `error` is of a call that its parser could not read
    "args": Use.ARGUMENTS,
    "extras": Use.QUIET,
    "error": Use.FLAG,
    # AI SDK
    "toolCallId": Use.ID,
    "toolName": Use.NAME,
    "state": Use.QUIET,
    "step": Use.QUIET,
    "providerExecuted": Use.QUIET,
    "dynamic": Use.QUIET,
    "result": Use.RESULT,
    # Inspect
    "parse_error": Use.FLAG,
    "view": Use.FLAG,
    "internal": Use.FLAG,
}
_KIND = {"type": Use.KIND}
_UI = {**_KIND, "state": Use.QUIET, "providerMetadata": Use.QUIET, "providerOptions": Use.QUIET}
UI_TOOL = Form(
    {
        **_UI,
        "toolCallId": Use.ID,
        "toolName": Use.NAME,
        "input": Use.ARGUMENTS,
        "args": Use.ARGUMENTS,
        "rawInput": Use.ARGUMENT,
        "output": Use.RESULT,
        "errorText": Use.RESULT,
        "providerExecuted": Use.QUIET,
        "callProviderMetadata": Use.QUIET,
        "preliminary": Use.QUIET,
        "dynamic": Use.QUIET,
        "title": Use.ARGUMENT,
    }
)
"""A tool's part of the AI SDK: the call, and its result once there is one."""
_LANGCHAIN_MEDIA = ("url", "base64", "data", "file_id", "mime_type", "id", "source_type", "extras", "index")
_TELEMETRY_MEDIA = ("content", "uri", "modality")


def _media(kind: str, more: Mapping[str, Use]) -> Form:
    return Form({**_KIND, **dict.fromkeys(_LANGCHAIN_MEDIA, Use.MEDIA), **more}, mark=kind)


_SERVER_CALL = Form(
    {**_KIND, "id": Use.ID, "name": Use.NAME, "args": Use.ARGUMENTS, "server_tool_call": Use.ARGUMENTS}
)
PARTS: Mapping[str, Form] = {
    # LangChain and OpenTelemetry call a tool's part alike
    "text": Form(
        {
            **_KIND,
            "text": Use.TEXT,
            "content": Use.TEXT,
            "value": Use.TEXT,
            "refusal": Use.FLAG,
            "id": Use.QUIET,
            "index": Use.QUIET,
            "state": Use.QUIET,
            **dict.fromkeys(("annotations", "citations", "cache_control", "extras"), Use.QUIET),
            **dict.fromkeys(("providerMetadata", "providerOptions", "internal"), Use.QUIET),
        }
    ),
    "tool_call": Form(
        {
            **_KIND,
            "id": Use.ID,
            "name": Use.NAME,
            "args": Use.ARGUMENTS,
            "arguments": Use.ARGUMENTS,
            "index": Use.QUIET,
            "extras": Use.QUIET,
        }
    ),
    "tool_call_response": Form(
        {**_KIND, "id": Use.LINK, "response": Use.VALUE, "result": Use.VALUE, "name": Use.CALLED}
    ),
    "invalid_tool_call": Form(
        {**_KIND, "id": Use.ID, "name": Use.NAME, "args": Use.ARGUMENTS, "error": Use.ARGUMENT}
    ),
    "server_tool_call": _SERVER_CALL,
    "server_tool_call_result": Form(
        {**_KIND, "id": Use.QUIET, "tool_call_id": Use.LINK, "status": Use.QUIET, "output": Use.VALUE}
    ),
    "server_tool_call_response": Form(
        {**_KIND, "id": Use.LINK, "name": Use.CALLED, "server_tool_call_response": Use.VALUE}
    ),
    # `content` is OpenTelemetry's; `reasoning` LangChain's and Inspect's; `text` the AI SDK's
    "reasoning": Form(
        {
            **_UI,
            "reasoning": Use.THOUGHT,
            "summary": Use.THOUGHT,
            "content": Use.THOUGHT,
            "text": Use.THOUGHT,
            "redacted": Use.QUIET,
            "signature": Use.OPAQUE,
            "id": Use.QUIET,
            "index": Use.QUIET,
            "extras": Use.QUIET,
            "internal": Use.QUIET,
        }
    ),
    "reasoning.text": Form(
        {
            **_KIND,
            "text": Use.THOUGHT,
            "signature": Use.OPAQUE,
            **dict.fromkeys(("id", "format", "index"), Use.QUIET),
        }
    ),
    "reasoning.summary": Form(
        {**_KIND, "summary": Use.THOUGHT, **dict.fromkeys(("id", "format", "index"), Use.QUIET)}
    ),
    "reasoning.encrypted": Form(
        {**_KIND, "data": Use.OPAQUE, **dict.fromkeys(("id", "format", "index"), Use.QUIET)},
        mark="reasoning.encrypted",
    ),
    # AI SDK
    "tool-call": UI_TOOL,
    "tool-result": Form(
        {
            **_UI,
            "toolCallId": Use.LINK,
            "toolName": Use.CALLED,
            "output": Use.VALUE,
            "result": Use.VALUE,
            "isError": Use.FLAG,
        }
    ),
    "dynamic-tool": UI_TOOL,
    "step-start": Form(_KIND),
    # Media: `image` is Anthropic's, LangChain's, the AI SDK's and Inspect's
    "image": _media(
        "image",
        {"image": Use.MEDIA, "source": Use.MEDIA, "mediaType": Use.QUIET, "detail": Use.QUIET}
        | dict.fromkeys(("cache_control", "providerOptions", "internal"), Use.QUIET),
    ),
    "audio": _media("audio", {"audio": Use.MEDIA, "format": Use.QUIET, "internal": Use.QUIET}),
    "video": _media("video", {"video": Use.MEDIA, "format": Use.QUIET, "internal": Use.QUIET}),
    "file": _media(
        "file", {"file": Use.MEDIA, "filename": Use.TEXT, "mediaType": Use.QUIET, "modality": Use.QUIET}
    ),
    "blob": _media("blob", dict.fromkeys(_TELEMETRY_MEDIA, Use.MEDIA)),
    "uri": _media("uri", dict.fromkeys(_TELEMETRY_MEDIA, Use.MEDIA)),
    # Inspect
    "data": Form({**_KIND, "data": Use.VALUE, "internal": Use.QUIET}),
    "tool_use": Form(
        {
            **_KIND,
            "tool_type": Use.QUIET,
            "id": Use.ID,
            "name": Use.NAME,
            "input": Use.ARGUMENTS,
            "arguments": Use.ARGUMENTS,
            "context": Use.ARGUMENT,
            "server_name": Use.ARGUMENT,
            "result": Use.RESULT,
            "error": Use.RESULT,
            **dict.fromkeys(("caller", "cache_control", "internal"), Use.QUIET),
        }
    ),
}
