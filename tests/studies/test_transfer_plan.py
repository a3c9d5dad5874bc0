"""What a transfer study is made of, and its plan on the real starter, which runs nothing."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from studies import study

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.load import validate
from monitorbench.config.study import Study
from monitorbench.studies.forecast import forecast
from monitorbench.studies.power import print_transfer_plan, study_power
from monitorbench.studies.transfer import (
    TrainingPoint,
    coming_runs,
    evaluation_study,
    frozen_folder,
    training_points,
    training_study,
)


@pytest.fixture
def asked(
    compose_study: Callable[..., Study], starter: Path, tmp_path: Path, model_folder: Path
) -> Callable[..., Study]:
    """A study over the starter; its model is a folder of the tokenizer."""

    def made(*overrides: str) -> Study:
        return compose_study(
            "transfer",
            f"paths.data={starter.parent}",
            f"paths.runs={tmp_path / 'runs'}",
            f"monitor.path={model_folder}",
            *overrides,
        )

    return made


def test_the_plan_counts_trainings_tests_and_pairs(asked: Callable[..., Study]):
    """A study that was planned for other tests than it makes sees less than was promised."""
    study = asked(
        "transfer.subsets=[all,safety_permission]", "transfer.seeds=[0,1,2]", "dataset.test.pairs_per_cell=4"
    )
    power, costs = study_power(study), forecast(coming_runs(study))
    cells = [cell for cell in power.cells if cell.cell != "overall"]
    trainings = [cost for cost in costs if cost.kind.startswith("train")]
    evaluations = [cost for cost in costs if cost.kind.startswith("evaluate")]
    assert (len(trainings), len(evaluations)) == (6, 7)
    assert power.seeds == (3,)
    assert power.n_tests == 2 * (len(cells) + 1) * 3, "too few benign questions for FAR 5 %"
    whole = study_power(asked("transfer.subsets=[all]", "transfer.seeds=[0]"))
    large = sum(cell.n_groups >= 59 for cell in whole.cells)
    assert whole.n_tests == len(whole.cells) * 3 + large > len(whole.cells) * 3
    assert {cell.n_pairs for cell in cells} == {4}
    assert {cost.samples for cost in trainings} == {study.training.steps * study.training.batch_size}
    assert {cost.samples for cost in evaluations} == {sum(2 * cell.n_pairs for cell in cells)}
    assert all(cost.tokens > 100 * cost.samples and not cost.is_finished for cost in costs)
    assert all("by its tokenizer" in how for cost in costs for how in cost.counted)
    assert all(fall is None for cell in cells for fall in cell.detectable), "four pairs show nothing"
    assert not study.paths.runs.exists()


def test_more_questions_and_seeds_show_smaller_falls(asked: Callable[..., Study]):
    """If it failed: somebody would pay for seeds that the plan says don't help."""
    more = "+transfer.also={more: {subsets: [all], seeds: [0, 1, 2, 3, 4]}}"
    found = study_power(
        asked(
            "transfer.subsets=[safety_permission]", "transfer.seeds=[0]", more, "transfer.assumed.seed_sd=0"
        )
    )
    overall, *cells = found.cells
    assert found.seeds == (1, 5)
    assert overall.cell == "overall"
    one, five = overall.detectable
    assert one is not None
    assert five is not None
    assert five < one < 0.3
    assert all(cell.detectable[0] is None or cell.detectable[0] > one for cell in cells)
    spread = study_power(
        asked("transfer.subsets=[all]", "transfer.seeds=[0,1,2,3,4]", "transfer.assumed.seed_sd=0.05")
    )
    assert spread.cells[0].detectable[0] is None or spread.cells[0].detectable[0] > five


def test_it_is_printed_in_80_columns_and_nothing_is_made(asked: Callable[..., Study], capsys: Any):
    """A plan that started the study would be the wrong command to try."""
    study = asked("transfer.subsets=[all]", "transfer.seeds=[0,1]", "transfer.make=true")
    print_transfer_plan(study)
    out = capsys.readouterr().out
    assert "base AUROC" in out
    assert "2 seeds" in out
    assert re.search(r"train sft +2 +0 ", out)
    assert re.search(r"evaluate direct +3 +0 ", out)
    assert max(map(len, out.splitlines())) <= 80
    assert not study.paths.runs.exists()


def test_what_it_cannot_plan_is_one_line(asked: Callable[..., Study], tmp_path: Path):
    """Without the data no cell is known; with finished runs there is nothing to plan."""
    with pytest.raises(UserError, match=r"not built.*monitorbench build"):
        print_transfer_plan(asked("transfer.subsets=[all]", f"paths.data={tmp_path / 'nothing'}"))
    with pytest.raises(ConfigError, match=r"plan=true: finished runs .* no transfer\.runs"):
        print_transfer_plan(asked("transfer.runs=[runs/evaluate/a]"))
    with pytest.raises(ConfigError, match=r"transfer\.by=head: a plan is for adapters"):
        print_transfer_plan(asked("transfer.subsets=[all]", "transfer.by=head"))


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


def test_further_trainings_have_the_study_s_seeds_and_objectives_are_its_own(asked: Callable[..., Study]):
    """If it failed: two seeds would be three for some trainings, or an objective be dropped unsaid."""
    more = "+transfer.also={more: {subsets: [safety_permission], objectives: [pairwise]}}"
    points = training_points(asked("transfer.subsets=[all]", "transfer.seeds=[3,4]", more).transfer)
    assert {(point.subset, point.seed) for point in points} == {
        (subset, seed) for subset in ("all", "safety_permission") for seed in (3, 4)
    }
    with pytest.raises(
        ConfigError, match=r"^training\.objective=pairwise: .*transfer\.objectives=\[pairwise\]"
    ):
        coming_runs(asked("transfer.subsets=[all]", "training.objective=pairwise"))


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
