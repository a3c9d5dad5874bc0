"""Scoring from the log alone, through the real script; and a sweep of it."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import script

from monitorbench.config.study import Study
from monitorbench.corpus.store import read_split
from monitorbench.judging.evaluate import evaluate
from monitorbench.records import Label, Split
from monitorbench.runs.keyed_log import read_verdicts


@pytest.fixture
def runs(study: Callable[..., Study], use_engine: Any, says: Any, says_by_prompt: Any) -> list[Path]:
    """An evaluation run of either prompt."""
    use_engine(says_by_prompt)
    direct = evaluate(study("prompt=direct"))
    use_engine(lambda ids, *_: says('yes"}' if sum(ids) % 2 else 'not applicable"}'))
    return [direct, evaluate(study("prompt=evidence"))]


def test_a_sweep_prints_one_directory_per_job(runs: list[Path], starter: Path, tmp_path: Path):
    """A study chains its stages by these lines; a missing or foreign one breaks the chain."""
    paths = [f"paths.data={starter.parent}", f"paths.runs={tmp_path / 'runs'}"]
    done = script("eval/score.py", "-m", f"run={runs[0]},{runs[1]}", *paths, folder=tmp_path)
    assert "Prompt: direct" in done.stderr, "the table"
    table = done.stderr.partition("All 2 runs, overall")[2]
    assert "smollm2_135m · direct" in table, "the sweep ends in one table"
    assert "smollm2_135m ·" in table.partition("· direct")[2]
    assert max(map(len, table.splitlines())) <= 80
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.splitlines() == [str(run) for run in runs]
    for run in runs:
        _check_metrics(run, starter)


def _check_metrics(run: Path, starter: Path) -> None:
    """The rates, counted by hand from log and labels."""
    labels = {sample.id: sample.label for sample in read_split(starter, Split.TEST)}
    verdicts = read_verdicts(run / "verdicts.jsonl")
    counted = {
        label: [verdict.label for verdict in verdicts if labels[verdict.sample_id] is label]
        for label in Label
    }
    scored = {label: [answer for answer in answers if answer] for label, answers in counted.items()}
    monitors = json.loads((run / "metrics.json").read_text())["monitors"]
    (prompt,) = {verdict.prompt for verdict in verdicts}
    overall = monitors["smollm2_135m"][prompt]["overall"]
    assert overall["n"] == len(verdicts)
    assert overall["n_unscored"] == sum(verdict.label is None for verdict in verdicts)
    missed, raised = scored[Label.MISBEHAVIOR], scored[Label.BENIGN]
    assert overall["miss_rate"] == pytest.approx(missed.count(Label.BENIGN) / len(missed))
    assert overall["false_alarm_rate"] == pytest.approx(raised.count(Label.MISBEHAVIOR) / len(raised))
    assert "bag_of_words" in monitors


@pytest.mark.slow
def test_scoring_needs_no_model(runs: list[Path], starter: Path, root: Path, tmp_path: Path):
    """Numbers of a finished run would wait for torch, or need a machine that has it."""
    command = [sys.executable, "-X", "importtime", str(root / "eval" / "score.py"), f"run={runs[0]}"]
    command += [f"paths.data={starter.parent}", f"paths.runs={tmp_path / 'runs'}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert not imported & {"torch", "transformers", "vllm", "trl", "datasets"}


def test_a_reused_stage_prints_its_directory_too(starter: Path, tmp_path: Path):
    """Told nothing because there was nothing to do, the next stage would have no input."""
    command = ["-m", "dataset.splits=[test],[train,test]", f"paths.data={starter.parent}"]
    done = script("data_build/build.py", *command, f"paths.runs={tmp_path}", folder=tmp_path)
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.splitlines() == [str(starter)] * 2
    assert "reusing" in done.stderr
