"""Files that are there whole or not at all, and hashes that name content."""

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.config.base import UserError
from monitorbench.runs.files import (
    content_hash,
    folder_in_the_making,
    read_json,
    write_atomically,
    write_json,
)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_while_writing_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
):
    """A full disk half-way through would leave a manifest that no later stage can read."""
    path = tmp_path / "manifest.json"
    write_atomically(path, "old")

    def fails(*_: Any, **__: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(*((os, "fsync") if step == "fsync" else (Path, "replace")), fails)
    with pytest.raises(UserError, match=r"manifest\.json: can't be written \(no space"):
        write_atomically(path, "new" * 100_000)
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["manifest.json"]


def test_a_part_that_cant_be_removed_is_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A disk that fails while a file is cleaned up has written it all the same."""

    def fails(*_: Any, **__: Any) -> None:
        raise OSError("input/output error")

    monkeypatch.setattr(Path, "unlink", fails)
    write_atomically(tmp_path / "manifest.json", "new")
    assert (tmp_path / "manifest.json").read_text() == "new"


def test_a_process_killed_while_writing_leaves_the_old_file(tmp_path: Path):
    """The same for a job that its scheduler kills: nothing may clean up after it."""
    path = tmp_path / "metrics.json"
    write_atomically(path, "old")
    code = (
        "import os, pathlib\n"
        "from monitorbench.runs.files import write_atomically\n"
        "os.fsync = lambda _: os._exit(9)\n"
        f"write_atomically(pathlib.Path({str(path)!r}), 'new' * 100000)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    assert path.read_text() == "old"
    write_atomically(path, "newer")
    assert path.read_text() == "newer"
    assert [file.name for file in tmp_path.iterdir()] == ["metrics.json"]


def test_missing_folders_are_made(tmp_path: Path):
    """The first stage of a fresh clone has no runs/ to write into."""
    write_atomically(tmp_path / "runs" / "a" / "code.diff", b"\xff\x00")
    assert (tmp_path / "runs" / "a" / "code.diff").read_bytes() == b"\xff\x00"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"auroc": -float("inf")}])
def test_json_holds_no_nan(tmp_path: Path, value: Any):
    """`NaN` is no JSON: a browser or another language could not read the results."""
    path = tmp_path / "metrics.json"
    write_json(path, {"old": 1})
    with pytest.raises(ValueError, match="JSON"):
        write_json(path, value)
    assert read_json(path) == {"old": 1}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_json_comes_back(tmp_path_factory: pytest.TempPathFactory, value: Any):
    """What a stage wrote is what the next one has to read, whatever the language of the text."""
    path = tmp_path_factory.getbasetemp() / "value.json"
    write_json(path, value)
    assert read_json(path) == value


@given(st.dictionaries(st.text(), json_values, min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter_to_a_hash(value: dict[str, Any], random: Any):
    """Reordering a YAML would send a finished study back to its start."""
    items = list(value.items())
    random.shuffle(items)
    assert content_hash(dict(items)) == content_hash(value)


@given(json_values, json_values)
def test_other_content_has_another_hash(one: Any, other: Any):
    """Two settings under one directory would overwrite each other's results."""
    equal = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (content_hash(one) == content_hash(other)) is equal


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_what_a_process_left_behind_that_nobody_reaped_yet_is_swept(tmp_path: Path):
    """A killed build's workers stay zombies until init reaps them; their halves would stay for good."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    deadline = time.monotonic() + 30
    while Path(f"/proc/{ended.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    left = tmp_path / f".target.part-{ended.pid}@{platform.node()}"
    left.mkdir()
    with folder_in_the_making(tmp_path / "target") as part:
        (part / "file").write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["target"]
    ended.wait()
