"""Flag or pass: what a verdict comes to under the settings, its line in an append-only log, its event.

Promises: a request without a score is never passed where `serve.fails=closed`, unless in shadow mode, where
nothing is ever flagged; a line says what the monitor found, what was decided by it, and what was answered. A
line is whole or not there, and reaches the disk within about a second; a torn last line is cut off on
opening; another process on the same file is refused; once the log is closed nothing is written any more,
whoever still holds it, and nothing of it is kept in memory.
"""

import json
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from monitorbench.config.base import UserError
from monitorbench.config.deployment import Serve
from monitorbench.records import Message
from monitorbench.runs.files import locked, unsealed_line
from monitorbench.runs.keyed_log import append_line, synced

Action = Literal["flag", "pass"]


class DecisionLine(BaseModel):
    """One line of `decisions.jsonl`, which a column map reads; there is no label."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sample_id: str
    """The caller's `id`, or LiteLLM's call; where there was none the hash of the content."""
    draw: int
    """Tells apart decisions of one `sample_id`, in the order of their time: microseconds, no two the same."""
    time: str
    """When it was answered, in ISO 8601 and UTC."""
    monitor: str
    score: float | None
    threshold: float | None
    """An alarm is a score above it; None where the category has none."""
    flagged: bool | None
    """Whether the monitor flags at its threshold; None: unscored, for `error`."""
    decided: Action
    """The action of `flagged`, and of `serve.fails` where it is unscored."""
    answered: Action
    """The action that was answered: `decided`, but pass in shadow mode."""
    fails: Literal["closed", "open"]
    shadow: bool
    error: str | None
    """A word of few."""
    detail: str
    seconds: float
    """Seconds from the body's last byte on."""
    prompt_tokens: int
    category: str | None
    request: tuple[Message, ...] | None = None
    """Messages of the request, with `serve.log_text`; the response likewise."""
    response: tuple[Message, ...] | None = None


class RefusedRequest(BaseModel):
    """One line of `refusals.jsonl`: a request that could not be understood, or not be taken."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    time: str
    path: str
    status: int
    error: str
    answered: Action


def decided(flagged: bool | None, settings: Serve) -> Action:
    """The action of a verdict; None is unscored."""
    if flagged is None:
        return "flag" if settings.fails == "closed" else "pass"
    return "flag" if flagged else "pass"


def answered(action: Action, settings: Serve) -> Action:
    """The action that is answered: pass in shadow mode."""
    return "pass" if settings.shadow else action


def reason(decision: DecisionLine) -> str:
    """Why, in one line that shows nothing of what was judged."""
    if decision.error is not None:
        return f"not judged ({decision.error}); fails {decision.fails}"
    scored = f"score {decision.score:.4g}, threshold {decision.threshold:.4g}, {decision.monitor}"
    return f"{scored}; {decision.detail}" if decision.detail else scored


EVENT = "gen_ai.evaluation.result"
_TRACE = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
_INFO, _WARN = 9, 13
"""Severity numbers of OTLP's log records."""


def event_of(decision: DecisionLine, *, response_id: str, nanoseconds: int, traceparent: str) -> str:
    """A decision as OpenTelemetry's event `gen_ai.evaluation.result`, one line of OTLP's JSON.

    Attributes as in the semantic conventions of generative AI (in development, `gen-ai-events`):
    `gen_ai.evaluation.name`, `.score.value`, `.score.label`, `.explanation`, `gen_ai.response.id`, and
    `error.type`, with the severity of a warning, where there is no result. A collector reads such lines with
    its `otlpjsonfile` receiver. `traceparent` is W3C's header of the request, whose span the event belongs
    to, or "".
    """
    labels = {True: "misbehavior", False: "benign", None: None}
    attributes: dict[str, str | float | bool | None] = {
        "gen_ai.evaluation.name": "misbehavior",
        "gen_ai.evaluation.score.value": decision.score,
        "gen_ai.evaluation.score.label": labels[decision.flagged],
        "gen_ai.evaluation.explanation": reason(decision),
        "gen_ai.response.id": response_id or None,
        "error.type": decision.error,
        "monitorbench.monitor": decision.monitor,
        "monitorbench.decided": decision.decided,
        "monitorbench.shadow": decision.shadow,
        "monitorbench.threshold": decision.threshold,
    }
    record: dict[str, Any] = {
        "timeUnixNano": str(nanoseconds),
        "observedTimeUnixNano": str(nanoseconds),
        "severityNumber": _INFO if decision.error is None else _WARN,
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


_PIECE = 2**16


class AppendedLog:
    """An open log; several threads may append."""

    def __init__(self, path: Path, stream: int) -> None:
        self._path, self._stream = path, stream
        self._lock = threading.Lock()
        self._is_closed = False

    def append(self, line: str) -> None:
        """Add a JSON object; `UserError` where it can't be written, or where the log is closed."""
        with self._lock:
            if self._is_closed:  # the descriptor may be another file's by now
                raise UserError(f"{self._path}: closed, as its server is ending")
            append_line(self._path, self._stream, line)

    def close(self) -> None:
        """Take nothing any more."""
        with self._lock:
            self._is_closed = True


@contextmanager
def open_appended(path: Path) -> Iterator[AppendedLog]:
    """Open for appending, alone; on leaving, everything is on disk. Raises what `locked` raises."""
    with locked(path) as stream:
        _cut_torn(stream)
        with synced(path, stream):
            log = AppendedLog(path, stream)
            try:
                yield log
            finally:
                log.close()


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of all whole lines; `UserError` on one that is not as it was written."""
    *lines, _ = path.read_bytes().split(b"\n")
    objects = []
    for number, line in enumerate(lines, 1):
        body = unsealed_line(line)
        if body is None:
            raise UserError(f"{path}:{number}: not as it was written, edited or damaged; remove the line")
        objects.append(json.loads(body))
    return objects


def _cut_torn(stream: int) -> None:
    """Cut off what follows the last line's end."""
    end = os.fstat(stream).st_size
    position = end
    while position > 0:
        begin = max(0, position - _PIECE)
        newline = os.pread(stream, position - begin, begin).rfind(b"\n")
        if newline >= 0:
            position = begin + newline + 1
            break
        position = begin
    if position != end:
        os.ftruncate(stream, position)
