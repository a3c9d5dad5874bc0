"""What a training tells W&B: a process of its own, read back from W&B's file."""

from collections.abc import Callable
from pathlib import Path

import pytest
from test_tracking import history, in_a_process, needs_wandb, records

from monitorbench.config.study import Study
from monitorbench.training.curve import tracked_step, tracked_validation

SCRIPT = """
import sys
from pathlib import Path
from monitorbench.config.study import Study
from monitorbench.runs.tracking import tracking
from monitorbench.training.curve import tracked_step, tracked_validation

study = Study.model_validate_json(sys.stdin.read())
for name, is_first in (("first", True), ("second", False)):
    path = Path(sys.argv[1]) / name
    path.mkdir()
    with tracking(study, path, "train", is_first=is_first) as track:
        track.log(tracked_validation({"step": 0, "loss": None, "auroc": 0.5, "auroc_ci": [0.4, 0.6]}), 0)
        for step in (1, 2):
            track.log(tracked_step(0.7 / step, 1e-4, 800, 2.0), step)
        track.log(tracked_validation({"step": 2, "auroc": 0.8, "auroc_ci": None, "miss_rate": 0.1}), 2)
"""


@pytest.mark.slow
@needs_wandb
def test_a_training_is_one_run_of_its_sweep(tmp_path: Path, compose_study: Callable[..., Study]):
    """A second run from a second process, or a curve without its steps, and the sweep's page misleads."""
    study = compose_study(
        "train", "tracking=wandb_offline", "tracking.group=sft-0a1b", "tracking.after_seconds=0"
    )
    done = in_a_process(SCRIPT, study, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (tmp_path / "second" / "wandb").exists(), "not the first process of its training"
    found = records(tmp_path / "first")
    (run,) = [record.run for record in found if record.WhichOneof("record_type") == "run"]
    assert (run.run_group, run.job_type) == ("sft-0a1b", "train")
    rows = history(found)
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert rows[0]["validation/auroc_low"] == 0.4
    assert "validation/miss_rate" not in rows[0]
    assert rows[1]["train/loss"] == 0.7
    assert rows[1]["train/tokens_per_second"] == 400
    last = {"train/loss": 0.35, "train/learning_rate": 1e-4, "validation/auroc": 0.8}
    assert last.items() <= rows[2].items()


def test_the_numbers_have_names_a_page_can_group():
    """`loss` of an evaluation and of a training in one panel is no curve."""
    assert set(tracked_step(0.5, None, 10, 0.0)) == {"train/loss"}
    assert all(name.startswith("validation/") for name in tracked_validation({"auroc": None}))
    assert tracked_step(0.5, 0.1, 30, 2.0)["train/tokens_per_second"] == pytest.approx(15)
