"""A data set of the planted phrase in place of the starter, and a model that trains in no time."""

import pytest
from small_models import tiny_model
from small_runs import plant


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """The folder whose `data/planted-0` every training run then reads."""
    from monitorbench.training import sft

    directory = plant(tmp_path)
    monkeypatch.setattr(sft, "ensure", lambda study, splits: directory)
    return tmp_path


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """A randomly initialised model of two layers, in float32."""
    return tiny_model(tmp_path_factory.mktemp("tiny"))
