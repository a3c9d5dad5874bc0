"""Opens the model of a configured engine; the only place that knows every kind of engine.

Only the chosen engine's library is imported. A model of this process has its tokenizer at once and its
weights with the first question; starting an engine takes longer than judging a few hundred samples, so
several adapters of the same weights are asked on one engine (`LocalModel.on`), each once it is shown that its
log-probabilities are not the base's (decision 5).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.endpoint import OpenAiEngine
from monitorbench.config.engine import Engine as EngineSettings
from monitorbench.config.engine import LocalEngine, TransformersEngine, VllmEngine
from monitorbench.config.monitor import Monitor
from monitorbench.engines.protocol import Decoding, Engine, Model, Reply, Request
from monitorbench.engines.stored.adapter import adapter_folder


def open_model(
    monitor: Monitor,
    engine: EngineSettings,
    models: Path,
    *,
    spent: float = 0.0,
    run: Path | None = None,
    shared: "LocalModel | None" = None,
) -> Model:
    """The monitor's model on its engine; `models` is the folder that models are kept in.

    `run` is the directory that a batch API's batches are written down in. `spent` is what earlier processes
    paid of an endpoint's `max_cost`. A model of this process is asked on `shared` where that is given. Raises
    `UserError` where weights, an adapter or an endpoint's key are missing.
    """
    match engine:
        case OpenAiEngine():
            from monitorbench.engines.endpoint.chat import Endpoint

            engine = engine.with_opening(monitor)
            if engine.batch is not None:
                return _batch_endpoint(engine, run, spent)
            tokenizer = _served_tokenizer(monitor, engine, models) if engine.by_token_ids else None
            return Endpoint(engine, spent=spent, tokenizer=tokenizer)
        case TransformersEngine() | VllmEngine():
            adapter = adapter_folder(monitor.adapter)
            if shared is not None:
                return shared.on(adapter)
            return LocalModel(*_loading(monitor, engine, models, [adapter] if adapter else []), adapter)


def share_engine(
    monitor: Monitor, engine: LocalEngine, models: Path, adapters: Sequence[Path]
) -> "LocalModel":
    """The monitor's weights on one engine, to be asked with several PEFT folders (`LocalModel.on`).

    It is loaded with the first question. Raises `UserError` where weights are missing or do not fit this
    machine.
    """

    return LocalModel(*_loading(monitor, engine, models, adapters))


def open_engine(
    config: LocalEngine,
    weights: Path,
    adapters: Sequence[Path],
    context_tokens: int,
    tokenizer: Any = None,
) -> Engine:
    """Load the model folder `weights` into an engine that can take the PEFT folders `adapters`.

    `tokenizer` is the folder's, where it has been read: a second one takes 60 MB.

    Raises `UserError` for a model that needs code of its own, and for an adapter that is not one for it.
    """
    from monitorbench.engines.stored.adapter import refuse_unfit_adapter
    from monitorbench.engines.stored.model_folder import load_config

    load_config(weights)
    for adapter in adapters:
        refuse_unfit_adapter(adapter, weights)
    match config:
        case TransformersEngine():
            from monitorbench.engines.transformers_engine import InProcessTransformers

            return InProcessTransformers(config, weights, tokenizer)
        case VllmEngine():
            from monitorbench.engines.vllm_engine import InProcessVllm

            return InProcessVllm(config, weights, adapters, context_tokens)


def _batch_endpoint(engine: OpenAiEngine, run: Path | None, spent: float) -> Model:
    from monitorbench.engines.endpoint.batch import BatchEndpoint

    if run is None:
        raise ConfigError("engine.batch: for `monitorbench evaluate` alone; expected engine.batch=null")
    return BatchEndpoint(engine, run, spent=spent)


def _served_tokenizer(monitor: Monitor, engine: OpenAiEngine, models: Path) -> Any:
    """The tokenizer of the monitor's weights, which have to be those that a server of ours says it has."""
    from monitorbench.engines.stored.model_folder import load_tokenizer
    from monitorbench.engines.weights import at_identity, weights_folder, weights_identity

    if engine.serves is not None:
        monitor = at_identity(monitor, engine.serves.weights)
        if (here := weights_identity(monitor)) != engine.serves.weights:
            raise UserError(
                f"engine.server={engine.server} serves {engine.serves.weights}, "
                f"monitor={monitor.name} is {here}: "
                "their token ids may differ; expected the monitor that is served, or "
                "engine.by_token_ids=false"
            )
    return load_tokenizer(weights_folder(monitor, models))


def _loading(
    monitor: Monitor, engine: LocalEngine, models: Path, adapters: Sequence[Path]
) -> tuple[Any, Callable[[], Engine]]:
    """The tokenizer, and what loads the engine."""
    from monitorbench.engines.stored.model_folder import load_tokenizer
    from monitorbench.engines.weights import weights_that_fit

    if isinstance(engine, VllmEngine):
        engine = engine.for_monitor(monitor.tensor_parallel_size)
    weights = weights_that_fit(monitor, engine, models)
    tokenizer = load_tokenizer(weights)
    return tokenizer, lambda: open_engine(engine, weights, adapters, monitor.context_tokens, tokenizer)


ADAPTER_GATE = 1e-4
"""An adapter that changes no label token's log-probability by this much is not on the model."""


def refuse_idle_adapter(tuned: Sequence[float], base: Sequence[float]) -> float:
    """The largest change of a label token's log-probability, over those that the base gives a finite one.

    Raises `UserError` below `ADAPTER_GATE`: the base would be judged under the adapter's name.
    """
    compared = [(new, old) for new, old in zip(tuned, base, strict=True) if math.isfinite(old)]
    if not all(math.isfinite(new) for new, _ in compared):
        raise UserError("the adapter gives a label a log-probability that is not finite: it is broken")
    change = max((abs(new - old) for new, old in compared), default=0.0)
    if change < ADAPTER_GATE:
        raise UserError(
            f"the adapter changes no log-probability by {ADAPTER_GATE:g} (largest change {change:.2g}): "
            "it is not on the model, or it was not trained"
        )
    return change


def adapter_change(engine: Engine, prompt: Sequence[int], decoding: Decoding) -> float:
    """Ask one prompt with the adapter and without; returns and raises what `refuse_idle_adapter` does."""
    first_token = Decoding(1, decoding.stop_token_ids, decoding.scored_token_ids)
    # The base first: an engine that holds one model at a time then has the right one loaded.
    ((_, base),) = engine.complete([prompt], first_token, with_adapter=False)
    ((_, tuned),) = engine.complete([prompt], first_token)
    scored = decoding.scored_token_ids
    return refuse_idle_adapter([tuned.logprobs[i] for i in scored], [base.logprobs[i] for i in scored])


class LocalModel(Model):
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
