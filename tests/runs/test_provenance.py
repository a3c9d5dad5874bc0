"""What a run keeps of the code: monitorbench's own tracked sources, bounded, and nothing of anybody else."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monitorbench.cli.main import main
from monitorbench.config.study import Study
from monitorbench.runs import provenance
from monitorbench.runs.directory import RunDirectory, read_manifest
from monitorbench.runs.provenance import MOST_DIFF_BYTES, code_state

IDENTITY = {"data": "starter-0123456789ab", "judge": {"weights": "w", "adapter": ""}}
SECRET = "sk-PLANTED-0123456789abcdef"


def _git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


def _repository(folder: Path, package: Path, project: str) -> Path:
    """A repository that tracks a package and the file notes.txt, with one commit."""
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("one = 1\n")
    (folder / "pyproject.toml").write_text(f'[project]\nname = "{project}"\n')
    (folder / "notes.txt").write_text("nothing\n")
    _git(folder, "init", "-q")
    _git(folder, "add", "--force", ".")
    _git(folder, "commit", "-q", "-m", "first")
    return folder


def _run_from(patch: pytest.MonkeyPatch, package: Path) -> None:
    patch.setattr(provenance, "_package_file", lambda: package / "__init__.py")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small checkout that the running code seems to come from."""
    folder = tmp_path / "checkout"
    package = folder / "src" / "monitorbench"
    _repository(folder, package, "monitorbench")
    _run_from(monkeypatch, package)
    return folder


def _plant(folder: Path) -> None:
    """Put the secret where a person has secrets: `.env`, an untracked file, a tracked one, settings."""
    (folder / "conf" / "local").mkdir(parents=True, exist_ok=True)
    for name in (".env", "untracked.py", "notes.txt", "conf/local/mine.yaml", "src/monitorbench/new.py"):
        if (folder / name).parent.is_dir():
            (folder / name).write_text(f"OPENAI_API_KEY={SECRET}\n")


def _recorded(folder: Path, study: Study, **identity: Any) -> tuple[dict[str, Any], str]:
    run = RunDirectory(folder, "base", IDENTITY | identity)
    with run.recording(study):
        pass
    return read_manifest(run.path), (run.path / "code.diff").read_text()


@pytest.mark.parametrize(
    ("file", "text", "diff"),
    [
        ("__init__.py", "one = 1\n", ""),  # as committed: marked dirty, every run would look unrepeatable
        ("__init__.py", "one = 2\n", "-one = 1\n+one = 2\n"),
        # A module that git was not told of decides results, too, but stays where it is.
        ("metric.py", "two = 2\n", "# not tracked by git, so only named here: src/monitorbench/metric.py\n"),
    ],
)
def test_a_run_has_the_commit_and_what_differs_from_it(
    tmp_path: Path, checkout: Path, compose_study: Callable[..., Study], file: str, text: str, diff: str
):
    """A result of code that was never committed is lost unless the difference lies beside it."""
    (checkout / "src" / "monitorbench" / file).write_text(text)
    manifest, kept = _recorded(tmp_path, compose_study("evaluate"))
    assert manifest["git_commit"] == _git(checkout, "rev-parse", "HEAD").strip()
    assert manifest["git_dirty"] is bool(diff)
    assert kept.endswith(diff) if diff else kept == ""


def test_a_checkouts_other_files_stay_where_they_are(checkout: Path):
    """If it failed: `.env` and unpublished notes would travel with every run."""
    _plant(checkout)
    (checkout / "src" / "monitorbench" / "__init__.py").write_text("one = 2\n")
    diff = code_state().diff.decode()
    assert "+one = 2" in diff
    assert "src/monitorbench/new.py" in diff
    assert SECRET not in diff
    assert "notes" not in diff
    assert "local" not in diff


def test_a_key_in_an_edited_setting_is_hidden(checkout: Path):
    """If it failed: a key that somebody tried in a copy of ours would be in every later run."""
    (checkout / "conf").mkdir()
    (checkout / "conf" / "engine.yaml").write_text("extra_body: {}\n")
    _git(checkout, "add", ".")
    _git(checkout, "commit", "-q", "-m", "second")
    (checkout / "conf" / "engine.yaml").write_text(f"extra_body: {{api_key: {SECRET}}}\n")
    assert "+extra_body: {api_key: (hidden)}" in code_state().diff.decode()


