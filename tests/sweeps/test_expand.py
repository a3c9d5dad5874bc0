"""A sweep's runs are those of Hydra's own `-m`, and a bad one is found before any starts."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from monitorbench.config.base import ConfigError
from monitorbench.sweeps.launch import expand, load_stage
from monitorbench.sweeps.sweep import Point, swept

Python = Callable[..., subprocess.CompletedProcess[str]]


def _studies(folder: Path) -> set[str]:
    return {file.read_text() for file in folder.glob("runs/echo/*/study.json")}


def test_the_runs_are_those_of_hydras_multirun(desk: Path, python: Python):
    """A sweep tried with `-m` on a laptop has to be the same sweep on the cluster."""
    given = ["monitor=glob([qwen3_0*,qwen3_4b])", "training.max_steps=range(3,5)", "tracking=none"]
    multirun = python("train/echo.py", "-m", *given)
    assert multirun.returncode == 0, multirun.stderr
    points = expand(load_stage(str(desk / "train" / "echo.py")), given)
    assert [point.study.monitor.name for point in points] == ["qwen3_0_6b"] * 2 + ["qwen3_4b"] * 2
    assert {point.study.model_dump_json() for point in points} == _studies(desk)
    assert swept([point.overrides for point in points])[1] == ("monitor=qwen3_0_6b", "training.max_steps=4")


def test_values_set_on_a_shared_tree_are_those_that_hydra_sets():
    """A run composed from what is left of the one before it would train on that one's settings."""
    stage = load_stage("train")
    given = ["dataset.train.subset=all", "prompt=direct,evidence", "seed=4,5"]
    given += ["++training.max_tokens=64", "dataset.seed=${seed}", "training.max_steps=3,4"]
    points = expand(stage, given)
    assert len(points) == 8
    assert [point.study for point in points] == [stage.composed_study(point.overrides) for point in points]


REFUSED = {
    "a value": (["seed=0,-1"], ["run 2 of 2, seed=-1: seed=-1", "greater than or equal to 0"]),
    "an option": (
        ["monitor=smollm2_135m,smolm"],
        ["run 2 of 2, monitor=smolm: ", "=smolm: no such option"],
    ),
    "a key": (["seed=0,1", "training.lrr=1"], ["training.lrr=1: unknown key", "learning_rate"]),
    "no override": (["seed"], ["seed: not an override"]),
    "a sweep over Hydra": (["hydra.job.name=a,b"], ["hydra.job.name=a,b"]),
    "a value twice": (
        ["seed=3,3"],
        ["run 2 of 2", "the same study as run 1 of 2", "every value once"],
    ),
    "unlike machines": (["cluster.cpus=2,4"], ["run 2 of 2, cluster.cpus=4: another cluster than run 1"]),
    "no run": (["monitor=glob(nothing*)"], ["monitor=glob(nothing*)"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_run_is_named(desk: Path, case: str):
    """One of two hundred runs is wrong: which, and in what?"""
    given, words = REFUSED[case]
    with pytest.raises(ConfigError) as refused:
        expand(load_stage(str(desk / "train" / "echo.py")), given)
    message = str(refused.value)
    assert all(word in message for word in words), message
    assert "\n" not in message.partition("\n  ")[0]


def test_a_sweep_may_stand_in_a_file(desk: Path, root: Path):
    """A study whose runs are named in its experiment file must not run as one."""
    (desk / "conf").unlink()
    (desk / "conf").mkdir()
    for item in (root / "conf").iterdir():
        (desk / "conf" / item.name).symlink_to(item)
    (desk / "conf" / "experiment").unlink()
    (desk / "conf" / "experiment").mkdir()
    (desk / "conf" / "experiment" / "seeds.yaml").write_text(
        "# @package _global_\nhydra:\n  sweeper:\n    params:\n      seed: 4,5\n"
    )
    points = expand(load_stage(str(desk / "train" / "echo.py")), ["experiment=seeds"])
    assert [point.study.seed for point in points] == [4, 5]


@pytest.mark.parametrize("path", ["train/none.py", "conf/train.yaml", "train"])
def test_only_a_script_is_swept(desk: Path, path: str):
    """Naming another file has to be one line, not an import's traceback."""
    with pytest.raises(ConfigError, match="expected a stage's name, such as train, or a script's path"):
        load_stage(str(desk / path))


def test_points_say_what_was_frozen(desk: Path):
    """The overrides written beside a study have to be the ones it came from."""
    (point,) = expand(load_stage(str(desk / "train" / "echo.py")), ["seed=5", "prompt=direct"])
    assert isinstance(point, Point)
    assert point.overrides == ("seed=5", "prompt=direct")
    assert json.loads(point.study.model_dump_json())["seed"] == 5
