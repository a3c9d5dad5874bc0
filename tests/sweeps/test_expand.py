"""A sweep's runs are those of Hydra's own `-m`, and a bad one is found before any starts."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from monitorbench.cli.stages import STAGES
from monitorbench.config.base import ConfigError
from monitorbench.config.load import read_frozen
from monitorbench.config.study import Study
from monitorbench.sweeps.launch import load_stage
from monitorbench.sweeps.sweep import read

Python = Callable[..., subprocess.CompletedProcess[str]]


def frozen(desk: Path, python: Python, *given: str) -> tuple[list[Study], tuple[tuple[str, ...], ...]]:
    """The studies that a sweep of `train` freezes, and each run's overrides."""
    made = python("slurm/submit.py", "train", *given, "--print-commands")
    assert made.returncode == 0, made.stderr
    sweep = desk / made.stderr.splitlines()[-1]
    return [read_frozen(file) for file in sorted(sweep.glob("run-???.json"))], read(sweep).manifest.points


def test_values_set_on_a_shared_tree_are_those_that_hydra_sets(desk: Path, python: Python):
    """A run composed from what is left of the one before it would train on that one's settings."""
    given = ["dataset.train.subset=all", "prompt=direct,evidence", "seed=4,5", "tracking.group=mine"]
    given += ["++training.max_tokens=64", "dataset.seed=${seed}", "training.max_steps=3,4"]
    studies, points = frozen(desk, python, *given)
    assert len(studies) == 8
    assert studies == [STAGES["train"].composed_study(point) for point in points]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["monitor=smollm2_135m,smolm"], ["run 2 of 2, monitor=smolm: ", "=smolm: no such option"]),
        (["seed=3,3"], ["run 2 of 2", "the same study as run 1 of 2", "every value once"]),
        (["cluster.cpus=2,4"], ["run 2 of 2, cluster.cpus=4: another cluster than run 1"]),
        (["seed"], ["seed: not an override"]),
    ],
)
def test_a_bad_run_is_named(desk: Path, python: Python, given: list[str], words: list[str]):
    """One of two hundred runs is wrong: which, and in what?"""
    refused = python("slurm/submit.py", "train", *given, "--print-commands")
    assert refused.returncode == 2
    assert all(word in refused.stderr for word in words), refused.stderr
    assert not (desk / "runs" / "sweeps").exists()


def test_a_sweep_may_stand_in_a_file(desk: Path, python: Python):
    """A study whose runs are named in its experiment file must not run as one."""
    (desk / "conf").unlink()
    (desk / "conf" / "experiment").mkdir(parents=True)
    (desk / "monitorbench.yaml").touch()
    (desk / "conf" / "experiment" / "seeds.yaml").write_text(
        "# @package _global_\nhydra:\n  sweeper:\n    params:\n      seed: 4,5\n"
    )
    studies, _ = frozen(desk, python, "experiment=seeds")
    assert [study.seed for study in studies] == [4, 5]


@pytest.mark.parametrize("path", ["train/none.py", "conf/train.yaml", "train"])
def test_only_a_script_is_swept(desk: Path, path: str):
    """Naming another file has to be one line, not an import's traceback."""
    with pytest.raises(ConfigError, match="expected a stage's name, such as train, or a script's path"):
        load_stage(str(desk / path))
