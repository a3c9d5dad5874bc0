"""The guardrail's answers: from a body to a decision, logged before it is given.

`POST /guardrail` is the form of our own, `POST /beta/litellm_basic_guardrail_api` the LiteLLM proxy's.
Promises: what was judged has a line in the log; what can't be judged, understood, taken or logged is answered
as `serve.fails` says, whatever its status; in shadow mode nothing is flagged.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from monitorbench.config.base import UserError
from monitorbench.config.deployment import Serve
from monitorbench.conversations.chats import Exchange
from monitorbench.conversations.read import NoChat
from monitorbench.guardrail.decision import (
    AppendedLog,
    DecisionLine,
    RefusedRequest,
    answered,
    decided,
    event_of,
    open_appended,
    reason,
)
from monitorbench.guardrail.monitor import GuardrailVerdict, OpenMonitor
from monitorbench.interop import litellm
from monitorbench.judging.serving.asked import asked_in, category_in, json_in, sample_asked
from monitorbench.judging.serving.connection import HttpAnswer, Refusal
from monitorbench.judging.serving.http import HttpServer, Limits, listening
from monitorbench.judging.serving.served import reached_at

DECISIONS, REFUSALS, EVENTS = "decisions.jsonl", "refusals.jsonl", "events.jsonl"
PATH = "/guardrail"
_CONNECTIONS = 4
"""For each request that may be in hand."""
_log = logging.getLogger(__name__)
_UNTAKEN = (408, 413, 429, 500, 503)
"""Statuses of requests that may be in order, and were not judged all the same."""


class Guardrail:
    """A monitor, its settings and its logs; several threads may ask it."""

    def __init__(
        self,
        monitor: OpenMonitor,
        settings: Serve,
        decisions: AppendedLog,
        refusals: AppendedLog,
        events: Path | None,
    ) -> None:
        self._monitor, self._settings = monitor, settings
        self._decisions, self._refusals = decisions, refusals
        self._events = events.open("a", encoding="utf-8") if events else None
        self._requests, self._lock = litellm.Requests(), threading.Lock()
        self._last_draw = 0
        self.counts: Counter[str] = Counter()
        """How many were flagged, passed, unjudged, refused."""

    def own(self, body: bytes, headers: Mapping[str, str]) -> HttpAnswer | Refusal:
        """`POST /guardrail`."""
        try:
            call = asked_in(json_in(body), self._settings.unknown_content)
            decision = self._judged(call.exchange, call.id, call.category, headers)
        except NoChat as error:
            return Refusal(400, str(error))
        fields = {"monitor", "score", "threshold", "error", "seconds", "shadow"}
        said = decision.model_dump(mode="json", include=fields)
        return HttpAnswer(200, {"id": decision.sample_id, "action": decision.answered, **said})

    def of_litellm(self, body: bytes, headers: Mapping[str, str]) -> HttpAnswer | Refusal:
        """LiteLLM's path: a request is remembered and let through, its answer is judged with it."""
        try:
            call = litellm.call_in(json_in(body), self._settings.unknown_content)
            if not call.is_response:
                self._requests.remember(call)
                return HttpAnswer(200, litellm.answer("pass", ""))
            exchange = self._requests.exchange(call)
            if exchange is None:
                why = "no request of this litellm_call_id; expected mode: [pre_call, post_call]"
                sample = sample_asked(Exchange(call.messages, call.messages), None)
                decision = self._logged(
                    GuardrailVerdict(None, None, "no_request", why, 0),
                    call.id or sample.id,
                    None,
                    0.0,
                    headers,
                    None,
                )
            else:
                decision = self._judged(exchange, call.id, category_in(call.category), headers)
        except NoChat as error:
            return Refusal(400, str(error))
        return HttpAnswer(200, litellm.answer(decision.answered, reason(decision)))

    def refused(self, path: str, refusal: Refusal) -> HttpAnswer:
        """The answer to what was refused, with the action that `serve.fails` asks for."""
        action = answered(decided(None, self._settings), self._settings)
        with self._lock:
            self.counts["refused"] += 1
        if path and refusal.status != 401:  # who has no key does not write into the log
            line = RefusedRequest(
                time=_now(), path=path, status=refusal.status, error=refusal.error, answered=action
            )
            try:
                self._refusals.append(line.model_dump_json())
            except UserError as error:
                _log.error("serve: a refusal is not in the log: %s", error)
        if path == litellm.PATH:
            # The proxy takes any other status for a block.
            passes = action == "pass" and refusal.status in (400, *_UNTAKEN)
            body = litellm.answer(action, refusal.error)
            return HttpAnswer(200 if passes else refusal.status, body | {"error": refusal.error})
        return HttpAnswer(refusal.status, {"action": action, "error": refusal.error})

    def health(self) -> dict[str, str]:
        """`GET /health`."""
        return {"status": "failing" if self._monitor.is_failing else "ok"}

    def close(self) -> None:
        """Close the file of events; what is decided later is not in it."""
        with self._lock:
            events, self._events = self._events, None
        if events is not None:
            events.close()

    def _judged(
        self, exchange: Exchange, name: str, category: str | None, headers: Mapping[str, str]
    ) -> DecisionLine:
        began = time.monotonic()
        thresholds = self._monitor.calibrated.thresholds
        if "" not in thresholds and category not in thresholds:
            raise NoChat(f"category: expected one of {', '.join(thresholds)}, which have a threshold each")
        sample = sample_asked(exchange, category)
        verdict = self._monitor.verdict(sample, began + self._settings.timeout_seconds)
        text = exchange if self._settings.log_text else None
        return self._logged(
            verdict,
            name or sample.id,
            category,
            time.monotonic() - began,
            headers,
            text,
            by_caller=bool(name),
        )

    def _logged(
        self,
        verdict: GuardrailVerdict,
        sample_id: str,
        category: str | None,
        seconds: float,
        headers: Mapping[str, str],
        text: Exchange | None,
        *,
        by_caller: bool = True,
    ) -> DecisionLine:
        """The decision, in the log; one that can't be logged is none."""
        settings = self._settings
        action = decided(verdict.flagged, settings)
        decision = DecisionLine(
            sample_id=sample_id,
            draw=self._draw(),
            time=_now(),
            monitor=self._monitor.name,
            score=verdict.score,
            threshold=self._monitor.calibrated.threshold(category),
            flagged=verdict.flagged,
            decided=action,
            answered=answered(action, settings),
            fails=settings.fails,
            shadow=settings.shadow,
            error=verdict.why or None,
            detail=verdict.detail,
            seconds=round(seconds, 6),
            prompt_tokens=verdict.prompt_tokens,
            category=category,
            request=text.request if text else None,
            response=text.response if text else None,
        )
        try:
            unshown = {"request", "response"} if text is None else None
            self._decisions.append(decision.model_dump_json(exclude=unshown))
        except UserError as error:
            unlogged = decided(None, self._settings)
            decision = decision.model_copy(
                update={
                    "flagged": None,
                    "decided": unlogged,
                    "answered": answered(unlogged, self._settings),
                    "error": "not_logged",
                    "detail": str(error),
                }
            )
        with self._lock:
            self.counts["unjudged" if decision.flagged is None else decision.decided] += 1
            if self._events is not None:
                event = event_of(
                    decision,
                    response_id=decision.sample_id if by_caller else "",
                    nanoseconds=time.time_ns(),
                    traceparent=headers.get("traceparent", ""),
                )
                with suppress(OSError):  # who listens to telemetry is not asked for a decision
                    self._events.write(event + "\n")
                    self._events.flush()
        return decision

    def _draw(self) -> int:
        """The time in microseconds, or one more than the last: no two decisions have the same."""
        with self._lock:
            self._last_draw = max(time.time_ns() // 1000, self._last_draw + 1)
            return self._last_draw


@contextmanager
def serving(
    monitor: OpenMonitor, settings: Serve, folder: Path, port: int, key: str | None
) -> Iterator[tuple[HttpServer, Guardrail]]:
    """A guardrail that is bound to its port, its logs in `folder`; `serve_forever` answers.

    On leaving, what is in hand is answered first, and what comes then refused. Raises what `open_appended`
    and `listening` raise.
    """
    limits = Limits(
        settings.most_bytes, settings.at_once, _CONNECTIONS * settings.at_once, settings.timeout_seconds + 1
    )
    with ExitStack() as stack:
        decisions = stack.enter_context(open_appended(folder / DECISIONS))
        refusals = stack.enter_context(open_appended(folder / REFUSALS))
        events = folder / EVENTS if settings.telemetry else None
        guardrail = Guardrail(monitor, settings, decisions, refusals, events)
        stack.callback(guardrail.close)
        posts = {PATH: guardrail.own, litellm.PATH: guardrail.of_litellm}
        server = stack.enter_context(
            listening(
                posts,
                settings.host,
                port,
                key,
                names=(*settings.names, reached_at(settings.host, "serve")),
                limits=limits,
                refused=guardrail.refused,
                health=guardrail.health,
            )
        )
        yield server, guardrail


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
