"""Heads for the tests: a regression on the states of a few samples, by scikit-learn."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from monitorbench.config.study import Study, TransformersEngine
from monitorbench.config.training import Position
from monitorbench.engines.protocol import Request
from monitorbench.engines.stored.head import HEAD_FILE, FittedHead, ReadFrom
from monitorbench.engines.stored.model_folder import load_tokenizer
from monitorbench.engines.transformers_engine import HiddenStates
from monitorbench.engines.weights import weights_identity
from monitorbench.judging.states import rendering, response_span
from monitorbench.prompts.render import Renderer
from monitorbench.records import Label, Sample

LAYER = 18
"""Of the 30 of SmolLM2."""
POSITIONS: tuple[Position, ...] = ("last", "mean", "max")


def fitted_heads(
    study: Study, weights: Path, layer: int, samples: Sequence[Sample], folder: Path
) -> dict[Position, Path]:
    """By position a folder that is a `monitor.head`; the model is loaded once."""
    assert isinstance(study.engine, TransformersEngine)
    renderer = Renderer(study.prompt, load_tokenizer(weights), study.monitor.opening)
    reads = HiddenStates(study.engine, weights, (layer,), POSITIONS, None)
    pooled = []
    for sample in samples:
        ids = renderer.render(sample)
        span = response_span(renderer, sample, ids)
        pooled.append(reads.states(Request(token_ids=ids, response=span))[0, 0])
    reads.close()
    labels = [sample.label is Label.MISBEHAVIOR for sample in samples]
    found: dict[Position, Path] = {}
    for number, position in enumerate(POSITIONS):
        states = np.stack(pooled)[:, number].astype(np.float64)
        mean, scale = states.mean(0), states.std(0) + 1e-3
        fitted = LogisticRegression(C=0.01).fit((states - mean) / scale, labels)
        tensors = {"mean": mean, "scale": scale, "v": fitted.coef_[0], "c": fitted.intercept_}
        head = FittedHead(
            ReadFrom(
                weights=weights_identity(study.monitor),
                rendering=rendering(study.prompt, study.monitor),
                shares=(0.5,),
                positions=POSITIONS,
                layer=layer,
                position=position,
            ),
            {name: tensor.astype(np.float32) for name, tensor in tensors.items()},
        )
        found[position] = folder / position / HEAD_FILE
        found[position].parent.mkdir(parents=True)
        head.save(found[position])
    return found
