"""The one check that an adapter is on its model: its log-probabilities are not the base's (decision 5)."""

import math
from collections.abc import Sequence

from monitorbench.config.base import UserError
from monitorbench.engines.protocol import Decoding, Engine

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
