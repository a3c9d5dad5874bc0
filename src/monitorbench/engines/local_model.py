"""A model of this process: its tokenizer at once, its weights with the first question.

Starting an engine takes longer than judging a few hundred samples, so several adapters of the same weights
are asked on one engine (`LocalModel.on`).
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from monitorbench.engines.adapter_gate import adapter_change
from monitorbench.engines.protocol import Decoding, Engine, Reply, Request


class LocalModel:
    """A `Model` on an `Engine`, with one of its adapters or none; `load` is called at the first request."""

    def __init__(
        self, tokenizer: Any, load: Callable[[], Engine], adapter: Path | None = None, *, closes: bool = True
    ) -> None:
        """Take an engine; with `closes=False` it is another model's, and stays open."""
        self.tokenizer = tokenizer
        self._load, self._adapter, self._closes = load, adapter, closes
        self._engine: Engine | None = None
        self._change: float | None = None

    def on(self, adapter: Path | None) -> "LocalModel":
        """This model with one of the engine's adapters, None: the base; closing it closes no engine.

        One of the models on an engine is asked at a time.
        """
        return LocalModel(self.tokenizer, self._loaded, adapter, closes=False)

    def prepare(self, first: Request, decoding: Decoding) -> float | None:
        """See `Model.prepare`; one adapter is checked once."""
        engine = self._taken()
        if self._adapter and self._change is None:
            self._change = adapter_change(engine, first.token_ids, decoding)
        return self._change

    def answers(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        """See `Model.answers`."""
        yield from self._taken().complete([request.token_ids for request in requests], decoding)

    def close(self) -> None:
        """Give back the engine's memory, where one was loaded."""
        if self._engine is not None and self._closes:
            self._engine.close()
        self._engine = None

    def _loaded(self) -> Engine:
        if self._engine is None:
            self._engine = self._load()
        return self._engine

    def _taken(self) -> Engine:
        engine = self._loaded()
        engine.take(self._adapter)
        return engine
