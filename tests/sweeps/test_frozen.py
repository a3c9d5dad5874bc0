"""`frozen=run.json`: exactly that study; and `submit.py … plan=true`, which writes and starts nothing."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import command
import pytest

from monitorbench.config.base import ConfigError
from monitorbench.config.load import freeze, read_frozen
from monitorbench.config.study import Study

Python = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def frozen(compose_study: Callable[..., Study], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("frozen") / "run.json"
    path.write_text(freeze(compose_study("train", "seed=7", "dataset.train.subset=safety_permission")))
    return path


def test_a_frozen_study_runs_without_any_yaml(desk: Path, python: Python, frozen: Path):
    """A queued run that reads a YAML runs whatever that says by then."""
    (desk / "conf").unlink()
    done = python("train/echo.py", f"frozen={frozen}")
    assert done.returncode == 0, done.stderr
    written = json.loads((desk / done.stdout.splitlines()[-1] / "study.json").read_text())
    assert written == json.loads(frozen.read_text())


def test_reading_gives_the_equal_study_back(tmp_path: Path, compose_study: Callable[..., Study]):
    """A value that changes on its way through the file, or a run's config.json, is another experiment."""
    study = compose_study("train", "experiment=demo", "monitor.adapter=runs/train/x", "seed=3")
    (tmp_path / "run.json").write_text(freeze(study))
    assert read_frozen(tmp_path / "run.json") == study
    assert Study.model_validate_json(study.model_dump_json()) == study


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"seed": 7', '"seed": "7"', "seed=7: expected a valid integer"),
        ('"seed": 7', '"seeed": 7', "did you mean seed?"),
        ('"seed": 7', '"seed": 7,,', "no JSON"),
        ('"seed": 7,', "", ": seed=???"),
        ('"max_steps": 30,', "", "max_steps and epochs: neither is given"),
        ('"max_steps": 30', '"max_steps": true', "training.max_steps=true"),
    ],
)
def test_a_bad_file_is_one_line(frozen: Path, tmp_path: Path, old: str, new: str, words: str):
    """A hand-edited file with a mistake must not run as something else."""
    assert old in frozen.read_text()
    bad = tmp_path / "bad.json"
    bad.write_text(frozen.read_text().replace(old, new, 1))
    with pytest.raises(ConfigError) as refused:
        read_frozen(bad)
    assert words in str(refused.value)
    assert str(refused.value).startswith(f"frozen={bad}: ")
    assert "\n" not in str(refused.value)


def test_scripts_refuse_with_exit_code_2(tmp_path: Path, frozen: Path):
    """A mistyped command is no traceback, and its exit code says that it was mistyped."""
    cases = {
        f"frozen={tmp_path}/none.json": "no such file",
        f"frozen={tmp_path}": "no regular file",
        f"frozen={frozen} seed=1": "seed=1: frozen=FILE runs exactly that study",
        "-m frozen=": "-m: frozen=FILE",
    }
    for arguments, words in cases.items():
        done = command.script("train/sft.py", *arguments.split(), folder=tmp_path)
        assert (done.returncode, done.stdout) == (2, ""), done
        assert len(done.stderr.splitlines()) == 1
        assert words in done.stderr


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    ("script", "more", "lines"),
    [
        ("train/sft.py", ("seed=0,1", "dataset.train.subset=all"), [r"train sft +2 +0 +307,200 "]),
        ("eval/evaluate.py", (), [r"evaluate direct +1 +0 +3,010 "]),
        ("eval/transfer.py", (), [r"evaluate direct +71 +0 ", r"train sft +70 +0 ", r"all +141 +0 "]),
    ],
)
def test_the_paper_s_study_is_forecast_without_data_or_weights(
    python: Run, desk: Path, root: Path, script: str, more: tuple[str, ...], lines: list[str]
):
    """If it failed: GPU-hours could only be known by spending them."""
    before = sorted(desk.rglob("*"))
    done = python(
        "slurm/submit.py",
        str(root / script),
        "experiment=transfer/paper",
        "cluster=h100",
        "paths.sources=null",
        *more,
        "plan=true",
    )
    assert (done.returncode, done.stderr) == (0, "")
    for line in lines:
        assert re.search(line, done.stdout), done.stdout
    assert "is not built" in done.stdout
    assert "assumed, not measured" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert len(done.stdout.splitlines()) <= 24
    assert sorted(desk.rglob("*")) == before


def test_a_stage_without_a_forecast_says_so(python: Run, root: Path):
    """A report has no hours to plan."""
    done = python("slurm/submit.py", str(root / "eval" / "report.py"), "run=x", "plan=true")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: plan=true: report has no plan")
