"""The search for a learning rate and a rank: real trainings, chosen by the validation split alone."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from small_runs import curve, results

from monitorbench.config.base import UserError
from monitorbench.training.pace import validation_auroc

ROOT = Path(__file__).resolve().parents[2]
TUNE = ("train/sft.py", "-m", "experiment=tune/starter")
SHORT = """training.max_steps=2 training.validate_every=2 training.batch_size=4 training.dtype=float32
    training.device=cpu dataset.validation.pairs_per_cell=2 dataset.train.pairs_per_cell=5
    tracking=none""".split()


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def plugin() -> None:
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper", reason="the extra `tune` is not installed")


@pytest.mark.slow
@pytest.mark.usefixtures("plugin")
def test_a_search_trains_and_names_the_best_on_validation(starter, tmp_path, tiny):
    """A search that is told nothing, or the test split's numbers, picks settings at random, or by what
    they will be judged by; one that trains again what is there wastes the hours it was stopped after."""
    folders = [f"paths.data={tmp_path / 'data'}", f"paths.runs={tmp_path / 'runs'}"]
    shutil.copytree(starter, tmp_path / "data" / starter.name)  # its own: a split is taken away below
    given = [*TUNE, *SHORT, *folders, f"monitor.path={tiny}"]
    first = python(*given, "hydra.sweeper.n_trials=2")
    assert first.returncode == 0, first.stderr
    adapters = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/train/*/adapter/*.safetensors")}
    assert len(adapters) == 2

    # The same command with one trial more: the first two are found, and no test split is missed.
    (test,) = tmp_path.glob("data/starter-*/test")
    shutil.rmtree(test)
    done = python(*given, "hydra.sweeper.n_trials=3")
    assert done.returncode == 0, done.stderr
    runs = [Path(line) for line in done.stdout.splitlines() if line.startswith(str(tmp_path))]
    assert len(set(runs)) == len(runs) == 3
    assert done.stderr.count("train: reusing") == 2
    assert all(path.stat().st_mtime_ns == before for path, before in adapters.items())
    tried = [json.loads((run / "config.json").read_text())["training"] for run in runs]
    assert len({one["learning_rate"] for one in tried}) == 3
    assert all(1e-5 <= one["learning_rate"] <= 2e-3 and one["lora_rank"] in (4, 8, 16, 32) for one in tried)

    *_, start = sorted((tmp_path / "runs/multirun/train").iterdir())
    found = yaml.safe_load((start / "optimization_results.yaml").read_text())
    reached = [next(p["auroc"] for p in curve(run) if p["step"] == results(run)["kept_step"]) for run in runs]
    assert found["best_value"] == max(reached)
    best = reached.index(max(reached))
    assert found["best_params"] == {
        f"training.{key}": tried[best][key] for key in ("learning_rate", "lora_rank")
    }
    assert f"The best, {runs[best].name}, looks better than it is" in done.stderr
    assert not test.exists()


@pytest.mark.slow
@pytest.mark.usefixtures("plugin")
def test_a_search_over_frozen_runs_ends_with_the_best(starter, tmp_path, tiny):
    """Trainings of `hydra/launcher=local` are other processes: without their values a search is a lottery."""
    folders = [f"paths.data={starter.parent}", f"paths.runs={tmp_path / 'runs'}"]
    given = [*TUNE, *SHORT, *folders, f"monitor.path={tiny}", "hydra.sweeper.n_trials=2"]
    done = python(*given, "hydra/launcher=local")
    assert done.returncode == 0, done.stderr
    frozen = sorted(tmp_path.glob("runs/sweeps/*/run-000.json"))
    runs = [file.with_suffix(".done").resolve() for file in frozen]
    assert len({run.name for run in runs}) == len(frozen) == 2
    (summary,) = tmp_path.glob("runs/multirun/train/*/optimization_results.yaml")
    best = yaml.safe_load(summary.read_text())
    reached = {validation_auroc(run): json.loads((run / "config.json").read_text()) for run in runs}
    assert best["best_value"] == max(reached)
    kept = reached[max(reached)]["training"]
    assert best["best_params"] == {f"training.{key}": kept[key] for key in ("learning_rate", "lora_rank")}
    assert "The best, " in done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("plugin")
def test_a_stage_without_a_value_is_not_searched():
    """Optuna's own word for it is a traceback, after hours of judging."""
    done = python("eval/evaluate.py", "-m", "experiment=tune/starter")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith(
        "error: hydra/sweeper: OptunaSweeper needs a value of each run"
    )


def test_the_kept_point_counts(tmp_path):
    """Early stopping keeps a step that is not the last one: its AUROC is what the adapter is worth."""
    points = [{"step": step, "auroc": auroc} for step, auroc in ((0, 0.5), (5, 0.9), (10, 0.7), (15, None))]
    (tmp_path / "learning_curve.json").write_text(json.dumps(points))
    for step, expected in ((5, 0.9), (10, 0.7)):
        (tmp_path / "manifest.json").write_text(json.dumps({"results": {"kept_step": step}}))
        assert validation_auroc(tmp_path) == expected
    (tmp_path / "manifest.json").write_text(json.dumps({"results": {"kept_step": 15}}))
    with pytest.raises(UserError, match="no AUROC on the validation split at step 15"):
        validation_auroc(tmp_path)
