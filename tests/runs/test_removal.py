"""`runs rm`: what is removed, and all that is refused."""

import io
import json
from pathlib import Path

import pytest
from made_runs import calibrated, evaluated, trained, transferred

from monitorbench.runs.command import main
from monitorbench.runs.files import DIRECTORY_LOCK, locked


def rm(runs: Path, *arguments: object) -> int:
    """`runs rm`; its exit code."""
    try:
        return main(["rm", "--runs", str(runs), *map(str, arguments)])
    except SystemExit as ended:
        return int(str(ended.code))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """The folder of runs."""
    return tmp_path / "runs"


def test_what_others_were_made_from_stays(runs: Path, capsys: pytest.CaptureFixture[str]):
    """A report whose runs are gone can't be checked, nor made again without hours of judging."""
    training = trained(runs)
    adapter = {"monitor": {"adapter": str(training / "adapter")}}
    judged = evaluated(runs, "small+all-direct", config=adapter)
    calibration = evaluated(runs, split="calibration")
    point, transfer = calibrated(runs, calibration), transferred(runs, judged)
    for run, reader in ((training, judged), (judged, transfer), (calibration, point)):
        assert rm(runs, run, "--yes") == 1
        line = capsys.readouterr().err
        assert f"{run}: {reader.parent.name}/{reader.name} was made from it" in line
        assert line.count("\n") == 1
        assert run.is_dir()
    assert rm(runs, training, judged, "--yes") == 1, "the transfer stays"
    assert training.is_dir()
    assert rm(runs, training, judged, transfer, "--yes") == 0
    assert not any(run.exists() for run in (training, judged, transfer))
    assert rm(runs, calibration, "--yes", "--force") == 0
    assert not calibration.exists()
    assert point.is_dir()


def test_a_run_that_is_written_stays(runs: Path, capsys: pytest.CaptureFixture[str]):
    """Its process would write on into a folder that is gone."""
    alive, other = evaluated(runs, status="running"), evaluated(runs, salt=1)
    with locked(alive / DIRECTORY_LOCK):
        assert rm(runs, other, alive, "--yes", "--force") == 1
    assert "a process is writing to it" in capsys.readouterr().err
    assert other.is_dir(), "all are looked at before the first is removed"
    assert rm(runs, alive, "--yes") == 0
    assert list((runs / "evaluate").iterdir()) == [other]


def test_nothing_outside_is_removed(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A slip of the hand must not cost what no command of ours can make again."""
    run = evaluated(runs)
    outside = tmp_path / "outside" / "evaluate" / "mine-0123456789ab"
    outside.mkdir(parents=True)
    (outside / "thesis.txt").write_text("years")
    (runs / "evaluate" / "link-0123456789ab").symlink_to(outside)
    (runs / "train").symlink_to(outside.parent)
    (run / "inner").symlink_to(outside)
    monkeypatch.chdir(runs)
    refused = [
        outside,
        runs / "evaluate" / "link-0123456789ab",
        runs / "train" / outside.name,
        runs / "evaluate" / ".." / "evaluate",
        run / "inner",
        run / "..",
        runs / "evaluate",
        runs,
        "..",
        ".",
        "/",
        "",
    ]
    for path in refused:
        assert rm(runs, path, "--yes", "--force") == 1, path
    assert run.is_dir()
    assert rm(runs, run, "--yes") == 0
    assert not run.exists()
    assert (outside / "thesis.txt").read_text() == "years"


def test_it_asks(runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """A mistyped prefix is seen before it is too late."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    run = evaluated(runs)
    for answer, stays in (("\n", True), ("no\n", True), ("y\n", False)):
        monkeypatch.setattr("sys.stdin", Terminal(answer))
        assert rm(runs, "small") == 0
        assert f"{run} (done, " in capsys.readouterr().out
        assert run.exists() is stays
    again = evaluated(runs)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert rm(runs, "small") == 1, "nobody is there to be asked"
    assert "add --yes" in capsys.readouterr().err
    assert again.is_dir()


def test_a_damaged_run_can_be_removed(runs: Path):
    """It is what one most wants to be rid of, and its manifest can't be read."""
    run = evaluated(runs)
    (run / "manifest.json").write_text(json.dumps({"status": "done"}))
    assert rm(runs, run, "--yes") == 0
    assert not run.exists()
