"""One process writes a run: a second is refused, or waits; a lock ends with its process."""

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from monitorbench.config.base import UserError
from monitorbench.config.study import Study
from monitorbench.corpus import build
from monitorbench.runs import keyed_log
from monitorbench.runs.directory import RunDirectory, is_finished
from monitorbench.runs.keyed_log import open_verdict_log

HOLD = """
import sys, time
from pathlib import Path
from monitorbench.runs.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path: Path):
    """Start a process that holds the lock of a run's directory."""
    started: list[subprocess.Popen[str]] = []

    def start(directory: Path) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", HOLD, str(directory / ".lock")]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        assert started[-1].stdout is not None
        assert started[-1].stdout.readline() == "held\n"
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_run_that_another_process_writes_is_left_alone(
    compose_study: Callable[..., Study], tmp_path: Path, holder: Callable[[Path], subprocess.Popen[str]]
):
    """Two trainings in one directory would take each other's checkpoints away, and write one adapter."""
    study, run = compose_study("train"), RunDirectory(tmp_path, "all", {})
    process = holder(run.path)
    with (
        pytest.raises(UserError, match=f"{run.path}: another process is writing to it"),
        run.recording(study),
    ):
        pass
    assert [file.name for file in run.path.iterdir()] == [".lock"], "the owner's files were written over"
    process.kill()
    process.wait()
    with run.recording(study):
        pass
    assert is_finished(run.path)


def _build(study: Study) -> Path:
    return build.ensure(study)


@pytest.mark.slow
def test_of_two_builds_the_second_waits_and_takes_the_firsts(
    compose_study: Callable[..., Study], tmp_path: Path, holder: Callable[[Path], subprocess.Popen[str]]
):
    """A sweep's first jobs all find no data: refused, all but one would fail; unheeded, they write over."""
    example = Path(__file__).parents[2] / "examples" / "dataset.jsonl"
    study = compose_study("build", "dataset=jsonl", f"dataset.path={example}", f"paths.data={tmp_path}")
    directory = build.directory_of(study).path
    process = holder(directory)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        waiting = [pool.apply_async(_build, (study,)) for _ in range(2)]
        time.sleep(3)
        assert not any(one.ready() for one in waiting)
        assert not (directory / "manifest.json").exists()
        process.kill()
        assert {one.get(120) for one in waiting} == {directory}
    assert is_finished(directory)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have logs reach the disk ten times as often as they do."""
    assert keyed_log._SECONDS_BETWEEN_SYNCS == 1
    monkeypatch.setattr(keyed_log, "_SECONDS_BETWEEN_SYNCS", 0.1)


def test_a_log_reaches_the_disk_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, often: None):
    """Left to the kernel, a power cut takes half a minute of answers that were paid for."""
    synced: list[float] = []
    fsync = os.fsync
    monkeypatch.setattr(
        keyed_log.os, "fsync", lambda stream: (synced.append(time.monotonic()), fsync(stream))
    )
    from test_keyed_log import verdict

    with open_verdict_log(tmp_path / "verdicts.jsonl") as log:
        log.append(verdict("a"))
        _until(lambda: synced)
        time.sleep(0.5)
        assert len(synced) == 1, "nothing new was written"
        log.append(verdict("b"))
    assert len(synced) in (2, 3), "when it is closed; the interval may have ended just before"


def _until(ready: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_disk_that_fails_while_the_run_goes_on_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, often: None
):
    """The kernel tells of a lost block once: not heard, a run would be `done` without it."""
    from test_keyed_log import verdict

    failures = [OSError(5, "Input/output error")]
    fsync = os.fsync

    def failing(stream: int) -> None:
        if failures:
            raise failures.pop()
        fsync(stream)

    monkeypatch.setattr(keyed_log.os, "fsync", failing)

    def write() -> None:
        with open_verdict_log(tmp_path / "verdicts.jsonl") as log:
            log.append(verdict("a"))
            _until(lambda: not failures)
            time.sleep(0.1)  # until it is noted

    with pytest.raises(UserError, match=r"can't be written \(Input/output error\)"):
        write()
