"""Flag or pass: what a verdict comes to under the settings, and its line in the log.

Promises: a request without a score is never passed where `serve.fails=closed`, unless in shadow mode, where
nothing is ever flagged; a line says what the monitor found, what was decided by it, and what was answered.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from monitorbench.config.deployment import Serve
from monitorbench.guardrail.monitor import GuardrailVerdict
from monitorbench.records import Message

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


def decision_of(
    verdict: GuardrailVerdict,
    settings: Serve,
    *,
    sample_id: str,
    time: str,
    monitor: str,
    threshold: float | None,
    seconds: float,
    category: str | None,
    text: tuple[tuple[Message, ...], tuple[Message, ...]] | None,
    draw: int,
) -> DecisionLine:
    """The decision on a verdict; `text` is what is logged of request and response."""
    action = decided(verdict.flagged, settings)
    return DecisionLine(
        sample_id=sample_id,
        draw=draw,
        time=time,
        monitor=monitor,
        score=verdict.score,
        threshold=threshold,
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
        request=text[0] if text else None,
        response=text[1] if text else None,
    )
