"""A key in a user's repository, through every stage: it is in no file that a stage writes.

`test_provenance` holds what a run keeps of the code. Here whole commands run in a repository with a `.env`,
an untracked file and keys in the environment, and all that they wrote is searched.
"""

import json
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from command import ROOT, monitorbench
from small_models import tiny_model

SECRET = "sk-PLANTED-0123456789abcdef"
EXAMPLES = ROOT / "examples"
SMALL = (
    *("engine=transformers", "engine.dtype=float32", "training.dtype=float32"),
    *(f"dataset.{split}.pairs_per_cell={n}" for split, n in (("test", 1), ("validation", 2))),
    "dataset.calibration.pairs_per_cell=10",
)
SCORES = (
    *("from=judges.csv", "import.columns.score=rating.haiku", "import.monitor=haiku"),
    *("import.scale=[10,1]", "import.calibration_share=0.5"),
)
STAGES = (
    ("build", *SMALL),
    ("audit", *SMALL),
    ("annotate", *SMALL),
    ("train", *SMALL, "training.max_steps=1", "dataset.train.subset=safety_permission"),
    ("fit", *SMALL, "dataset.train.pairs_per_cell=3"),
    ("evaluate", *SMALL),
    ("evaluate", *SMALL, "evaluate.split=calibration"),
    ("score", "run=@smollm2_135m-direct/test"),
    ("calibrate", "run=@smollm2_135m-direct/calibration", "calibrate.alpha=0.3"),
    ("report", "run=@smollm2_135m-direct/test"),
    ("transfer", "transfer.runs=[@smollm2_135m-direct/test]"),
    (
        "stress",
        "run=@smollm2_135m-direct/test",
        "stress.pairs_per_cell=1",
        "stress.changes=[instruction]",
        *SMALL,
    ),
    ("import", *SCORES),
    ("calibrate", "run=@haiku-imported/calibration", "calibrate.alpha=0.1"),
    ("recommend", "recommend.runs=[@haiku-imported/calibration,@haiku-imported/test]"),
    (
        "control",
        "control.calibration=[@haiku-imported/calibration]",
        "control.test=[@haiku-imported/test]",
    ),
    ("gate", "run=@haiku-imported/test", "operating_point=latest"),
    ("export", "export.format=inspect", "run=@smollm2_135m-direct/test"),
    ("label", "label.scores=[log.jsonl]", "label.thresholds=[0.5]", "label.budget=5"),
    ("queue", "label.scores=[log.jsonl]", "label.thresholds=[0.5]", "label.budget=5"),
    ("pilot", "outcomes=outcomes.jsonl", "pilot.statistics.draws=1000"),
    ("runs", "export", "latest", "-o", "run.zip"),
)


def contents(file: Path) -> Iterator[bytes]:
    """What a file holds: itself, and what it packs."""
    yield file.read_bytes()
    if file.suffix == ".parquet":
        yield json.dumps(pq.read_table(file).to_pylist(), default=str).encode()
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            yield from map(archive.read, archive.namelist())


@pytest.mark.slow
def test_a_planted_key_is_in_no_file_of_any_stage(tmp_path: Path):
    """Runs and data folders are shared: a key that slipped into one of them is published."""
    repository, mine = tmp_path / "theirs", tmp_path / "theirs" / "mine"
    repository.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=repository, check=True)
    planted = {repository / ".env", repository / "notes.txt", mine / ".env", mine / "conf" / "notes.yaml"}
    assert monitorbench("init", "mine", folder=repository).returncode == 0
    for file in planted:
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"OPENAI_API_KEY: {SECRET}\n")
    model = tiny_model(tmp_path / "model")
    for name in ("judges.csv", "outcomes.jsonl"):
        (mine / name).write_bytes((EXAMPLES / name).read_bytes())
    lines = (
        f'{{"sample_id": "{i}", "score": 0.{i}, "request": "q", "response": "r{i}"}}\n' for i in range(1, 9)
    )
    (mine / "log.jsonl").write_text("".join(lines))
    keys = dict.fromkeys(("OPENAI_API_KEY", "WANDB_API_KEY", "HF_TOKEN", "MONITORBENCH_KEY"), SECRET)
    for name, *settings in STAGES:
        own = [f"monitor.path={model}"] if set(SMALL) <= set(settings) else []
        done = monitorbench(name, *settings, *own, folder=mine, environment=keys)
        assert done.returncode == 0, (name, settings, done.stderr[-500:])
        assert SECRET not in done.stdout + done.stderr, name
    written = [file for file in repository.rglob("*") if file.is_file() and file not in planted]
    assert len(written) > 100
    assert [file for file in written if any(SECRET.encode() in content for content in contents(file))] == []
