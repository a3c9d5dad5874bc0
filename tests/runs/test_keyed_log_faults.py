"""The verdict log on a full disk, beside strangers' lines, and after its process was killed: real faults."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from test_keyed_log import verdict, write

from monitorbench.config.base import UserError
from monitorbench.runs.files import sealed_line
from monitorbench.runs.keyed_log import open_verdict_log, read_verdicts

LIMITED = """
import pathlib, resource, sys
sys.path[:0] = sys.argv[1].split(":")
from test_keyed_log import verdict
from monitorbench.config.base import UserError
from monitorbench.runs.keyed_log import open_verdict_log, read_verdicts

folder, (_, most) = pathlib.Path(sys.argv[2]), resource.getrlimit(resource.RLIMIT_FSIZE)
for limit in map(int, sys.argv[3:]):
    path, number = folder / f"{limit}.jsonl", 0
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
    with open_verdict_log(path) as log:
        try:
            while True:
                log.append(verdict(f"{number:05}", answer="no" + " " * 700))
                number += 1
        except UserError as error:
            print(error)
        held = path.read_bytes()
        assert held[-1:] in (b"", b"\\n") and held.count(b"\\n") == number, "a torn line is left"
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        log.append(verdict("after"))
    found = [one.key for one in read_verdicts(path)]
    assert found == [f"{i:05}" for i in range(number)] + ["after"], "a line is glued to another, or lost"
    print(number)
"""


def run(*command: str) -> list[str]:
    """The lines that a command printed."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def python(script: str, *arguments: object) -> list[str]:
    """A script in a process of its own, with the tests to import from."""
    here = Path(__file__).parent
    return [sys.executable, "-c", script, f"{here}:{here.parent}", *map(str, arguments)]


def test_a_line_that_does_not_fit_is_taken_back(tmp_path: Path):
    """Half a line at a disk's end would swallow the next one, and the whole log with it."""
    limits = [100, 1000, 4096, 8000, 8001, 20_000]
    printed = run(*python(LIMITED, tmp_path, *limits))
    line = sealed_line(verdict("00000", answer="no" + " " * 700).model_dump_json()) + b"\n"
    for limit, message, number in zip(limits, printed[::2], printed[1::2], strict=True):
        assert message.startswith(f"{tmp_path / str(limit)}.jsonl: can't be written (File too large)")
        assert "run the same command again" in message
        assert int(number) == limit // len(line)


def test_a_log_that_can_not_be_opened_is_said(tmp_path: Path):
    """A traceback for a folder in the place of a file helps nobody."""
    (tmp_path / "verdicts.jsonl").mkdir()
    with pytest.raises(UserError, match=r"verdicts\.jsonl: can't be written \(Is a directory\)"):
        write_one(tmp_path / "verdicts.jsonl")


def write_one(path: Path) -> None:
    with open_verdict_log(path) as log:
        log.append(verdict("a"))


def test_a_log_that_went_through_windows_is_read(tmp_path: Path):
    """Copying a run to a laptop and back must not cost its verdicts."""
    path = tmp_path / "verdicts.jsonl"
    write(path, [verdict("a"), verdict("b")])
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    with open_verdict_log(path) as log:
        log.append(verdict("c"))
    assert [one.key for one in read_verdicts(path)] == ["a", "b", "c"]


ORPHAN = """
import os, pathlib, signal, sys, time
from monitorbench.runs.files import sealed_line
from monitorbench.runs.keyed_log import open_verdict_log
with open_verdict_log(pathlib.Path(sys.argv[2])):
    child = os.fork()
    if child == 0:
        os.close(1)
        time.sleep(60)
        os._exit(0)
    print(child, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_worker_that_outlives_a_killed_run_does_not_hold_its_log(tmp_path: Path):
    """After a kill the same command would be refused for as long as an orphan lives."""
    path = tmp_path / "verdicts.jsonl"
    done = subprocess.run(
        python(ORPHAN, path), check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert done.returncode == -signal.SIGKILL
    child = int(done.stdout)
    try:
        os.kill(child, 0)
        write_one(path)
    finally:
        os.kill(child, signal.SIGKILL)
    assert [one.key for one in read_verdicts(path)] == ["a"]


def test_a_torn_line_that_can_not_be_cut_off_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A disk that fails when a run is resumed is no traceback; and a whole log needs no cutting."""
    path = tmp_path / "verdicts.jsonl"
    write(path, [verdict("a")])

    def refuse(stream: int, size: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "ftruncate", refuse)
    with open_verdict_log(path) as log:
        assert list(log.entries) == ["a"]
    path.write_bytes(path.read_bytes() + b'{"key": "b')
    with pytest.raises(UserError, match=r"can't be written \(No space left"), open_verdict_log(path):
        pass
