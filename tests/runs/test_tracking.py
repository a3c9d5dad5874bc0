"""W&B offline as a script has it: in a process of its own, with what it wrote read back from its file."""

import importlib.util
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from monitorbench.config.base import ConfigError
from monitorbench.config.study import Study
from monitorbench.runs.tracking import Track, tracking

needs_wandb = pytest.mark.skipif(importlib.util.find_spec("wandb") is None, reason="needs wandb")
KEY = "0123456789abcdef" * 2 + "01234567"

SCRIPT = """
import sys
from pathlib import Path
from monitorbench.config.study import Study
from monitorbench.runs.tracking import tracking

study = Study.model_validate_json(sys.stdin.read())
for path in map(Path, sys.argv[1:]):
    path.mkdir()
    with tracking(study, path, "evaluate") as track:
        for done in (0, 10, 20):
            track.log({"done": done, "miss_rate": done / 40, "cost": None}, step=done)
    print(path)
"""


def in_a_process(
    script: str, study: Study, *arguments: object, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a script of these tests as a stage's process, the study on its stdin."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("WANDB_", "MONITORBENCH_WANDB"))}
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        input=study.model_dump_json(),
        env={**inherited, "PYTHONPATH": os.pathsep.join(sys.path), **(environment or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def records(folder: Path) -> list[Any]:
    """The records of the one W&B file below a folder: LevelDB's log format around W&B's own messages.

    https://github.com/google/leveldb/blob/main/doc/log_format.md, after 7 bytes of W&B's own.
    """
    from wandb.proto.wandb_internal_pb2 import Record

    (path,) = folder.glob("wandb/offline-run-*/*.wandb")
    raw, at, part, found = path.read_bytes(), 7, b"", []
    while at + 7 <= len(raw):
        _, length, kind = struct.unpack_from("<IHB", raw, at)
        if kind == 0:  # the rest of a block is padding
            at += 32768 - at % 32768
            continue
        part += raw[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):
            found.append(Record.FromString(part))
            part = b""
    return found


def history(found: list[Any]) -> list[dict[str, Any]]:
    """The rows that were logged, without W&B's own columns."""
    rows = []
    for record in found:
        if record.WhichOneof("record_type") == "history":
            items = {
                ".".join(item.nested_key) or item.key: json.loads(item.value_json)
                for item in record.history.item
            }
            step = record.history.step.num
            rows.append({"step": step} | {k: v for k, v in items.items() if not k.startswith("_")})
    return rows


@needs_wandb
def test_offline_run_has_the_numbers_and_nothing_leaves(tmp_path: Path, study: Study) -> None:
    """Numbers missing there, a banner after the run directory on stdout, a connection, a key in a file.

    Two runs in one process, as a multirun has them. A connection would go through the proxy, which is ours.
    """
    runs = [tmp_path / "first-0a1b", tmp_path / "second-2c3d"]
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        proxy.setblocking(False)
        address = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        proxied = {"HTTPS_PROXY": address, "HTTP_PROXY": address, "WANDB_API_KEY": KEY}
        done = in_a_process(SCRIPT, study, *runs, environment=proxied)
        with pytest.raises(BlockingIOError):
            proxy.accept()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [str(run) for run in runs]
    for path in runs:
        found = records(path)
        assert history(found) == [{"step": s, "done": s, "miss_rate": s / 40} for s in (0, 10, 20)]
        (run,) = [r.run for r in found if r.WhichOneof("record_type") == "run"]
        assert (run.display_name, run.project, run.entity) == (path.name, "monitorbench", "team")
        assert (run.run_group, run.job_type) == (study.dataset.name, "evaluate")
        assert run.host == ""
        config = {item.key: json.loads(item.value_json) for item in run.config.update}
        config.pop("_wandb", None)
        assert config == study.model_dump(mode="json")
        assert found[-1].exit.exit_code == 0
        files = [file for file in path.rglob("*") if file.is_file()]
        assert not any(KEY.encode() in file.read_bytes() for file in files)


@pytest.fixture(scope="module")
def study(compose_study: Callable[..., Study]) -> Study:
    """An evaluation that starts W&B with its first number."""
    return compose_study("evaluate", "tracking.after_seconds=0", "tracking.entity=team")


class FakeRun:
    def __init__(self) -> None:
        self.rows: list[tuple[int, dict[str, float]]] = []
        self.exit_code: int | None = None

    def log(self, numbers: dict[str, float], step: int) -> None:
        self.rows.append((step, numbers))

    def finish(self, exit_code: int) -> None:
        self.exit_code = exit_code


def test_numbers_before_the_start_are_kept() -> None:
    """W&B is started late; a curve without its first seconds would hide how a run began."""
    run = FakeRun()
    track = Track(lambda: run)
    track.log({"done": 1, "cost": None}, step=1)
    track.log({"done": 2, "cost": 0.5}, step=2)
    track.close(3)
    assert run.rows == [(1, {"done": 1}), (2, {"done": 2, "cost": 0.5})]
    assert run.exit_code == 3


def test_a_short_run_and_one_that_logs_nothing_start_nothing() -> None:
    """Two samples would wait two seconds for W&B; a run that had everything would show up as an empty one."""
    began: list[int] = []
    track = Track(lambda: began.append(1), after_seconds=3600)
    track.log({"done": 1}, step=1)
    track.close()
    Track(lambda: began.append(1)).close()
    assert not began


def test_log_never_waits() -> None:
    """A W&B that hangs while it starts, as without a network, would stop the judging."""
    hang = threading.Event()
    run = FakeRun()

    def begin() -> FakeRun:
        assert hang.wait(30)
        return run

    track = Track(begin)
    for step in range(100):
        track.log({"done": step}, step=step)
    assert run.rows == []
    hang.set()
    track.close()
    assert len(run.rows) == 100


@pytest.mark.parametrize("fails_in", ["begin", "log"])
def test_failure_is_one_warning(fails_in: str, caplog: pytest.LogCaptureFixture) -> None:
    """An evaluation of hours would be lost to a full disk or a key that W&B doesn't know."""

    class Broken(FakeRun):
        def log(self, numbers: dict[str, float], step: int) -> None:
            raise OSError("No space left on device\nand a second line")

    def begin() -> FakeRun:
        if fails_in == "log":
            return Broken()
        raise OSError("No space left on device\nand a second line")

    track = Track(begin)
    for step in range(3):
        track.log({"done": step}, step=step)
    track.close()
    (line,) = caplog.messages
    assert "No space left on device" in line
    assert "second line" not in line


def test_without_wandb_a_warning_and_on(
    tmp_path: Path, study: Study, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The default would make wandb a requirement of every evaluation."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with tracking(study, tmp_path, "evaluate") as track:
        track.log({"done": 1}, step=1)
    (line,) = caplog.messages
    assert "not installed" in line
    assert "tracking=none" in line


def test_a_failed_stage_is_a_failed_run(
    tmp_path: Path, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupted evaluation shown as finished would be compared with whole ones."""
    run = FakeRun()
    monkeypatch.setattr("monitorbench.runs.tracking._begin", lambda *_: run)

    def interrupted() -> None:
        with tracking(study, tmp_path, "evaluate") as track:
            track.log({"done": 1}, step=1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert run.exit_code == 1


def test_none_starts_nothing(
    tmp_path: Path, compose_study: Callable[..., Study], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`tracking=none` has to mean it."""
    monkeypatch.setattr("monitorbench.runs.tracking._begin", lambda *_: pytest.fail("started"))
    with tracking(compose_study("evaluate", "tracking=none"), tmp_path, "evaluate") as track:
        track.log({"done": 1}, step=1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@needs_wandb
def test_online_without_a_key_goes_on(tmp_path: Path, compose_study: Callable[..., Study]) -> None:
    """W&B would ask for a key in the terminal, in the middle of the display, and wait."""
    study = compose_study("evaluate", "tracking=wandb_online")
    nowhere = {"HOME": str(tmp_path), "NETRC": str(tmp_path / "none")}
    done = in_a_process(SCRIPT, study, tmp_path / "run-0a", environment=nowhere)
    assert done.stdout.splitlines() == [str(tmp_path / "run-0a")]
    assert "no key" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_where_numbers_go_decides_no_name(compose_study: Callable[..., Study]) -> None:
    """Verdicts would be judged again because somebody turned W&B off: tracking is in no identity."""
    source = Path(__file__).parents[2] / "src" / "monitorbench"
    texts = {str(path.relative_to(source)): path.read_text() for path in source.rglob("*.py")}
    named = {name for name, text in texts.items() if "study.tracking" in text}
    assert named == {  # a sweep's name, and a transfer study's, become the group's
        "runs/tracking.py",
        "sweeps/sweep.py",
        "studies/transfer.py",
    }
    whole = {name for name, text in texts.items() if "study.model_dump(" in text}
    # config.json in two; a study's training is composed anew; names are looked at in one, shown in two.
    shown = {"training/pace.py", "runs/comparison.py"}
    others = {"sweeps/sweep.py", "studies/transfer.py", "config/load.py"} | shown
    assert whole == {"runs/tracking.py", *others}
    assert 'write_json(self.path / "config.json", config.model_dump(' in texts["runs/directory.py"]
    for planner in ("sweeps/sweep.py", "studies/transfer.py"):
        assert 'model_dump(mode="json", exclude={"paths", "cluster", "tracking"' in texts[planner]
    with pytest.raises(ConfigError, match=r"tracking\.mode=sometimes"):
        compose_study("evaluate", "tracking.mode=sometimes")


def test_wandb_is_imported_late() -> None:
    """Every stage and every short run would pay a second for it."""
    code = "import sys, monitorbench.runs.tracking; print('wandb' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
