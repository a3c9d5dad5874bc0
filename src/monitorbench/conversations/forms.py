"""All known forms of messages, tool calls and parts of a content, and how a part's form is found.

Each form is a whitelist by its own documentation, in `providers` and `frameworks`; a field that is in none
of them is unknown. Types of parts are the same in several forms: a part is found by its type alone.
"""

from collections.abc import Mapping
from dataclasses import replace

from monitorbench.conversations import frameworks, providers
from monitorbench.conversations.uses import Form, Use
from monitorbench.records import Role

ROLES: Mapping[str, Role] = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "human": Role.USER,
    "assistant": Role.ASSISTANT,
    "ai": Role.ASSISTANT,
    "model": Role.ASSISTANT,
    "tool": Role.TOOL,
    "function": Role.TOOL,
    "SYSTEM": Role.SYSTEM,
    "USER": Role.USER,
    "CHATBOT": Role.ASSISTANT,
    "TOOL": Role.TOOL,
}
"""Roles by their name in any form: OpenAI's, LangChain's (`human`), Google's (`model`), Cohere's."""

OWN_MESSAGE = {
    "role": Use.ROLE,
    "tool_calls": Use.CALLS,
    "content": Use.TEXT,
    "thinking": Use.THOUGHT,
    "tool_call_id": Use.LINK,
}
"""A message of ours, `records.Message`."""

OWN_CALL = {"id": Use.ID, "name": Use.NAME, "arguments": Use.ARGUMENTS}
"""A tool call of ours, `records.ToolCall`."""

MESSAGE = Form({**OWN_MESSAGE, **providers.MESSAGE, **frameworks.MESSAGE})
CALL = Form({**OWN_CALL, **providers.CALL, **frameworks.CALL})


def _merged(*tables: Mapping[str, Form]) -> Mapping[str, Form]:
    """Join forms under each type: two providers may have a part of the same type with other fields."""
    forms: dict[str, Form] = {}
    for kind, form in (entry for table in tables for entry in table.items()):
        existing = forms.get(kind, Form({}))
        forms[kind] = replace(
            form, fields={**existing.fields, **form.fields}, mark=form.mark or existing.mark
        )
    return forms


PARTS: Mapping[str, Form] = _merged(providers.PARTS, frameworks.PARTS)
"""Parts of a content by their type."""
PARTS_BY_FIELD: Mapping[str, Form] = providers.PARTS_BY_FIELD
"""Parts without a type, by the field that tells what they are."""
MARKS = frozenset(
    form.mark for table in (PARTS, PARTS_BY_FIELD, providers.ITEMS) for form in table.values() if form.mark
) | {"audio", "redacted reasoning"}
"""Notes that stand in brackets, on a line of their own, in place of parts that are no text."""
ITEMS: Mapping[str, Form] = providers.ITEMS
"""Items of OpenAI's Responses, which stand in place of messages, by their type."""


def part_form(part: Mapping[str, object]) -> Form | None:
    """Return the whitelist of a content's part; None where its form is not known."""
    kind = part.get("type")
    if isinstance(kind, str):
        if kind.startswith("tool-") and "toolCallId" in part and kind not in PARTS:
            return replace(frameworks.UI_TOOL, call=kind.removeprefix("tool-"))
        form = PARTS.get(kind)
        if form is not None and kind == "reasoning" and part.get("redacted") is True:
            hidden = {**form.fields, "reasoning": Use.OPAQUE}
            return Form(hidden, mark="" if part.get("summary") else "redacted reasoning")
        return form
    if kind is not None:
        return None
    by_field = (form for name, form in PARTS_BY_FIELD.items() if part.get(name) not in (None, False))
    return next(by_field, None)