@pytest.mark.parametrize("place", [".venv/lib/python3/site-packages/monitorbench", "src/monitorbench"])
def test_somebody_elses_repository_is_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
):
    """If it failed: the commit of a user's repository would pass for ours, and its files would be copied."""
    folder = tmp_path / "theirs"
    _repository(folder, folder / place, "theirs")
    _run_from(monkeypatch, folder / place)
    _plant(folder)
    assert code_state() == (None, b"")


def test_an_untracked_copy_has_a_version_only(checkout: Path):
    """If it failed: a copy of the package over another commit would be named by that commit."""
    _git(checkout, "rm", "-q", "--cached", "src/monitorbench/__init__.py")
    assert code_state() == (None, b"")


def test_a_git_hooks_variables_lead_nowhere(tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch):
    """If it failed: a command in somebody's commit hook would record that repository."""
    theirs = _repository(tmp_path / "theirs", tmp_path / "theirs" / "lib", "theirs")
    commit = _git(checkout, "rev-parse", "HEAD").strip()
    monkeypatch.setenv("GIT_DIR", str(theirs / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(theirs))
    assert code_state().commit == commit


def test_what_is_kept_is_bounded_and_says_what_it_lacks(checkout: Path):
    """If it failed: one rewritten table in the sources would lie in every run, or vanish without a word."""
    package = checkout / "src" / "monitorbench"
    (package / "table.py").write_text("")
    _git(checkout, "add", ".")
    _git(checkout, "commit", "-q", "-m", "second")
    (package / "table.py").write_text("row = 0\n" * MOST_DIFF_BYTES)
    (package / "__init__.py").write_text("one = 2\n")
    for number in range(1000):
        (package / f"new_{number}.py").write_text("")
    diff = code_state().diff
    assert len(diff) < MOST_DIFF_BYTES
    assert b"# changed, left out to keep this file small: src/monitorbench/table.py (" in diff
    assert b"only named here: 900 more\n" in diff
    _git(checkout, "checkout", "-q", "src/monitorbench/__init__.py")
    (checkout / "code.diff").write_bytes(diff)
    _git(checkout, "apply", "code.diff")
    assert (package / "__init__.py").read_text() == "one = 2\n"


def test_ten_runs_inside_a_checkout_are_of_one_size(checkout: Path, compose_study: Callable[..., Study]):
    """If it failed: each run would hold all earlier ones, and the tenth fill the disk."""
    study = compose_study("evaluate")
    (checkout / "src" / "monitorbench" / "__init__.py").write_text("one = 2\n")
    sizes = {len(_recorded(checkout / "mine" / "runs", study, seed=seed)[1]) for seed in range(10)}
    assert len(sizes) == 1


def test_a_dataset_has_the_commit_and_no_diff(checkout: Path, compose_study: Callable[..., Study]):
    """If it failed: who is given a dataset would be given unpublished code with it."""
    (checkout / "src" / "monitorbench" / "__init__.py").write_text("one = 2\n")
    dataset = RunDirectory(checkout / "data", "own", IDENTITY, is_shared=True)
    with dataset.recording(compose_study("build")):
        pass
    manifest = read_manifest(dataset.path)
    assert (manifest["git_dirty"], bool(manifest["git_commit"])) == (True, True)
    assert {path.name for path in dataset.path.iterdir()} == {".lock", "config.json", "manifest.json"}


def test_no_file_of_a_command_holds_a_planted_secret(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """If it failed: an import inside a user's repository would publish its `.env` with the dataset."""
    theirs = _repository(tmp_path, tmp_path / ".venv" / "monitorbench", "theirs")
    _plant(theirs)
    _run_from(monkeypatch, theirs / ".venv" / "monitorbench")
    monkeypatch.chdir(theirs)
    arguments = ["import.columns.score=rating.haiku", "import.scale=[10,1]", "tracking=none"]
    scores = f"from={root / 'examples' / 'judges.csv'}"
    monkeypatch.setattr(sys, "argv", ["monitorbench", "import", scores, *arguments])
    assert not main()
    written = [path for name in ("data", "runs") for path in (theirs / name).rglob("*") if path.is_file()]
    assert len(written) > 5
    assert [path for path in written if SECRET.encode() in path.read_bytes()] == []
    manifests = [path.read_text() for path in written if path.name == "manifest.json"]
    commit = _git(theirs, "rev-parse", "HEAD").strip()
    assert [text for text in manifests if commit in text] == []
