"""The one entry of all benchmarks: what each says about itself, and that each runs at its smallest size."""

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small_models import tiny_model

from benchmarks import run
from benchmarks.measuring import Ratio, Result, composed

ROOT = Path(__file__).resolve().parents[2]
HEAVY = "numpy,pyarrow,hydra,torch,transformers,vllm,monitorbench"
HELPS = f"""
import contextlib, io, sys
sys.path.insert(0, {str(ROOT)!r})
from benchmarks import run
for arguments in [["--help"], *([name, "--help"] for name in run.BENCHMARKS)]:
    try:
        with contextlib.redirect_stdout(io.StringIO()) as text:
            run.main(arguments)
    except SystemExit as end:
        assert end.code == 0, arguments
    assert "usage: run.py" in text.getvalue()
print([name for name in {HEAVY!r}.split(",") if name in sys.modules])
"""
IS_LONG = pytest.mark.benchmark
"""Starts engines or trains, which takes minutes: `make test-benchmarks` runs it, not `make test-slow`."""
NEEDS_VLLM = [pytest.mark.vllm, IS_LONG]
NEEDS_CHROMIUM = pytest.mark.skipif(not shutil.which("chromium"), reason="needs Chromium (make system-deps)")
NEEDS_SOURCES = [
    pytest.mark.sources,
    pytest.mark.skipif(
        not os.environ.get("MONITORBENCH_SOURCES"),
        reason="needs the raw upstream files: set MONITORBENCH_SOURCES to their folder",
    ),
    IS_LONG,
]
CASES = [
    pytest.param("adapters", marks=NEEDS_VLLM),
    pytest.param("corpus", marks=NEEDS_SOURCES),
    pytest.param("coverage"),
    pytest.param("evaluate"),
    pytest.param("gpu", marks=IS_LONG),
    pytest.param("guardrail", marks=IS_LONG),
    pytest.param("guardrail_outage", marks=NEEDS_VLLM),
    pytest.param("import_rows"),
    pytest.param("long", marks=IS_LONG),
    pytest.param("pilot_statistics"),
    pytest.param("report_page", marks=NEEDS_CHROMIUM),
    pytest.param("score"),
    pytest.param("score_spread"),
    pytest.param("states", marks=IS_LONG),
    pytest.param("train", marks=IS_LONG),
]


def test_every_help_answers_without_importing_or_starting_anything():
    """Else a person who asks what a benchmark takes gets a traceback, or fifteen minutes of work."""
    done = subprocess.run([sys.executable, "-c", HELPS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_the_list_names_each_with_a_line(capsys: pytest.CaptureFixture[str]):
    """A benchmark that the list does not name is found by nobody."""
    with pytest.raises(SystemExit):
        run.main(["--help"])
    words = capsys.readouterr().out.split()
    assert set(run.BENCHMARKS) <= set(words)


def test_every_benchmark_has_a_smoke_test():
    """One that is added and never run rots, as `score` did when a column was added."""
    assert [case.values[0] for case in CASES] == list(run.BENCHMARKS)


def test_a_folder_that_holds_something_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """The folder is emptied at the start; a mistyped one would take somebody's files with it."""
    (tmp_path / "mine.txt").write_text("mine")
    assert run.main(["score", "--tiny", "--work", str(tmp_path)]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_a_mistyped_setting_ends_in_a_line():
    """Settings follow a benchmark as they follow a script, and a slip in one ended in a traceback."""
    with pytest.raises(SystemExit, match=r"^error: .*engine.nonsense"):
        composed("evaluate", ["engine.nonsense=1"])
    with pytest.raises(SystemExit, match=r"^error: .*evaluate.split"):
        composed("evaluate", ["evaluate.split=nowhere"])


def test_a_missed_bar_is_marked_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A ratio below its bar would pass unseen; at the tiny size it says nothing, and is not applied."""
    ratios = {"slow": Ratio(2, most=1), "fast": Ratio(2, least=1), "none": Ratio(math.nan, most=1)}
    result = Result({"ours": {"seconds": 1.0}}, ratios, {"samples": 3})
    assert run.report(result, tmp_path, is_tiny=False) == ["slow", "none"]
    assert run.report(result, tmp_path, is_tiny=True) == []
    assert capsys.readouterr().out.count("MISSED") == 2
    written = json.loads((tmp_path / "ratios.json").read_text())
    assert written["ratios"]["slow"] == 2
    assert written["bars"] == {"slow": "<= 1", "fast": ">= 1", "none": "<= 1"}
    assert written["samples"] == 3


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model of two layers."""
    return tiny_model(tmp_path_factory.mktemp("model"))


def written_by(name: str, work: Path, *more: str) -> dict[str, Any]:
    """Run a benchmark at its smallest size, and read what it wrote."""
    command = [sys.executable, str(ROOT / "benchmarks" / "run.py"), name, "--tiny", "--work", str(work)]
    done = subprocess.run([*command, *more], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip().splitlines()[-1] == str(work)
    written: dict[str, Any] = json.loads((work / "ratios.json").read_text())
    assert written["measured"]
    return written


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_benchmark_runs_at_its_smallest_size(name: str, model: Path, tmp_path: Path):
    """Else a benchmark ends in a traceback once a column, a setting or a name changes, and nobody knows."""
    is_small = name in ("guardrail", "score_spread", "states", "train")  # vLLM takes no model so small
    settings = [f"monitor.path={model}", "monitor.context_tokens=2048"] if is_small else []
    ratios = written_by(name, tmp_path / "work", *settings)["ratios"]
    assert ratios or name == "coverage"
    assert all(isinstance(value, int | float) for value in ratios.values())


@pytest.mark.benchmark
@pytest.mark.slow
@pytest.mark.vllm
def test_judging_runs_beside_raw_vllm(tmp_path: Path):
    """The part of `evaluate` that starts vLLM is left out of its smallest size, and would rot unseen."""
    ratios = written_by("evaluate", tmp_path / "work", "--parts", "engine")["ratios"]
    assert "rate, ours / raw at the same settings" in ratios
