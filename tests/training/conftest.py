"""A data set of the planted phrase in place of the starter."""

import pytest
from small_runs import plant


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """The folder whose `data/planted-0` every training run then reads."""
    from monitorbench.training import sft

    directory = plant(tmp_path)
    monkeypatch.setattr(sft, "ensure", lambda study, splits: directory)
    return tmp_path
