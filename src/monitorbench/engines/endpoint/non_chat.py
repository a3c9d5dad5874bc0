"""Endpoints that are sent no chat: completions by token ids, and moderation of a text.

`engine.by_token_ids` sends what an engine of this process is given, so that verdicts agree. The fields beside
the documented ones (`stop_token_ids`, `logprob_token_ids`, `return_token_ids`, …) are those of vLLM's server.

A moderation endpoint, OpenAI's `/moderations`, rates one text by category. A rating becomes the reply of a
guard model: `flagged` or `passed`, the flagged categories behind it, and the log-probabilities of both words,
those of the highest category's score and of the rest. A rating that is none fails.
"""

import math
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, StrictFloat, StrictInt

from monitorbench import strict_json
from monitorbench.config.endpoint import OpenAiEngine
from monitorbench.engines.endpoint.limits import cost, estimated_tokens
from monitorbench.engines.endpoint.reply import failed, is_model, one_line
from monitorbench.engines.protocol import Decoding, Reply, Request

_T = TypeVar("_T", bound=BaseModel)


def _parsed(body: bytes, form: type[_T], what: str, seconds: float) -> _T | Reply:
    """The body of a successful response in its form; a reply that failed where it is none."""
    try:
        strict_json.loads(body, of_python=True)  # for keys that stand there twice
        return form.model_validate_json(body)
    except (ValueError, RecursionError) as error:
        return failed("bad_response", f"no {what}: {type(error).__name__}", seconds)


def _by_another(model: str, config: OpenAiEngine) -> str:
    return f"answered by model {model[:60]!r}; expected {config.model!r}"


_NAMED = "token_id:"
"""How the server spells a token that is asked for by its id."""
_ROUNDING = 1e-3


class _Logprobs(BaseModel):
    top_logprobs: list[dict[str, StrictFloat | StrictInt] | None] = []


class _Choice(BaseModel):
    text: str
    finish_reason: str | None = None
    stop_reason: StrictInt | str | None = None
    token_ids: list[StrictInt] | None = None
    logprobs: _Logprobs | None = None


class _Completion(BaseModel):
    choices: list[_Choice]
    model: str = ""


def completion_fields(model: str, decoding: Decoding) -> dict[str, Any]:
    """Fields that all requests of a round have in common: all but the prompt."""
    extra: dict[str, Any] = {
        "stop_token_ids": list(decoding.stop_token_ids),
        "skip_special_tokens": False,
        "return_token_ids": True,
    }
    fields: dict[str, Any] = {"model": model, "max_tokens": decoding.max_new_tokens, "temperature": 0}
    if decoding.scored_token_ids:
        fields["logprobs"] = 1  # the server wants it beside the ids, which take precedence
        extra |= {"logprob_token_ids": list(decoding.scored_token_ids), "return_tokens_as_token_ids": True}
    return fields | extra


def read_completion(
    body: bytes, config: OpenAiEngine, decoding: Decoding, request: Request, seconds: float
) -> Reply:
    """The reply in the body of a successful response, as a model of this process gives it.

    An answer without its token ids, or without the log-probability of a scored one, is a bad response:
    nothing else says what the label's score is.
    """
    prompt_tokens = len(request.token_ids)
    answer = _parsed(body, _Completion, "completion", seconds)
    if isinstance(answer, Reply):
        return answer
    if not answer.choices or answer.choices[0].token_ids is None:
        return failed("bad_response", "no token ids: not a server for engine.by_token_ids=true", seconds)
    choice, ids = answer.choices[0], tuple(answer.choices[0].token_ids or ())
    finish = choice.finish_reason or ""
    logprobs = _logprobs(choice, decoding)
    wrong = ""
    if finish not in ("stop", "length"):
        wrong = f"finish_reason {finish or 'none'}"
    elif not is_model(answer.model, config):
        wrong = _by_another(answer.model, config)
    elif logprobs is None:
        wrong = "a scored token has no log-probability"
    answer_ids, stop_token_id = decoding.cut(ids, ended=finish == "stop")
    return Reply(
        text=choice.text,
        finish_reason=one_line(finish),
        prompt_tokens=prompt_tokens,
        completion_tokens=len(ids),
        seconds=seconds,
        cost=cost(config.paid_prices, prompt_tokens, 0, len(ids)),
        failure="bad_response" if wrong else None,
        detail=one_line(wrong),
        served_model=one_line(answer.model),
        token_ids=answer_ids,
        logprobs=logprobs or {},
        stop_token_id=stop_token_id,
    )


def _logprobs(choice: _Choice, decoding: Decoding) -> dict[int, float] | None:
    """Log-probabilities of the scored tokens at the first position; None where a token has none."""
    if not decoding.scored_token_ids:
        return {}
    positions = choice.logprobs.top_logprobs if choice.logprobs else []
    first = (positions[0] or {}) if positions else {}
    logprobs = {token: first.get(f"{_NAMED}{token}") for token in decoding.scored_token_ids}
    if any(value is None or not value <= _ROUNDING for value in logprobs.values()):
        return None
    return {token: min(float(value), 0.0) for token, value in logprobs.items() if value is not None}


FLAGGED, PASSED = "flagged", "passed"


class _Rating(BaseModel):
    flagged: bool
    categories: dict[str, bool | None] = {}
    category_scores: Annotated[dict[str, Annotated[float, Field(ge=0, le=1)]], Field(min_length=1)]


class _Moderation(BaseModel):
    model: str = ""
    results: Annotated[list[_Rating], Field(min_length=1, max_length=1)]


def moderation_input(request: Request) -> dict[str, Any]:
    """The part of the body that differs from one request to the next: the judged text."""
    return {"input": request.messages[-1].content}


def read_moderation(
    body: bytes, config: OpenAiEngine, decoding: Decoding, request: Request, seconds: float
) -> Reply:
    """The reply in the body of a successful response to a request."""
    answer = _parsed(body, _Moderation, "moderation", seconds)
    if isinstance(answer, Reply):
        return answer
    if not is_model(answer.model, config):
        return failed("bad_response", _by_another(answer.model, config), seconds)
    (rating,) = answer.results
    score = max(rating.category_scores.values())
    named = [name for name, is_flagged in rating.categories.items() if is_flagged]
    named.sort(key=lambda name: -rating.category_scores.get(name, 0.0))
    n_tokens = estimated_tokens(request.characters)
    return Reply(
        text=f"{FLAGGED}\n{', '.join(named)}" if rating.flagged else PASSED,
        finish_reason="stop",
        top_logprobs={FLAGGED: _log(score), PASSED: _log(1 - score)},
        prompt_tokens=n_tokens,
        seconds=seconds,
        cost=cost(config.paid_prices, n_tokens, 0, 0),
        served_model=one_line(answer.model),
    )


def _log(probability: float) -> float:
    return math.log(probability) if probability > 0 else -math.inf
