"""The doctor's table: the real one of this machine, and what it says where something is wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from studies import study

from monitorbench.config import hardware
from monitorbench.config.load import freeze
from monitorbench.doctor import child, stage, system
from monitorbench.doctor.stage import WIDTH, Trial, table
from monitorbench.doctor.system import Check

ROOT = Path(__file__).parents[2]


def run_doctor(folder: Path, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """The doctor of this machine, whose disk may be as full as it is."""
    settings = [f"paths.runs={folder}/runs", f"paths.models={folder}/models", "tracking=none"]
    settings.append("doctor.disk_gib=0")
    return subprocess.run(
        [sys.executable, str(ROOT / "eval" / "doctor.py"), *settings],
        env={**os.environ, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_a_machine_without_a_gpu_is_one_screen_and_no_failure(tmp_path):
    """Whoever tries this on a laptop is told what was checked and what was not, and is not failed for it."""
    pytest.importorskip("torch")
    done = run_doctor(tmp_path, {"CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("No GPU is used on this machine")
    assert len(lines) <= 24
    assert max(map(len, lines[:-1])) <= WIDTH  # the last one is a path
    checks = {one["name"]: one for one in json.loads((Path(lines[-1]) / "checks.json").read_text())["checks"]}
    assert {name: one for name, one in checks.items() if one["state"] == "failed"} == {}
    assert checks["Transformers step"]["state"] == "ok"
    assert checks["Unsloth step"]["state"] == "skipped"
    if system.find_spec("vllm"):
        assert checks["same verdicts"]["state"] == "ok"


@pytest.mark.gpu
@pytest.mark.skipif(not Path("/dev/nvidia0").exists(), reason="no NVIDIA GPU on this machine")
def test_a_gpu_trains_with_unsloth_and_judges_with_vllm_as_transformers_does(tmp_path):
    """The one test of the GPU's path: one loss of both loaders, one verdict of both engines."""
    done = run_doctor(tmp_path, {})
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "runs" / "doctor" / "checks.json").read_text())
    states = {one["name"]: one["state"] for one in found["checks"]}
    wanted = ("driver", "imports", "Transformers step", "Unsloth step", "same loss", "same verdicts")
    assert {name: states[name] for name in wanted} == dict.fromkeys(wanted, "ok")


@pytest.mark.parametrize(
    ("trial", "precision"),
    [("judge-transformers", "bfloat16"), ("judge-vllm", "bfloat16_batch_invariant")],
)
def test_on_a_gpu_each_engine_is_asked_for_a_precision_that_it_has(trial, precision, tmp_path, monkeypatch):
    """On an H100 the doctor failed every machine: it asked Transformers for reproducible bfloat16."""
    for module in (child, hardware):
        monkeypatch.setattr(module, "has_gpu", lambda: True)
    monkeypatch.setattr(child, "judge", lambda study, folder, engine: {"precision": engine.precision})
    assert child.TRIALS[trial](study(), tmp_path) == {"precision": precision}


@pytest.mark.slow
def test_a_broken_driver_fails_and_names_it(tmp_path):
    """The table is asked for where something is wrong: it must not end before it is printed."""
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine's GPU can be used")
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 570.86.15\n")
    tool.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CUDA_VISIBLE_DEVICES": "0"}
    done = run_doctor(tmp_path, environment)
    assert done.returncode == 1
    assert "NVIDIA 570.86.15" in done.stdout
    assert "580 or newer" in done.stdout
    assert done.stderr.strip().splitlines()[-1].startswith("error: doctor: 1 of ")
    assert max(map(len, done.stdout.splitlines()[:-1])) <= WIDTH


def trained(*losses: float) -> Trial:
    return Trial({"losses": losses, "dtype": "bfloat16", "device": "cuda:0", "seconds": 1.0}, "")


def judged(*scores: float | None, change: float = 2.0) -> Trial:
    return Trial({"scores": scores, "change": change, "dtype": "float32", "seconds": 1.0}, "")


@pytest.mark.parametrize(
    ("check", "state"),
    [
        (stage.same_loss_check(trained(6.9, 3.0), trained(6.91, 2.0)), "ok"),
        (stage.same_loss_check(trained(6.9, 3.0), trained(6.2, 2.0)), "failed"),
        (stage.same_loss_check(trained(6.9, 3.0), trained(float("nan"), 2.0)), "failed"),
        (stage.same_loss_check(trained(6.9, 3.0), Trial({}, "no")), "skipped"),
        (stage.step_check("Unsloth step", trained(6.9, 7.0)), "failed"),
        (stage.step_check("Unsloth step", trained(6.9, float("nan"))), "failed"),
        (stage.step_check("Unsloth step", Trial({}, "RuntimeError: no kernel")), "failed"),
        (stage.same_verdict_check(judged(0.5, 0.6), judged(0.5, 0.605)), "ok"),
        (stage.same_verdict_check(judged(0.5, 0.6), judged(0.5, 0.7)), "failed"),
        (stage.same_verdict_check(judged(0.5, 0.6), judged(0.5, None)), "failed"),
        (stage.same_verdict_check(judged(0.5), judged(0.5, change=1.0)), "failed"),
        (
            stage.imports_check(Trial({"modules": ["trl"], "failed": {"trl": "ImportError: x"}}, "")),
            "failed",
        ),
    ],
)
def test_what_differs_is_a_failure_with_a_remedy(check: Check, state: str):
    """A table that is green whatever came back is worse than none."""
    assert check.state == state
    assert bool(check.remedy) == (state == "failed")


def test_a_trial_that_crashes_or_hangs_is_a_line(tmp_path):
    """One library that aborts would otherwise take the table with it."""
    crashed = stage.run_trial("no-such-trial", freeze(study(primary="doctor")), tmp_path, 60)
    assert crashed.result == {}
    assert crashed.failure.startswith("KeyError")
    hung = stage.run_trial("imports", freeze(study(primary="doctor")), tmp_path, 0.01)
    assert "doctor.seconds" in hung.failure


def test_a_version_off_the_lock_is_named(tmp_path):
    """A newer trl trains nothing under this unsloth; that it is newer is what has to be said."""
    import numpy

    lock = tmp_path / f"lock-{system.lock_kind()}.txt"
    lock.write_text(
        f"# head\nnumpy=={numpy.__version__} --hash=sha256:0\npydantic==1.0 --hash=sha256:0\nnot-there==1\n"
    )
    check = system.versions_check(tmp_path)
    assert check.state == "failed"
    assert check.finding.startswith("1 of 3 as in lock-")
    assert "(lock: 1.0)" in check.finding
    assert "not-there not installed" in check.finding


def test_a_full_disk_fails(tmp_path):
    assert system.disk_check({"paths.runs": tmp_path / "runs"}, 0).state == "ok"
    short = system.disk_check({"paths.runs": tmp_path / "runs"}, 1e9)
    assert short.state == "failed"
    assert "paths.runs" in short.remedy


def test_long_findings_stay_in_eighty_columns():
    """An error of a library has hundreds of characters."""
    shown = table([Check("vLLM judges", "failed", "word " * 60, "do this " * 30), Check("x", "ok", "")])
    assert max(map(len, shown.splitlines())) <= WIDTH
    assert "-> do this" in shown
