"""A study's plan on the real starter: what it counts, and that nothing is run."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import Study
from monitorbench.studies.forecast import forecast
from monitorbench.studies.power import print_transfer_plan, study_power
from monitorbench.studies.transfer import coming_runs


@pytest.fixture
def asked(
    compose_study: Callable[..., Study], starter: Path, tmp_path: Path, tokenizer: Any
) -> Callable[..., Study]:
    """A study over the starter; its model is a folder of the tokenizer."""
    folder = tmp_path / "model"
    tokenizer.save_pretrained(folder)
    (folder / "config.json").write_text('{"model_type": "llama"}')
    (folder / "model.safetensors").write_bytes(b"weights")

    def made(*overrides: str) -> Study:
        return compose_study(
            "transfer",
            f"paths.data={starter.parent}",
            f"paths.runs={tmp_path / 'runs'}",
            f"monitor.path={folder}",
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
    with pytest.raises(UserError, match=r"not built.*data_build/build\.py"):
        print_transfer_plan(asked("transfer.subsets=[all]", f"paths.data={tmp_path / 'nothing'}"))
    with pytest.raises(ConfigError, match=r"plan=true: finished runs .* no transfer\.runs"):
        print_transfer_plan(asked("transfer.runs=[runs/evaluate/a]"))
    with pytest.raises(ConfigError, match=r"transfer\.by=head: a plan is for adapters"):
        print_transfer_plan(asked("transfer.subsets=[all]", "transfer.by=head"))
