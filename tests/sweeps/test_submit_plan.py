"""`submit.py … plan=true`: what runs will take, on one screen, with nothing written or started."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    ("script", "more", "lines"),
    [
        ("train/sft.py", ("seed=0,1", "dataset.train.subset=all"), [r"train sft +2 +0 +307,200 "]),
        ("eval/evaluate.py", (), [r"evaluate direct +1 +0 +3,010 "]),
        ("eval/transfer.py", (), [r"evaluate direct +70 +0 ", r"train sft +42 +0 ", r"all +139 +0 "]),
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
