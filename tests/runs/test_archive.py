"""`runs export`: one zip, the same every time, with nothing in it that has to stay here."""

import zipfile
from pathlib import Path

import pytest
from made_runs import evaluated, sealed_run

from monitorbench.config.base import UserError
from monitorbench.runs.command import export, main
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
