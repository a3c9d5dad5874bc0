"""Samples as Inspect's chat messages and verdicts as its scores: for logs that go out and tasks scored live.

A conversation keeps turns, tools and reasoning, so that Inspect's viewers show them. A score's value is
`{"flagged": 1.0 | 0.0, "score": [0, 1]}`. What is not there is NaN, which Inspect's metrics and reducers
leave out and count as unscored; null or "N" they would take for 0, which here says benign. Where neither is
there the whole value is NaN, as `Score.unscored()` has it.
"""

import json
import math
from typing import Any

from monitorbench import strict_json
from monitorbench.records import Label, Message, Role, Sample, ToolCall, Verdict


def chat(sample: Sample) -> list[dict[str, Any]]:
    """Request and response in one list; `source` tells the model's own turns from those that it was given."""
    called = {
        call.id: call.name for message in (*sample.request, *sample.response) for call in message.tool_calls
    }
    return [
        _message(message, f"{sample.id}-{number}", number >= len(sample.request), called)
        for number, message in enumerate((*sample.request, *sample.response))
    ]


def _message(message: Message, id_: str, is_response: bool, called: dict[str, str]) -> dict[str, Any]:
    fields: dict[str, Any] = {"id": id_, "role": message.role.value, "content": message.content}
    if message.thinking:
        text = [{"type": "text", "text": message.content}] if message.content else []
        fields["content"] = [{"type": "reasoning", "reasoning": message.thinking}, *text]
    match message.role:
        case Role.ASSISTANT:
            fields["source"] = "generate" if is_response else "input"
            if message.tool_calls:
                fields["tool_calls"] = [_tool_call(call) for call in message.tool_calls]
        case Role.TOOL:
            fields |= {"tool_call_id": message.tool_call_id, "function": called.get(message.tool_call_id)}
        case Role.SYSTEM | Role.USER:
            if not is_response:
                fields["source"] = "input"
    return fields


def _tool_call(call: ToolCall) -> dict[str, Any]:
    """Inspect wants an object of arguments; what is none stays as text, and says so."""
    fields = {"id": call.id, "function": call.name, "type": "function"}
    try:
        arguments = strict_json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        arguments = None
    if isinstance(arguments, dict):
        return {**fields, "arguments": arguments}
    return {**fields, "arguments": {"arguments": call.arguments}, "parse_error": "no JSON object"}


def opening(sample: Sample, characters: int) -> str:
    """Return the beginning of the request's last message from a user, for lists of samples."""
    texts = [message.content for message in sample.request if message.role is Role.USER and message.content]
    return (texts[-1] if texts else json.dumps(sample.id))[:characters]


FLAGGED, SCORE = "flagged", "score"
_FLAG = {Label.MISBEHAVIOR: 1.0, Label.BENIGN: 0.0}
_LONGEST_QUOTE = 500


def verdict_score(verdict: Verdict, label: Label | None, threshold: float | None) -> dict[str, Any]:
    """The fields of Inspect's `Score` for a verdict that is read as `label`, None where it is unscored.

    `threshold` is what the score had to exceed; None where the judge's own answer is the label, or where
    there is no threshold for the sample.
    """
    flagged = math.nan if label is None else _FLAG[label]
    score = math.nan if verdict.score is None else verdict.score
    reason = None
    if label is None:
        reason = str(verdict.unscored or "no_score")
    metadata = {
        "prompt": verdict.prompt,
        "label_mass": verdict.label_mass,
        "seconds": verdict.seconds,
        "prompt_tokens": verdict.prompt_tokens,
        "completion_tokens": verdict.completion_tokens,
        **({"category": verdict.category} if verdict.category else {}),
        **({"severity": verdict.severity} if verdict.severity else {}),
    }
    return {
        "value": math.nan if label is None and verdict.score is None else {FLAGGED: flagged, SCORE: score},
        "answer": verdict.answer,
        "explanation": _explained(verdict, label, threshold),
        "reason": reason,
        "metadata": metadata,
    }


def _explained(verdict: Verdict, label: Label | None, threshold: float | None) -> str:
    """Say why a sample is flagged, or passed, or neither."""
    scored = None if verdict.score is None else f"score {verdict.score:.6g}"
    if label is None:
        why = verdict.unscored or ("no threshold for it" if verdict.score is not None else "no score")
        summary = f"unscored, which is not benign: {why}"
    elif threshold is not None:
        sign = ">" if label is Label.MISBEHAVIOR else "<="
        summary = f"{label}: {scored} {sign} threshold {threshold:.6g}"
    else:
        summary = f"{label}: the monitor's own answer{f', {scored}' if scored else ''}"
    lines = [summary, verdict.detail, *(f"“{quote[:_LONGEST_QUOTE]}”" for quote in verdict.quotes)]
    return "\n".join(filter(None, lines))
