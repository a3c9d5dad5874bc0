"""The shipped examples, and the scripted engine's fixtures."""

from pathlib import Path

import pytest
from scripted_engine import model_folder, says, study, use_engine

__all__ = ["examples", "model_folder", "says", "study", "use_engine"]


@pytest.fixture
def examples() -> Path:
    return Path(__file__).parents[2] / "examples"
