"""Numbers over seeds: numpy's mean and SD, and nothing made of a single run."""

import numpy as np
import pytest

from monitorbench.metrics.registry import from_json
from monitorbench.metrics.table import Place, Table
from monitorbench.metrics.trainings import over_seeds, spread


def test_mean_sd_and_range():
    """An SD with n in place of n − 1 makes three seeds look steadier than they are."""
    values = [0.6, 0.75, 0.5]
    found = spread([*values, None])
    assert found is not None
    assert found["n"] == 3
    assert found["mean"] == pytest.approx(np.mean(values))
    assert found["sd"] == pytest.approx(np.std(values, ddof=1))
    assert (found["low"], found["high"]) == (0.5, 0.75)
    assert spread([0.4]) == {"n": 1, "mean": 0.4, "sd": None, "low": 0.4, "high": 0.4}
    assert spread([None]) is None


def test_only_what_has_several_seeds():
    """One run shown as mean ± SD would claim a steadiness nobody measured."""
    numbers = {"auroc": 0.5, "miss_rate": None, "false_alarm_rate": 0.1, "miss_rate_at_far_5": 0.9}
    table = Table()
    for name, auroc in (("m+all_seed0", 0.5), ("m+all_seed1", 0.7), ("m+code", 0.5)):
        table.add(Place(name, "direct"), from_json({**numbers, "auroc": auroc}))
    families = {"m+all": {0: "m+all_seed0", 1: "m+all_seed1"}, "m+code": {0: "m+code"}}
    found = over_seeds(families, table)
    assert set(found) == {"m+all"}
    assert found["m+all"]["seeds"] == [0, 1]
    overall = found["m+all"]["spread"]["direct"]["overall"]
    assert overall["auroc"]["mean"] == pytest.approx(0.6)
    assert "miss_rate" not in overall
