"""A model of this process: its tokenizer at once, its weights with the first question."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from monitorbench.engines.adapter_gate import adapter_change
from monitorbench.engines.protocol import Completion, Decoding, Engine, Reply, Request


class LocalModel:
    """A `Model` on an `Engine`, with one of its adapters or none. `load` is called at the first request.

    An engine that other models are asked on as well is not closed with it (`closes`).
    """

    def __init__(
        self, tokenizer: Any, load: Callable[[], Engine], adapter: Path | None = None, *, closes: bool = True
    ) -> None:
        self.tokenizer = tokenizer
        self._load, self._adapter, self._closes = load, adapter, closes
        self._engine: Engine | None = None
        self._change: float | None = None

    def prepare(self, first: Request, decoding: Decoding) -> float | None:
        """See `Model.prepare`; one adapter is checked once."""
        engine = self._loaded()
        if self._adapter and self._change is None:
            self._change = adapter_change(engine, first.token_ids, decoding)
        return self._change

    def answers(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        """See `Model.answers`."""
        prompts = [request.token_ids for request in requests]
        for index, completion in self._loaded().complete(prompts, decoding):
            yield index, _reply(completion, len(prompts[index]))

    def close(self) -> None:
        """Give back the engine's memory, where one was loaded."""
        if self._engine is not None and self._closes:
            self._engine.close()
        self._engine = None

    def _loaded(self) -> Engine:
        if self._engine is None:
            self._engine = self._load()
        self._engine.take(self._adapter)
        return self._engine


def _reply(completion: Completion, prompt_tokens: int) -> Reply:
    """A completion as every caller of a model sees it."""
    return Reply(
        text=completion.text,
        finish_reason=completion.finish_reason,
        top_logprobs=None,
        prompt_tokens=prompt_tokens,
        completion_tokens=len(completion.token_ids),
        seconds=completion.seconds,
        cost=0.0,
        failure=None,
        detail="",
        token_ids=completion.token_ids,
        logprobs=completion.logprobs,
        stop_token_id=completion.stop_token_id,
        states=completion.states,
    )
