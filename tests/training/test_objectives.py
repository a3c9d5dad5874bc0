"""The list of objectives against the settings, and what each declares."""

from typing import get_args

import pytest
from studies import study

from monitorbench.config.training import Objective
from monitorbench.records import Split
from monitorbench.training.trainer import OBJECTIVES, objective_of


def test_every_objective_of_the_settings_is_in_the_list():
    """If it failed: a study would validate, and its training end in a traceback on the cluster."""
    assert tuple(one.name for one in OBJECTIVES) == get_args(Objective)


@pytest.mark.parametrize("name", get_args(Objective))
def test_the_settings_name_their_objective(name):
    """If it failed: a run would be reported under an objective that it was not trained by."""
    training = study(f"training.objective={name}").training
    found = objective_of(training)
    assert found.name == name
    # An objective that draws on another source may repeat what is judged there: it reads the test split.
    assert (Split.TEST in found.extra_splits) == (training.extra_source is not None)
