"""The form of a moderation endpoint, OpenAI's `/moderations`: one text in, a score for each category out.

A rating becomes the reply of a guard model: `flagged` or `passed`, the flagged categories behind it, and the
log-probabilities of both words, those of the highest category's score and of the rest. A rating that is none
fails.
"""

import math
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from monitorbench import strict_json
from monitorbench.config.endpoint import OpenAiEngine
from monitorbench.engines.endpoint.limits import cost, estimated_tokens
from monitorbench.engines.endpoint.reply import failed, is_model, one_line
from monitorbench.engines.protocol import Decoding, Reply, Request

FLAGGED, PASSED = "flagged", "passed"


class _Rating(BaseModel):
    flagged: bool
    categories: dict[str, bool | None] = {}
    category_scores: Annotated[dict[str, Annotated[float, Field(ge=0, le=1)]], Field(min_length=1)]


class _Body(BaseModel):
    model: str = ""
    results: Annotated[list[_Rating], Field(min_length=1, max_length=1)]


def moderation_input(request: Request) -> dict[str, Any]:
    """The part of the body that differs from one request to the next: the judged text."""
    return {"input": request.messages[-1].content}


def read_moderation(
    body: bytes, config: OpenAiEngine, decoding: Decoding, request: Request, seconds: float
) -> Reply:
    """The reply in the body of a successful response to a request."""
    try:
        strict_json.loads(body, of_python=True)  # for keys that stand there twice
        answer = _Body.model_validate_json(body)
    except (ValidationError, ValueError, RecursionError) as error:
        return failed("bad_response", f"no moderation: {type(error).__name__}", seconds)
    if not is_model(answer.model, config):
        return failed(
            "bad_response", f"answered by model {answer.model[:60]!r}; expected {config.model!r}", seconds
        )
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
