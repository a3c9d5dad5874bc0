"""From a configured engine to a loaded one; only the chosen engine's library is imported."""

from pathlib import Path

from monitorbench.config.study import LocalEngine, TransformersEngine
from monitorbench.engines.protocol import Engine


def open_engine(config: LocalEngine, weights: Path, adapter: Path | None, context_tokens: int) -> Engine:
    """Load the model folder `weights`, and the PEFT folder `adapter` on it, into an engine."""
    if isinstance(config, TransformersEngine):
        from monitorbench.engines.transformers_engine import InProcessTransformers

        return InProcessTransformers(config, weights, adapter)
    from monitorbench.engines.vllm_engine import InProcessVllm

    return InProcessVllm(config, weights, adapter, context_tokens)
