"""One engine of this process under several models: the same weights, each with an adapter of its own or none.

Starting an engine takes longer than judging a few hundred samples, so the adapters of a study are judged
in one start (`judging.adapters`).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from monitorbench.engines.local_model import LocalModel
from monitorbench.engines.protocol import Engine


class SharedEngine:
    """An `Engine` that is loaded with the first question about any of its adapters, and closed once."""

    def __init__(self, tokenizer: Any, load: Callable[[], Engine]) -> None:
        self._tokenizer, self._load = tokenizer, load
        self._engine: Engine | None = None

    def model(self, adapter: Path | None) -> LocalModel:
        """The model with one of the adapters, None: the base; closing it leaves the engine open.

        One of the models is asked at a time.
        """
        return LocalModel(self._tokenizer, self._loaded, adapter, closes=False)

    def close(self) -> None:
        """Give back the engine's memory, where one was loaded."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def _loaded(self) -> Engine:
        if self._engine is None:
            self._engine = self._load()
        return self._engine
