"""Files of other stages, broken: one line that names the file, and no traceback."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monitorbench.config.base import UserError
from monitorbench.runs.directory import read_finished, write_manifest
from monitorbench.runs.files import file_sha256, read_json, read_object, read_objects
from monitorbench.scoring.operating_point import read_operating_point
from monitorbench.sweeps.sweep import read as read_sweep

BROKEN = {
    "empty": b"",
    "cut off": b'{"status": "done", "results": {"a',
    "not UTF-8": b'{"status": "\xff\xfe"}',
    "a pickle": pickle.dumps({"status": "done"}),
    "nested too deeply": b"[" * 100_000,
    "a key twice": b'{"status": "running", "status": "done"}',
    "no number": b'{"status": NaN}',
    "zeros": bytes(64),
}
SHAPES = {"list": b"[]", "list of text": b'["a"]', "null": b"null", "number": b"3", "text": b'"done"'}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("read", [read_json, read_object, read_objects])
def test_what_is_no_json_is_one_line(tmp_path: Path, content: bytes, read: Callable[[Path], Any]) -> None:
    """A disk that filled up, or a file copied as text, ends in a traceback that names nothing to do."""
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: not JSON (")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", SHAPES.values(), ids=SHAPES)
def test_json_of_another_shape_is_one_line(tmp_path: Path, content: bytes) -> None:
    """`list indices must be integers` is no help to someone who passed the wrong file."""
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match="expected an object"):
        read_object(path)
    path.write_bytes(b'{"inner": ' + content + b"}")
    with pytest.raises(UserError, match="inner is no object"):
        read_object(path).object("inner")
    with pytest.raises(UserError, match="no list of objects"):
        read_objects(path)
    with pytest.raises(UserError, match="no such file"):
        read_object(tmp_path / "missing.json")


@pytest.mark.parametrize("content", [*BROKEN.values(), *SHAPES.values()], ids=[*BROKEN, *SHAPES])
def test_a_manifest_and_an_operating_point(tmp_path: Path, content: bytes) -> None:
    """The files that a user passes by hand to another stage."""
    (tmp_path / "manifest.json").write_bytes(content)
    for read in (read_finished, read_operating_point, read_sweep):
        with pytest.raises(UserError) as caught:
            read(tmp_path)
        assert "\n" not in str(caught.value)
    point = tmp_path / "operating_point.json"
    point.write_bytes(content)
    files = {point.name: file_sha256(point)}
    write_manifest(tmp_path, {"status": "done", "results": {"operating_point": {}}, "files": files})
    with pytest.raises(UserError, match=r"operating_point\.json"):
        read_operating_point(tmp_path)
