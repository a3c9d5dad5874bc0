"""The whole study through its real scripts, as `make demo` runs it, only shorter."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_models import tiny_model

from monitorbench.corpus.store import read_split
from monitorbench.records import Label, Split
from monitorbench.scoring.baselines import FITTED

ROOT = Path(__file__).parents[2]
CELL = "specification_gaming/code"


@pytest.mark.slow
def test_the_demo_runs_and_a_second_one_reuses_what_is_done(tmp_path):
    """If it failed: a newcomer's first command would fail, or train again each time."""
    overrides = [
        *(f"paths.{name}={tmp_path / name}" for name in ("data", "runs", "models")),
        # The stages are the point here; what the real model says is `make demo`'s own business.
        f"monitor.path={tiny_model(tmp_path / 'tiny')}",
        *("training.dtype=float32", "engine.dtype=float32"),
        *("training.max_steps=1", "training.validate_every=1", "dataset.train.pairs_per_cell=4"),
        "dataset.test.pairs_per_cell=2",
    ]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}

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
    trained = "smollm2_135m+specification_gaming_code"
    monitors = ["smollm2_135m", trained, f"{trained}_linear_probe"]
    baselines = ["always_benign", "always_misbehavior", "random", *FITTED]
    assert sorted(metrics["monitors"]) == sorted([*monitors, *baselines])
    for monitor in monitors:
        assert metrics["monitors"][monitor]["direct"]["overall"]["n"] == 28
    for training in monitors[1:]:
        assert metrics["transfer"][training]["direct"]["held_out"]["n"] == 24
    told = " ".join(first.stdout.partition("In plain words")[2].split())
    assert told.count("it was trained on (specification_gaming/code") == 2
    assert told.count("Of the 6 cells it was not trained on") == 2
    (data,) = (tmp_path / "data").glob("starter-*")
    code = [sample for sample in read_split(data, Split.TEST) if str(sample.cell) == CELL]
    kinds = {sample.subcategory for sample in code if sample.label is Label.MISBEHAVIOR}
    assert kinds <= {"redundant_cases", "patched_attempt", "swallowed_error", "input_fingerprint"}

    second = demo()
    assert second.stdout == first.stdout, second.stderr[-3000:]
    for stage in ("data", "train", "fit", "evaluate"):
        assert f"{stage}: reusing" in second.stderr
