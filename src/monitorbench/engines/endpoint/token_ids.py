"""`engine.by_token_ids`: a completion asked for by token ids, and its answer read by token id.

What is sent is what an engine of this process is given, so that verdicts agree. The fields beside the
documented ones (`stop_token_ids`, `logprob_token_ids`, `return_token_ids`, …) are those of vLLM's server.
"""

from typing import Any

from pydantic import BaseModel, StrictFloat, StrictInt, ValidationError

from monitorbench import strict_json
from monitorbench.config.endpoint import OpenAiEngine
from monitorbench.engines.endpoint.limits import cost
from monitorbench.engines.endpoint.reply import failed, is_model, one_line
from monitorbench.engines.protocol import Decoding, Reply, Request

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


class _Body(BaseModel):
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
    try:
        strict_json.loads(body, of_python=True)  # for keys that stand there twice
        answer = _Body.model_validate_json(body)
    except (ValidationError, ValueError, RecursionError) as error:
        return failed("bad_response", f"no completion: {type(error).__name__}", seconds)
    if not answer.choices or answer.choices[0].token_ids is None:
        return failed("bad_response", "no token ids: not a server for engine.by_token_ids=true", seconds)
    choice, ids = answer.choices[0], tuple(answer.choices[0].token_ids or ())
    finish = choice.finish_reason or ""
    logprobs = _logprobs(choice, decoding)
    wrong = ""
    if finish not in ("stop", "length"):
        wrong = f"finish_reason {finish or 'none'}"
    elif not is_model(answer.model, config):
        wrong = f"answered by model {answer.model[:60]!r}; expected {config.model!r}"
    elif logprobs is None:
        wrong = "a scored token has no log-probability"
    stop = next((i for i, token in enumerate(ids) if token in decoding.stop_token_ids), None)
    if stop is None and finish == "stop" and ids:  # the model's own end, which the template doesn't use
        stop = len(ids) - 1
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
        token_ids=ids if stop is None else ids[:stop],
        logprobs=logprobs or {},
        stop_token_id=None if stop is None else ids[stop],
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
