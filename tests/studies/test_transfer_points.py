"""What a transfer study is made of."""

import json

import pytest
from studies import study

from monitorbench.config.base import ConfigError
from monitorbench.config.load import validate
from monitorbench.config.study import Study
from monitorbench.studies.transfer import (
    TrainingPoint,
    evaluation_study,
    frozen_folder,
    training_points,
    training_study,
)


@pytest.fixture(scope="module")
def small() -> Study:
    """The small study's experiment, as the stage's script has it."""
    return study("experiment=transfer/cpu", primary="transfer")


def test_the_small_study_is_the_issues(small: Study):
    """Eight train subsets with one seed, three seeds for two of them, 240 and 600 samples."""
    found = training_points(small.transfer)
    assert len({point.subset for point in found}) == 8
    assert len(found) == 12
    seeds = {s: sorted(p.seed for p in found if p.subset == s) for s in {p.subset for p in found}}
    assert sorted(map(len, seeds.values())) == [1] * 6 + [3] * 2
    assert small.training.max_steps * small.training.batch_size == 240
    assert small.dataset.test.pairs_per_cell == 40, "times two, times the six cells that have so many"
    assert small.engine.kind == "vllm"
    assert small.transfer.make


def test_a_training_is_named_once():
    """A point that is asked for twice would be trained, and counted in the matrix, twice."""
    asked = study(
        "transfer.subsets=[all,safety_permission/code]",
        "+transfer.also={more: {subsets: [all], seeds: [0, 1], objectives: [sft]}}",
        primary="transfer",
    )
    assert training_points(asked.transfer) == [
        TrainingPoint("all", 0, "sft"),
        TrainingPoint("safety_permission/code", 0, "sft"),
        TrainingPoint("all", 1, "sft"),
    ]


def test_a_points_study_is_what_the_script_composes(small: Study):
    """If it failed: the adapters that `train/sft.py experiment=…` made would be trained a second time."""
    ours = training_study(small, TrainingPoint("safety_permission/code", 2, "sft"))
    typed = study("experiment=transfer/cpu", "dataset.train.subset=safety_permission/code", "seed=2")
    same = {"tracking", "transfer", "run"}
    assert ours.model_dump(exclude=same) == typed.model_dump(exclude=same)
    judged = evaluation_study(small, None)
    typed = study("experiment=transfer/cpu", primary="evaluate")
    assert judged.model_dump(exclude=same) == typed.model_dump(exclude=same)


def test_runs_of_a_study_are_grouped_in_tracking(small: Study):
    """Forty runs of a study among everybody else's are found by nobody."""
    group = frozen_folder(small).name
    assert training_study(small, TrainingPoint("all", 0, "sft")).tracking.group == group
    assert evaluation_study(small, None).tracking.group == group
    tree = json.loads(small.model_dump_json())
    tree["tracking"]["group"] = "mine"
    assert evaluation_study(validate(json.dumps(tree)), None).tracking.group == "mine"


@pytest.mark.parametrize(
    "wrong", ["transfer.subsets=[safty]", "transfer.objectives=[sfft]", "transfer.seeds=[-1]"]
)
def test_a_misspelt_point_is_refused_before_anything_is_trained(wrong: str):
    """An hour of training in front of the error is an hour lost."""
    with pytest.raises(ConfigError, match=r"expected|greater than"):
        study(wrong, primary="transfer")
