"""`runs export` and `runs rm`: one zip without keys, always the same; what is removed, and what refused."""

import io
import json
import zipfile
from pathlib import Path

import pytest
from made_runs import calibrated, evaluated, sealed_run, trained, transferred

from monitorbench.config.base import UserError
from monitorbench.runs.command import export, main
from monitorbench.runs.files import DIRECTORY_LOCK, locked
from monitorbench.runs.run_folders import read_run

SECRET = "sk-0123456789abcdef"
TOKEN = "hush-hush"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A scored run with a report, and with what is not to leave the machine."""
    config = {"engine": {"api_key_env": "MINE", "extra_body": {"user": "kept"}}}
    path = evaluated(tmp_path / "runs", rates=(0.1, 0.2), config=config)
    (path / "report.html").write_text(f"<p>said: {SECRET}, and {TOKEN}</p>")
    (path / "samples").mkdir()
    (path / "samples" / "page.js").write_text("[]")
    for name in ("server.json", "code.diff", ".lock", "server.log"):
        (path / name).write_text(SECRET)
    (path / "wandb").mkdir()
    (path / "wandb" / "table.csv").write_text("x")
    (path / "samples" / "link.html").symlink_to("/etc/hostname")
    return path


def names(file: Path) -> list[str]:
    """What is in a zip, without the run's name."""
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        return [name.partition("/")[2] for name in archive.namelist()]


def test_results_are_in_it_and_answers_by_choice(run: Path, tmp_path: Path):
    """Sent to a colleague: the numbers have to be there, what was judged only where one says so."""
    results = ["config.json", "manifest.json", "metrics.json", "report.html", "samples/page.js", "table.csv"]
    made = export(read_run(run, "evaluate"), tmp_path / "a.zip", verdicts=False)
    assert names(made.file) == made.names == results
    with_answers = export(read_run(run, "evaluate"), tmp_path / "b.zip", verdicts=True)
    assert names(with_answers.file) == [*results, "verdicts.jsonl"]


def test_the_same_run_gives_the_same_bytes(run: Path, tmp_path: Path):
    """A zip under version control, or named by its checksum, must not change by itself."""
    first = export(read_run(run, "evaluate"), tmp_path / "a.zip", verdicts=True).file.read_bytes()
    for path in run.iterdir():
        path.touch()
    assert export(read_run(run, "evaluate"), tmp_path / "b.zip", verdicts=True).file.read_bytes() == first


def test_keys_are_replaced(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An endpoint that echoes the key it was given puts it into verdicts and report."""
    monkeypatch.setenv("MINE", SECRET)
    monkeypatch.setenv("SOME_TOKEN", TOKEN)
    made = export(read_run(run, "evaluate"), tmp_path / "a.zip", verdicts=True)
    assert made.redacted == ["report.html"]
    with zipfile.ZipFile(made.file) as archive:
        everything = b"".join(map(archive.read, archive.namelist()))
    assert SECRET.encode() not in everything
    assert TOKEN.encode() not in everything
    assert b"kept" in everything


def test_a_damaged_file_is_not_sent(run: Path, tmp_path: Path):
    """A colleague can't tell an edited table from the one that was written."""
    (run / "table.csv").write_text("monitor,prompt\n")
    with pytest.raises(UserError, match=r"table\.csv: not as it was written"):
        export(read_run(run, "evaluate"), tmp_path / "a.zip", verdicts=False)
    assert not (tmp_path / "a.zip").exists()


def test_the_command_names_the_file(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """The next command takes it from the last line."""
    monkeypatch.chdir(tmp_path)
    assert main(["export", "latest"]) == 0
    assert capsys.readouterr().out == f"{run.name}.zip\n"
    assert main(["export", "latest", "-o", "runs"]) == 0
    assert (tmp_path / "runs" / f"{run.name}.zip").is_file()
    empty = sealed_run(tmp_path / "runs" / "serve" / "small-0123456789ab", {}, {})
    assert main(["export", str(empty)]) == 0, "settings and manifest are something"


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


def test_a_run_that_is_gone_is_still_named_by_what_was_made_from_it(
    runs: Path, capsys: pytest.CaptureFixture[str]
):
    """Otherwise: a table of two runs is shown as if it had been made from one."""
    judged, other = evaluated(runs), evaluated(runs, "other-direct")
    transfer = transferred(runs, judged, other)
    assert rm(runs, judged, "--yes", "--force") == 0
    assert main(["show", str(transfer), "--runs", str(runs)]) == 0
    made_from = capsys.readouterr().out.partition("made from\n")[2].splitlines()
    assert made_from[:2] == [f"  {other.name}", f"  {judged.name} (removed)"]


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
