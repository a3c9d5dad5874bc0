"""Opens the model of a configured engine; the only place that knows every kind of engine.

Only the chosen engine's library is imported.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.endpoint import OpenAiEngine
from monitorbench.config.engine import Engine as EngineSettings
from monitorbench.config.engine import LocalEngine, TransformersEngine, VllmEngine
from monitorbench.config.monitor import Monitor
from monitorbench.engines.protocol import Engine, Model
from monitorbench.engines.stored.adapter import adapter_folder

if TYPE_CHECKING:
    from monitorbench.engines.local_model import LocalModel


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
            from monitorbench.engines.local_model import LocalModel

            return LocalModel(*_loading(monitor, engine, models, [adapter] if adapter else []), adapter)


def share_engine(
    monitor: Monitor,
    engine: LocalEngine,
    models: Path,
    adapters: Sequence[Path],
) -> "LocalModel":
    """The monitor's weights on one engine, to be asked with several PEFT folders (`LocalModel.on`).

    It is loaded with the first question. Raises `UserError` where weights are missing or do not fit this
    machine.
    """
    from monitorbench.engines.local_model import LocalModel

    return LocalModel(*_loading(monitor, engine, models, adapters))


def open_engine(config: LocalEngine, weights: Path, adapters: Sequence[Path], context_tokens: int) -> Engine:
    """Load the model folder `weights` into an engine that can take the PEFT folders `adapters`.

    Raises `UserError` for a model that needs code of its own, and for an adapter that is not one for it.
    """
    from monitorbench.engines.stored.adapter import refuse_unfit_adapter
    from monitorbench.engines.stored.load import load_config

    load_config(weights)
    for adapter in adapters:
        refuse_unfit_adapter(adapter, weights)
    match config:
        case TransformersEngine():
            from monitorbench.engines.transformers_engine import InProcessTransformers

            return InProcessTransformers(config, weights)
        case VllmEngine():
            from monitorbench.engines.vllm_engine import InProcessVllm

            return InProcessVllm(config, weights, adapters, context_tokens)


def _batch_endpoint(engine: OpenAiEngine, run: Path | None, spent: float) -> Model:
    from monitorbench.engines.endpoint.batch import BatchEndpoint

    if run is None:
        raise ConfigError("engine.batch: for eval/evaluate.py alone; expected engine.batch=null")
    return BatchEndpoint(engine, run, spent=spent)


def _served_tokenizer(monitor: Monitor, engine: OpenAiEngine, models: Path) -> Any:
    """The tokenizer of the monitor's weights, which have to be those that a server of ours says it has."""
    from monitorbench.engines.stored.load import load_tokenizer
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
    from monitorbench.engines.size import refuse_too_large
    from monitorbench.engines.stored.load import load_tokenizer
    from monitorbench.engines.weights import weights_folder

    if isinstance(engine, VllmEngine):
        engine = engine.for_monitor(monitor.tensor_parallel_size)
    refuse_too_large(monitor, engine)  # before it is downloaded
    weights = weights_folder(monitor, models)
    refuse_too_large(monitor, engine, weights)
    return load_tokenizer(weights), lambda: open_engine(engine, weights, adapters, monitor.context_tokens)
