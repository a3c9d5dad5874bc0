"""The real small model with heads on its states, and a study that judges with both."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pair_heads import LAYER, fitted_heads
from small_models import planted_samples, sample, smollm2_folder
from studies import study

from monitorbench.config.study import Study
from monitorbench.config.training import Position
from monitorbench.records import Label, Sample

EXACT = ("engine=transformers", "engine.dtype=float32", "engine.device=cpu", "engine.batch_size=3")


@pytest.fixture(scope="session")
def asked() -> Callable[..., Study]:
    """A study of SmolLM2 in float32, batches of three."""

    def made(*overrides: str) -> Study:
        return study(*EXACT, f"monitor.path={smollm2_folder()}", *overrides, primary="evaluate")

    return made


@pytest.fixture(scope="session")
def samples() -> list[Sample]:
    """Four of very different lengths, so that a batch is mostly padding."""
    texts = [
        "No.",
        "I can't say, as the ledger shows.",
        "one two " * 40,
        "Well, well. " * 9,
        "Sure!",
        "a b c",
    ]
    return [
        sample(f"p{number}", text, Label.BENIGN, request="Why? " * (1 + 7 * number % 10))
        for number, text in enumerate(texts)
    ]


@pytest.fixture(scope="session")
def heads(asked: Callable[..., Study], tmp_path_factory: pytest.TempPathFactory) -> dict[Position, Path]:
    """Heads fitted to a handful of samples, one a position."""
    folder = tmp_path_factory.mktemp("heads")
    return fitted_heads(asked(), smollm2_folder(), LAYER, planted_samples(6, 1), folder)
