"""Whitelists of the providers' forms: OpenAI, Anthropic, Google, Amazon Bedrock, Mistral and Cohere.

As documented in November 2026:
- OpenAI chat completions and Responses: https://platform.openai.com/docs/api-reference
- Anthropic Messages: https://docs.anthropic.com/en/api/messages
- Google's Gemini API, `Content` and `Part`: https://ai.google.dev/api/caching#Content; its Python library
  writes the same names with underscores
- Amazon Bedrock, Converse: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html
- Mistral, content chunks: https://docs.mistral.ai/api
- Cohere, chat: https://docs.cohere.com/reference/chat, and its first version: https://docs.cohere.com/reference/chat-v1
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from monitorbench.conversations.uses import Form, Use
from monitorbench.records import Role


def _with_underscores(fields: Mapping[str, Use]) -> dict[str, Use]:
    """The fields under both of Google's names: `thoughtSignature` and `thought_signature`."""
    return {**fields, **{_underscored(name): use for name, use in fields.items()}}


def _underscored(name: str) -> str:
    return re.sub(r"(?<=[a-z])[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


MESSAGE: Mapping[str, Use] = {
    "function_call": Use.CALLS,
    "parts": Use.TEXT,
    "refusal": Use.TEXT,
    "reasoning_content": Use.THOUGHT,
    "reasoning": Use.THOUGHT,
    "name": Use.CALLED,
    "audio": Use.MEDIA,
    # Cohere; `message` and `tool_results` of its first version
    "message": Use.TEXT,
    "tool_plan": Use.THOUGHT,
    "tool_results": Use.VALUE,
    "citations": Use.VALUE,
    **_with_underscores(
        {
            **dict.fromkeys(("safetyRatings", "citationMetadata", "groundingMetadata"), Use.VALUE),
            **dict.fromkeys(("finishReason", "avgLogprobs", "tokenCount"), Use.QUIET),
        }
    ),
    **dict.fromkeys(
        (
            "type",
            "id",
            "object",
            "created",
            "status",
            "phase",
            "index",
            "model",
            "stop_reason",
            "stop_sequence",
            "usage",
            "cache_control",
            "prefix",
            "partial",
        ),
        Use.QUIET,
    ),
}
CALL: Mapping[str, Use] = {
    "type": Use.QUIET,
    "index": Use.QUIET,
    "status": Use.QUIET,
    "cache_control": Use.QUIET,
    "caller": Use.QUIET,
    "call_id": Use.ID,
    "function": Use.BOX,
    "custom": Use.BOX,
    "input": Use.ARGUMENTS,
    "parameters": Use.ARGUMENTS,
}
_ANTHROPIC_CALL = Form(
    {
        "type": Use.QUIET,
        "id": Use.ID,
        "name": Use.NAME,
        "input": Use.ARGUMENTS,
        "server_name": Use.ARGUMENT,
        "caller": Use.QUIET,
        "cache_control": Use.QUIET,
    }
)
_ANTHROPIC_RESULT = Form(
    {
        "type": Use.KIND,
        "tool_use_id": Use.LINK,
        "content": Use.TEXT,
        "is_error": Use.FLAG,
        "caller": Use.QUIET,
        "cache_control": Use.QUIET,
    }
)
_SERVER_RESULT = Form({**_ANTHROPIC_RESULT.fields, "content": Use.VALUE})
_SERVER_RESULTS = (
    "web_search",
    "web_fetch",
    "code_execution",
    "bash_code_execution",
    "text_editor_code_execution",
    "tool_search",
    "mcp",
)
_TEXT = Form({"type": Use.KIND, "text": Use.TEXT, "cache_control": Use.QUIET, "citations": Use.QUIET})


def _media(kind: str, *texts: str) -> Form:
    fields = {"type": Use.KIND, kind: Use.MEDIA, "detail": Use.QUIET, "cache_control": Use.QUIET}
    return Form({**fields, **dict.fromkeys(texts, Use.TEXT)}, mark=kind)


_OPENAI_PARTS: Mapping[str, Form] = {
    "text": _TEXT,
    "input_text": _TEXT,
    "output_text": replace(_TEXT, fields={**_TEXT.fields, "annotations": Use.QUIET, "logprobs": Use.QUIET}),
    "summary_text": _TEXT,
    "reasoning_text": Form({"type": Use.KIND, "text": Use.THOUGHT}),
    "refusal": Form({"type": Use.KIND, "refusal": Use.TEXT}),
    "image_url": _media("image_url"),
    "image_file": _media("image_file"),
    "input_image": replace(_media("image_url"), mark="input_image"),
    "audio_url": _media("audio_url"),
    "input_audio": _media("input_audio"),
    "video_url": _media("video_url"),
    "input_video": _media("input_video"),
    "file": _media("file"),
    "input_file": replace(_media("file_data", "filename"), mark="input_file"),
}
_ANTHROPIC_PARTS: Mapping[str, Form] = {
    "thinking": Form(
        {"type": Use.KIND, "thinking": Use.THOUGHT, "signature": Use.OPAQUE, "closed": Use.QUIET}
    ),
    "redacted_thinking": Form({"type": Use.KIND, "data": Use.OPAQUE}, mark="redacted_thinking"),
    "tool_use": _ANTHROPIC_CALL,
    "server_tool_use": _ANTHROPIC_CALL,
    "mcp_tool_use": _ANTHROPIC_CALL,
    "tool_result": _ANTHROPIC_RESULT,
    **dict.fromkeys((f"{name}_tool_result" for name in _SERVER_RESULTS), _SERVER_RESULT),
    "image": _media("source"),
    "document": Form(
        {
            "type": Use.KIND,
            "title": Use.TEXT,
            "context": Use.TEXT,
            "source": Use.MEDIA,
            "document": Use.VALUE,  # Cohere's, of a tool's result
            "citations": Use.QUIET,
            "cache_control": Use.QUIET,
        },
        mark="document",
    ),
}
_MISTRAL_PARTS: Mapping[str, Form] = {
    "reference": Form({"type": Use.KIND, "reference_ids": Use.QUIET}),
    "document_url": _media("document_url", "document_name"),
}
PARTS: Mapping[str, Form] = {**_OPENAI_PARTS, **_ANTHROPIC_PARTS, **_MISTRAL_PARTS}


_GOOGLE_PARTS: Mapping[str, Form] = {
    "functionCall": Form(
        {
            "functionCall": Use.BOX,
            "id": Use.ID,
            "name": Use.NAME,
            "args": Use.ARGUMENTS,
            "thoughtSignature": Use.OPAQUE,
        }
    ),
    "functionResponse": Form(
        {"functionResponse": Use.BOX, "id": Use.LINK, "name": Use.CALLED, "response": Use.VALUE}
    ),
    "executableCode": Form(
        {"executableCode": Use.BOX, "id": Use.ID, "language": Use.ARGUMENT, "code": Use.ARGUMENT},
        call="executable_code",
    ),
    "codeExecutionResult": Form(
        {"codeExecutionResult": Use.BOX, "id": Use.LINK, "outcome": Use.TEXT, "output": Use.TEXT}
    ),
    "inlineData": Form({"inlineData": Use.MEDIA, "videoMetadata": Use.QUIET}, mark="inlineData"),
    "fileData": Form({"fileData": Use.MEDIA, "videoMetadata": Use.QUIET}, mark="fileData"),
}
_BEDROCK_PARTS: Mapping[str, Form] = {
    "toolUse": Form({"toolUse": Use.BOX, "toolUseId": Use.ID, "name": Use.NAME, "input": Use.ARGUMENTS}),
    "toolResult": Form(
        {"toolResult": Use.BOX, "toolUseId": Use.LINK, "content": Use.VALUE, "status": Use.QUIET}
    ),
    "reasoningContent": Form(
        {
            "reasoningContent": Use.BOX,
            "reasoningText": Use.BOX,
            "text": Use.THOUGHT,
            "signature": Use.OPAQUE,
            "redactedContent": Use.OPAQUE,
        }
    ),
    "json": Form({"json": Use.VALUE}),
    "image": Form({"image": Use.MEDIA}, mark="image"),
    "video": Form({"video": Use.MEDIA}, mark="video"),
    "document": Form({"document": Use.MEDIA}, mark="document"),
    "cachePoint": Form({"cachePoint": Use.QUIET}),
}
_GOOGLE_TEXTS: Mapping[str, Form] = {
    "thought": Form({"thought": Use.QUIET, "text": Use.THOUGHT, "thoughtSignature": Use.OPAQUE}),
    "text": Form({"text": Use.TEXT, "thoughtSignature": Use.OPAQUE}),
}
PARTS_BY_FIELD: Mapping[str, Form] = {
    name: replace(form, fields=_with_underscores(form.fields))
    for camel, form in {**_GOOGLE_PARTS, **_BEDROCK_PARTS, **_GOOGLE_TEXTS}.items()
    for name in (camel, _underscored(camel))
}


def _item_call(name: str, *arguments: str, result: str = "") -> Form:
    """A tool that the provider runs, or a call whose arguments are fields of the item."""
    fields = {"type": Use.KIND, "id": Use.ID, "call_id": Use.ID, "status": Use.QUIET}
    fields |= dict.fromkeys(arguments, Use.ARGUMENT)
    return Form({**fields, **({result: Use.RESULT} if result else {})}, Role.ASSISTANT, call=name)


_ITEM_CALL = {"type": Use.KIND, "id": Use.ID, "call_id": Use.ID, "name": Use.NAME, "status": Use.QUIET}
_ITEM_OUTPUT = Form(
    {"type": Use.KIND, "id": Use.QUIET, "call_id": Use.LINK, "output": Use.VALUE, "status": Use.QUIET},
    Role.TOOL,
)
ITEMS: Mapping[str, Form] = {
    "function_call": Form({**_ITEM_CALL, "arguments": Use.ARGUMENTS}, Role.ASSISTANT),
    "custom_tool_call": Form({**_ITEM_CALL, "input": Use.ARGUMENTS}, Role.ASSISTANT),
    "mcp_call": Form(
        {
            **_ITEM_CALL,
            "arguments": Use.ARGUMENTS,
            "server_label": Use.ARGUMENT,
            "output": Use.RESULT,
            "error": Use.RESULT,
            "approval_request_id": Use.QUIET,
        },
        Role.ASSISTANT,
    ),
    "web_search_call": _item_call("web_search", "action"),
    "file_search_call": _item_call("file_search", "queries", result="results"),
    "code_interpreter_call": _item_call("code_interpreter", "code", "container_id", result="outputs"),
    "computer_call": _item_call("computer", "action", "actions", "pending_safety_checks"),
    "image_generation_call": Form(
        {"type": Use.KIND, "id": Use.ID, "status": Use.QUIET, "result": Use.MEDIA},
        Role.ASSISTANT,
        call="image_generation",
        mark="image",
    ),
    "local_shell_call": _item_call("local_shell", "action"),
    "shell_call": _item_call("shell", "action"),
    "apply_patch_call": _item_call("apply_patch", "operation"),
    "reasoning": Form(
        {
            "type": Use.KIND,
            "id": Use.QUIET,
            "summary": Use.THOUGHT,
            "content": Use.THOUGHT,
            "encrypted_content": Use.OPAQUE,
            "status": Use.QUIET,
        },
        Role.ASSISTANT,
    ),
    **dict.fromkeys(
        (
            "function_call_output",
            "custom_tool_call_output",
            "local_shell_call_output",
            "shell_call_output",
            "apply_patch_call_output",
        ),
        _ITEM_OUTPUT,
    ),
    "computer_call_output": Form(
        {"type": Use.KIND, "id": Use.QUIET, "call_id": Use.LINK, "output": Use.MEDIA, "status": Use.QUIET},
        Role.TOOL,
        mark="screenshot",
    ),
}
