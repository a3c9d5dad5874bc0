"""A study by heads, from states to matrix, on the real starter and a tiny model."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_models import tiny_model

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import Study
from monitorbench.studies.transfer import transfer

SMALL = (
    "transfer.by=head",
    "transfer.subsets=[safety_permission/code,sycophancy_bias/qa]",
    "transfer.seeds=[0,1]",
    "score.resamples=100",
    "head.draw=bootstrap",
    "head.layers=[0.5,1.0]",
    "head.positions=[last,mean]",
    "head.regularisation=[0.1]",
    "dataset.train.pairs_per_cell=6",
    "dataset.validation.pairs_per_cell=3",
    "dataset.test.pairs_per_cell=2",
)


@pytest.fixture
def asked(compose_study: Callable[..., Study], starter: Path, tmp_path: Path) -> Callable[..., Study]:
    """Two subsets, two seeds."""
    tiny = tiny_model(tmp_path / "tiny")

    def made(*overrides: str) -> Study:
        return compose_study(
            "transfer",
            f"paths.data={starter.parent}",
            *(f"paths.{name}={tmp_path / name}" for name in ("runs", "models")),
            f"monitor.path={tiny}",
            "engine.dtype=float32",
            *SMALL,
            *overrides,
        )

    return made


def test_a_study_by_heads_is_made_once_and_found_again(
    asked: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """If it failed: forty fits would be forty starts, or two seeds one head."""
    caplog.set_level("INFO", "monitorbench")
    with pytest.raises(UserError, match=r"9 of 9 runs are missing \(4 of them fits\)"):
        transfer(asked())
    missing = [line for line in caplog.messages if line.startswith("missing: ")]
    assert sum("monitorbench fit frozen=" in line for line in missing) == 4

    directory = transfer(asked("transfer.make=true"))
    results = json.loads((directory / "metrics.json").read_text())
    names = [f"smollm2_135m+{one}_linear_probe" for one in ("safety_permission_code", "sycophancy_bias_qa")]
    assert list(results["effects"]) == list(results["matrix"]["words"]) == names
    assert results["effects"][names[0]]["direct"]["overall"]["n_seeds"] == 2
    assert results["trained_on"][f"{names[1]}_seed1"] == ["sycophancy_bias/qa"]
    assert set(results["chance"]) == set(names)
    assert results["directions"]["trainings"] == names
    assert len({file.read_bytes() for file in tmp_path.glob("runs/fit/*/head.safetensors")}) == 4
    for file in tmp_path.glob("runs/fit/*/config.json"):
        data = json.loads(file.read_text())["dataset"]
        assert data["validation"]["subset"] == data["train"]["subset"], "nothing held out may choose"

    def load(*_: Any) -> None:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr("monitorbench.judging.states.HiddenStates", load)
    assert transfer(asked()) == directory
    more = transfer(asked("transfer.make=true", "transfer.seeds=[0,1,2]"))  # states are there
    assert (
        json.loads((more / "metrics.json").read_text())["effects"][names[0]]["direct"]["overall"]["n_seeds"]
        == 3
    )


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (("head.draw=all",), r"transfer\.seeds: a linear head is the same with every seed"),
        (("engine=vllm",), r"engine=vllm: a probe reads hidden states"),
    ],
)
def test_what_makes_no_study_of_heads_is_one_line(asked: Any, overrides: tuple[str, ...], said: str):
    """If it failed: five copies of one head would pass for five seeds without a spread."""
    dropped = ["engine.dtype=float32"] if "engine=vllm" in overrides else []
    with pytest.raises(ConfigError, match=said):
        transfer(asked(*overrides, *dropped))


def test_objectives_are_of_adapters(asked: Any):
    """If it failed: a curriculum of heads would silently be plain fits."""
    with pytest.raises(ConfigError, match="of adapters; expected none with by=head"):
        asked("transfer.objectives=[sft,pairwise]")
