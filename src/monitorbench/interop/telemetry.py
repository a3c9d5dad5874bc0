"""A decision as OpenTelemetry's event `gen_ai.evaluation.result`, one line of OTLP's JSON.

Attributes as in the semantic conventions of generative AI (in development, `gen-ai-events`):
`gen_ai.evaluation.name`, `.score.value`, `.score.label`, `.explanation`, `gen_ai.response.id`, and
`error.type` where there is no result. A collector reads such lines with its `otlpjsonfile` receiver.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

EVENT = "gen_ai.evaluation.result"
_TRACE = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
_INFO, _WARN = 9, 13
"""Severity numbers of OTLP's log records."""


def evaluation_event(
    *,
    name: str,
    score: float | None,
    label: str | None,
    explanation: str,
    response_id: str,
    error: str | None,
    more: Mapping[str, str | float | bool],
    nanoseconds: int,
    traceparent: str,
) -> str:
    """The line; `traceparent` is W3C's header of the request, whose span the event belongs to, or "".

    `error` is a word of few, and its severity a warning. `more` are attributes of our own.
    """
    attributes: dict[str, str | float | bool | None] = {
        "gen_ai.evaluation.name": name,
        "gen_ai.evaluation.score.value": score,
        "gen_ai.evaluation.score.label": label,
        "gen_ai.evaluation.explanation": explanation or None,
        "gen_ai.response.id": response_id or None,
        "error.type": error,
        **more,
    }
    record: dict[str, Any] = {
        "timeUnixNano": str(nanoseconds),
        "observedTimeUnixNano": str(nanoseconds),
        "severityNumber": _INFO if error is None else _WARN,
        "eventName": EVENT,
        "attributes": [_attribute(key, value) for key, value in attributes.items() if value is not None],
    }
    if match := _TRACE.fullmatch(traceparent):
        record |= {"traceId": match[1], "spanId": match[2]}
    scope = {"scope": {"name": "monitorbench"}, "logRecords": [record]}
    resource = {"attributes": [_attribute("service.name", "monitorbench")]}
    return json.dumps({"resourceLogs": [{"resource": resource, "scopeLogs": [scope]}]})


def _attribute(key: str, value: str | float | bool) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"key": key, "value": {"boolValue": value}}
    if isinstance(value, str):
        return {"key": key, "value": {"stringValue": value}}
    return {"key": key, "value": {"doubleValue": float(value)}}
