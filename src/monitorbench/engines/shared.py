"""One engine of this process under several models: the same weights, each with an adapter of its own or none.

Starting an engine takes longer than judging a few hundred samples, so the adapters of a study are judged
in one start (`judging.adapters`).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from monitorbench.engines.local_model import LocalModel
from monitorbench.engines.protocol import Engine, Model


class SharedEngine:
    """An `Engine` that is loaded with the first question about any of its adapters, and closed once."""

    def __init__(
        self, tokenizer: Any, load: Callable[[], Engine], around: Callable[[Model], Model] | None = None
    ) -> None:
        """`around` puts something between a model and who asks it, such as a probe that reads its passes."""
        self._tokenizer, self._load, self._around = tokenizer, load, around
        self._engine: Engine | None = None

    def model(self, adapter: Path | None) -> Model:
        """The model with one of the adapters, None: the base; closing it leaves the engine open.

        One of the models is asked at a time.
        """
        model = LocalModel(self._tokenizer, self._loaded, adapter, closes=False)
        return self._around(model) if self._around else model

    def close(self) -> None:
        """Give back the engine's memory, where one was loaded."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def _loaded(self) -> Engine:
        if self._engine is None:
            self._engine = self._load()
        return self._engine
