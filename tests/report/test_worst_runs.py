"""The report stage on real run directories: what it reads beside metrics.json."""

import json
import shutil
from pathlib import Path

import pytest
from fake_results import BASE, MANIFEST, fake_tree
from fake_worst import sample, verdict
from hostile import HOSTILE
from sealed import seal, seal_log
from studies import study

from monitorbench.config.base import UserError
from monitorbench.config.study import Study
from monitorbench.corpus.store import write_split
from monitorbench.metrics.metrics_json import as_results
from monitorbench.records import Label, Split
from monitorbench.report.samples.judged import read_judged, worst_of
from monitorbench.report.write import report
from monitorbench.runs.directory import record_files
from monitorbench.runs.files import file_sha256

TREE = fake_tree()
STUDY = study("run=.", primary="report")
SAMPLES = [sample(i, label, f"{label} {i}", cell=cell) for cell in (0, 3) for i in (1, 2) for label in Label]
RUN = "evaluate/base-direct-1"


def run_directory(root: Path, name: str, monitor: str, prompt: str, seed: int | None = None) -> Path:
    """An evaluation run that flagged everything."""
    run = root / "runs" / name
    run.mkdir(parents=True)
    judge = {"name": monitor, "prompt": prompt, "adapter": ""}
    results = {"judge": judge, "data": "starter-1", "training": None if seed is None else {"seed": seed}}
    view = {"subset": ["safety_permission"], "pairs_per_cell": None}
    manifest = MANIFEST | {"results": results, "identity": {"view": view}}
    seal(run, manifest)
    lines = [verdict(one, Label.MISBEHAVIOR, 0.9).model_dump_json() for one in SAMPLES]
    (run / "verdicts.jsonl").write_text("".join(f"{line}\n" for line in lines))
    seal_log(run / "verdicts.jsonl")
    return run


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_split(tmp_path / "data" / "starter-1", Split.TEST, SAMPLES)
    seal(tmp_path / "data" / "starter-1")
    return tmp_path


def study_of(root: Path, run: Path) -> Study:
    paths = STUDY.paths.model_copy(update={"runs": root / "runs", "data": root / "data"})
    return STUDY.model_copy(update={"paths": paths, "run": run})


def transfer_of(root: Path, runs: list[Path]) -> Path:
    transfer = root / "runs" / "transfer" / "starter-1"
    transfer.mkdir(parents=True)
    manifest = MANIFEST | {"results": {"runs": [str(run) for run in runs], "monitors": [BASE]}}
    (transfer / "metrics.json").write_text(json.dumps(TREE))
    seal(transfer, manifest)
    return transfer


def test_report_of_an_evaluation_shows_its_worst_samples(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The stage has to find split and verdicts by itself, and only what the run judged."""
    run = run_directory(root, RUN, BASE, "direct")
    (run / "metrics.json").write_text(json.dumps(TREE))
    record_files(run, "metrics.json")
    assert report(study_of(root, run)) == run
    page = (run / "report.html").read_text(encoding="utf-8")
    files = json.loads((run / "manifest.json").read_text())["files"]
    assert files["samples.html"] == file_sha256(run / "samples.html")
    assert f'href="samples.html#monitor={BASE}&amp;prompt=direct&amp;at=own&amp;sample=' in page
    judged = [one for one in SAMPLES if one.category == "safety_permission"]
    assert [one.id in page for one in judged] == [one.label is Label.BENIGN for one in judged]
    assert not any(one.id in page for one in SAMPLES if one not in judged)
    assert f"{BASE}, direct prompt: 0 misses and 2 false alarms shown" in page
    assert HOSTILE not in page
    assert "smollm2_135m" in capsys.readouterr().out
    few = study("run=.", "report.worst=1", primary="report").report
    report(study_of(root, run).model_copy(update={"report": few}))
    assert "0 misses and 1 false alarm shown" in (run / "report.html").read_text(encoding="utf-8")


def test_report_of_a_transfer_run_shows_those_of_its_runs(root: Path) -> None:
    """Runs of one monitor that differ in their seed must not stand under one name."""
    tree = fake_tree()
    tree["monitors"]["m_seed7"] = tree["monitors"][BASE]
    results = as_results(tree)
    runs = [
        run_directory(root, RUN, BASE, "direct"),
        run_directory(root, "evaluate/m-direct-2", "m", "direct", seed=7),
    ]
    transfer = transfer_of(root, [root / "moved" / "runs" / RUN, runs[1]])
    asked = study_of(root, transfer)
    manifest = json.loads((transfer / "manifest.json").read_text())
    found = read_judged(transfer, manifest, results, asked.paths)
    assert found.missing == []
    worst = worst_of(found.runs, asked.report.worst)
    assert {name: {p: len(of) for p, of in by.items()} for name, by in worst.items()} == {
        BASE: {"direct": 2},
        "m_seed7": {"direct": 2},
    }


@pytest.mark.parametrize("gone", ["data", f"runs/{RUN}", f"runs/{RUN}/verdicts.jsonl"])
def test_what_is_gone_is_said(root: Path, gone: str) -> None:
    """A report of old numbers must still be made when data were cleaned up, and say what it lacks."""
    transfer = transfer_of(root, [run_directory(root, RUN, BASE, "direct")])
    target = root / gone
    shutil.rmtree(target) if target.is_dir() else target.unlink()
    report(study_of(root, transfer))
    page = (transfer / "report.html").read_text(encoding="utf-8")
    assert "The samples of base-direct-1 can&#39;t be shown." in page
    assert "false alarms shown" not in page
    assert 'href="samples.html' not in page, "a link to what is not there"
    assert not (transfer / "samples.html").exists()


@pytest.mark.parametrize(("folder", "kind"), [("train", "a training run"), ("elsewhere", "another kind")])
def test_a_run_without_a_report_is_called_what_it_is(root: Path, folder: str, kind: str) -> None:
    """Told to score a training run, a person is told by `score.py` that it is no evaluation run."""
    run = root / "runs" / folder / "base-all-1"
    run.mkdir(parents=True)
    seal(run, MANIFEST | {"results": {"name": "all"}})
    with pytest.raises(UserError, match=f"{kind}.*, which has no report; expected an evaluation"):
        report(study_of(root, run))


def test_metrics_of_another_version_are_one_line(root: Path) -> None:
    """An old run has to be scored again: a traceback does not say so."""
    run = run_directory(root, RUN, BASE, "direct")
    (run / "metrics.json").write_text(json.dumps({**TREE, "schema_version": 1}))
    record_files(run, "metrics.json")
    with pytest.raises(UserError, match="score the run again"):
        report(study_of(root, run))
