"""A graded prompt's numbers with their probabilities: one pass, or two where the tokenizer splits 10.

The first token of such a 10 is also how 1 begins. What follows it is asked for in a second pass, behind the
prompt and that token, so that the probabilities of 1 and 10 are those of the model and no guess. An engine
that caches prefixes pays for the prompt once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from monitorbench.engines.protocol import Decoding, Model, Reply, Request
from monitorbench.prompts.label_logprobs import sum_of_logs
from monitorbench.prompts.scale import ScaleTokens

_AT_ONCE = 64
"""Prompts between both passes: few enough that a small cache still holds them in the second."""


class NumberModel:
    """A `Model` whose scored replies have each number's log-probability, by its text, in `top_logprobs`.

    What is not scored, such as the thoughts of a monitor that reasons first, is passed on as it is. Prompt
    and completion tokens are those of the first pass, seconds and cost of both.
    """

    def __init__(self, model: Model, scale: ScaleTokens) -> None:
        self.tokenizer: Any = model.tokenizer
        self._model, self._scale = model, scale

    def prepare(self, first: Request, decoding: Decoding) -> float | None:
        """See `Model.prepare`."""
        return self._model.prepare(first, decoding)

    def answers(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        """See `Model.answers`."""
        if not decoding.scored_token_ids:
            yield from self._model.answers(requests, decoding)
            return
        if self._scale.zero is None:
            for index, reply in self._model.answers(requests, decoding):
                yield index, self._with_numbers(reply, None)
            return
        for start in range(0, len(requests), _AT_ONCE):
            for offset, reply in self._both(requests[start : start + _AT_ONCE], decoding, self._scale.zero):
                yield start + offset, reply

    def _both(
        self, requests: Sequence[Request], decoding: Decoding, zero: int
    ) -> Iterator[tuple[int, Reply]]:
        ones = self._scale.numbers[1]
        first: dict[int, Reply] = {}
        for index, reply in self._model.answers(requests, decoding):
            if reply.failure is not None:
                yield index, reply
            else:
                first[index] = reply
        asked = [(index, one) for index in first for one in ones]
        behind = [Request(token_ids=(*requests[index].token_ids, one)) for index, one in asked]
        second: dict[int, dict[int, Reply]] = {index: {} for index in first}
        for number, reply in self._model.answers(behind, Decoding(1, decoding.stop_token_ids, (zero,))):
            index, one = asked[number]
            second[index][one] = reply
            if len(second[index]) == len(ones):
                yield index, self._joined(first[index], second[index], zero)

    def _joined(self, first: Reply, second: dict[int, Reply], zero: int) -> Reply:
        replies = second.values()
        reply = replace(
            first,
            seconds=first.seconds + sum(one.seconds for one in replies),
            cost=first.cost + sum(one.cost for one in replies),
        )
        failed = next((one for one in replies if one.failure is not None), None)
        if failed is not None:
            return replace(reply, failure=failed.failure, detail=failed.detail)
        ways = [
            first.logprobs.get(one, float("nan")) + reply.logprobs.get(zero, float("nan"))
            for one, reply in second.items()
        ]
        return self._with_numbers(reply, sum_of_logs(ways))

    def _with_numbers(self, reply: Reply, ten: float | None) -> Reply:
        if reply.failure is not None:
            return reply
        return replace(reply, top_logprobs=self._scale.logprobs(reply.logprobs, ten))

    def close(self) -> None:
        """See `Model.close`."""
        self._model.close()
