"""What W&B is told of a training, of tables, pages and adapters: the real package, offline, read back."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from test_tracking import history, in_a_process, needs_wandb, records

from monitorbench.config.load import load
from monitorbench.config.study import Study
from monitorbench.runs.tracking import track_results
from monitorbench.training.curve import tracked_step, tracked_validation

SCRIPT = """
import sys
from pathlib import Path
from monitorbench.config.study import Study
from monitorbench.runs.tracking import track_results, tracking

study = Study.model_validate_json(sys.stdin.read())
path = Path(sys.argv[1])
(path / "adapter" / "part").mkdir(parents=True)
(path / "adapter" / "weights.bin").write_bytes(b"0123")
(path / "adapter" / "part" / "more.json").write_text("{}")
(path / "report.html").write_text("<p>")
if sys.argv[2] == "train":
    with tracking(study, path, "train") as track:
        track.artifact("adapter-base+all/code-0a", "adapter", path / "adapter")
else:
    rows = [{"cell": "a", "miss_rate": 0.5}, {"cell": "b", "miss_rate": None, "note": "x"}]
    track_results(study, path, "score", tables=lambda: {"by_cell": rows}, files=[path / "report.html"])
"""


def tracked(study: Study, path: Path, stage: str) -> list[Any]:
    done = in_a_process(SCRIPT, study, path, stage, environment={"HOME": str(path.parent / "home")})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return records(path)


def artifacts(found: list[Any], kind: str) -> list[Any]:
    return [
        r.artifact for r in found if r.WhichOneof("record_type") == "artifact" and r.artifact.type == kind
    ]


@needs_wandb
def test_the_table_and_the_page_are_there(tmp_path: Path, compose_study: Callable[..., Study]) -> None:
    """A study's page in W&B would have curves and no result; a table in the home folder is not synced from
    another machine.
    """
    found = tracked(compose_study("score", "tracking=wandb_offline", "run=r"), tmp_path / "run-0a", "score")
    (table,) = (tmp_path / "run-0a" / "wandb").glob("offline-run-*/files/media/table/by_cell_*.json")
    written = json.loads(table.read_text())
    assert written["columns"] == ["cell", "miss_rate", "note"]
    assert written["data"] == [["a", 0.5, None], ["b", None, "x"]]
    (page,) = artifacts(found, "score")
    assert page.name == "score-run-0a"
    (entry,) = page.manifest.contents
    assert (entry.path, Path(entry.local_path)) == ("report.html", tmp_path / "run-0a" / "report.html")
    staged = [entry.local_path for one in artifacts(found, "run_table") for entry in one.manifest.contents]
    assert staged
    assert all(Path(one).is_relative_to(tmp_path / "run-0a" / "wandb") for one in staged)
    assert found[-1].exit.exit_code == 0


@pytest.mark.slow
@needs_wandb
def test_an_adapter_is_an_artifact(tmp_path: Path, compose_study: Callable[..., Study]) -> None:
    """The weights of the run that one chose in W&B would have to be looked for on a cluster's disk."""
    settings = ("engine=openai_api", "+engine.extra_body.reasoning_effort=low")
    study = compose_study("train", "tracking=wandb_offline", *settings)
    found = tracked(study, tmp_path / "run-0a", "train")
    (adapter,) = artifacts(found, "adapter")
    assert adapter.name == "adapter-base_all_code-0a"  # W&B takes no other characters
    assert [entry.path for entry in adapter.manifest.contents] == ["part/more.json", "weights.bin"]
    (run,) = [record.run for record in found if record.WhichOneof("record_type") == "run"]
    config = {item.key: json.loads(item.value_json) for item in run.config.update}
    assert config["engine"]["extra_body"] == {"reasoning_effort": "low"}


@pytest.mark.parametrize("choice", ["none", "wandb_long"])
def test_short_stages_cost_nothing(
    tmp_path: Path, compose_study: Callable[..., Study], monkeypatch: pytest.MonkeyPatch, choice: str
) -> None:
    """Every `score.py` would take two seconds longer for people who have never heard of W&B."""
    monkeypatch.setattr("monitorbench.runs.tracking._begin", lambda *_: pytest.fail("started"))
    study = compose_study("score", f"tracking={choice}", "run=r")
    track_results(study, tmp_path, "score", tables=lambda: pytest.fail("made a table"))
    assert list(tmp_path.iterdir()) == []


def test_the_runs_of_an_experiment_are_a_group(compose_study: Callable[..., Study]) -> None:
    """Two experiments over one dataset would be one heap."""
    tree = OmegaConf.create(compose_study("evaluate").model_dump(mode="json"))
    assert load(tree).tracking.group is None
    assert load(tree, "transfer/cpu").tracking.group == "starter-transfer/cpu"
    tree.tracking.group = "mine"
    assert load(tree, "transfer/cpu").tracking.group == "mine"


TRAINING = """
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
    done = in_a_process(TRAINING, study, tmp_path)
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
