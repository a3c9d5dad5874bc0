"""The whole study through its real scripts, as `make demo` runs it, only shorter."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_models import tiny_model

from monitorbench.scoring.baselines import FITTED

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_demo_runs_and_a_second_one_reuses_what_is_done(tmp_path):
    """If it failed: a newcomer's first command would fail, or train again each time."""
    overrides = [
        *(f"paths.{name}={tmp_path / name}" for name in ("data", "runs", "models")),
        # The stages are the point here; what the real model says is `make demo`'s own business.
        f"monitor.path={tiny_model(tmp_path / 'tiny')}",
        *(
            "training.dtype=float32",
            "engine.dtype=float32",
            "training.max_steps=1",
            "training.validate_every=1",
        ),
        *(
            "dataset.train.pairs_per_cell=4",
            "dataset.validation.pairs_per_cell=1",
            "dataset.test.pairs_per_cell=2",
        ),
    ]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "SEEDS": "0 1"}

    def demo() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "demo.sh", *overrides],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    first = demo()
    assert first.returncode == 0, first.stderr[-3000:]
    report = Path(first.stdout.splitlines()[-1].removeprefix("report: "))
    assert report.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert max(map(len, first.stdout.splitlines()[:-2])) <= 80
    metrics = json.loads((report.parent / "metrics.json").read_text())
    on_cell = "smollm2_135m+specification_gaming_code"
    training, probe = f"{on_cell}_pairwise", f"{on_cell}_linear_probe"
    trained = [name for name in metrics["monitors"] if name.startswith(f"{training}_seed") or name == probe]
    baselines = ["always_benign", "always_misbehavior", "random", *FITTED]
    assert len(trained) == 3
    assert set(metrics["monitors"]) == {"smollm2_135m", *trained, *baselines}
    for monitor in ("smollm2_135m", *trained):
        assert metrics["monitors"][monitor]["direct"]["overall"]["n"] == 28
    assert metrics["transfer"][probe]["direct"]["held_out"]["n"] == 24
    last_lines = " ".join(first.stdout.partition("In plain words")[2].split())
    assert last_lines.count("it was trained on (specification_gaming/code: AUROC") == 2
    assert last_lines.count("Of the 6 cells that") == 2

    second = demo()
    assert second.stdout == first.stdout, second.stderr[-3000:]
    for stage in ("data", "train", "fit", "evaluate"):
        assert f"{stage}: reusing" in second.stderr
