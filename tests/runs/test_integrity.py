"""What was written is compared when it is read: a flipped bit or an edited label never passes."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from command import Done, script
from hypothesis import given
from hypothesis import strategies as st
from sealed import seal

from monitorbench.config.base import UserError
from monitorbench.config.study import Study
from monitorbench.corpus.columns import read_columns
from monitorbench.corpus.store import read_split
from monitorbench.judging.evaluate import evaluate
from monitorbench.records import Split
from monitorbench.runs import files
from monitorbench.runs.directory import read_finished, record_files
from monitorbench.runs.files import file_sha256, sealed_line, unsealed_line
from monitorbench.runs.keyed_log import read_verdicts
from monitorbench.runs.verify import verify_folders
from monitorbench.scoring.evaluations import read_evaluation
from monitorbench.scoring.verdict_columns import read_verdict_columns


def flipped(content: bytes, bit: int) -> bytes:
    """The content with one bit of it turned."""
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@pytest.fixture
def data(starter: Path, tmp_path: Path) -> Path:
    """A copy of the starter's directory, to be damaged."""
    return Path(shutil.copytree(starter, tmp_path / "data" / starter.name))


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none(), min_size=1))
def test_a_line_comes_back(content: dict[str, Any]):
    """A checksum that changes what it guards would be worse than none."""
    text = json.dumps(content)
    line = sealed_line(text)
    assert unsealed_line(line) == text.encode()
    assert json.loads(line) | content == json.loads(line)


@given(st.text(), st.data())
def test_a_line_with_one_bit_turned_does_not(text: str, data: st.DataObject):
    """A digit of a score, a letter of a label: nothing in the JSON shows it."""
    line = sealed_line(json.dumps({"label": text}))
    assert unsealed_line(flipped(line, data.draw(st.integers(0, 8 * len(line) - 1)))) is None


def test_a_file_is_read_once_and_again_when_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Read each time, a large model's weights would cost minutes; never again, a change would pass."""
    path = tmp_path / "file"
    path.write_bytes(b"one")
    first = file_sha256(path)
    with monkeypatch.context() as patch:
        patch.setattr(files.hashlib, "file_digest", lambda *_: pytest.fail("read again"))
        assert file_sha256(path) == first
    path.write_bytes(b"two, longer")
    assert file_sha256(path) != first


def test_turned_labels_are_refused(data: Path):
    """Every label of a test split turned: it was judged and scored, with a fine interval."""
    (shard,) = (data / "test").glob("*.parquet")
    table = pq.read_table(shard)
    turned = pc.if_else(pc.equal(table["label"], "benign"), "misbehavior", "benign")
    pq.write_table(table.set_column(table.schema.get_field_index("label"), "label", turned), shard)
    for read in (read_split, read_columns):
        with pytest.raises(UserError, match=r"part-00000\.parquet: not as it was written") as caught:
            read(data, Split.TEST)
        assert "\n" not in str(caught.value)


def test_a_shard_more_or_less_is_refused(data: Path):
    """Read along, a stranger's would be part of every number; without one the rest would pass for all."""
    (shard,) = (data / "test").glob("*.parquet")
    beside = Path(shutil.copy(shard, shard.with_name("part-00001.parquet")))
    with pytest.raises(UserError, match=r"part-00001\.parquet: no checksum of it is recorded"):
        read_split(data, Split.TEST)
    record_files(data, f"test/{beside.name}")
    shard.unlink()
    with pytest.raises(UserError, match=r"part-00000\.parquet: can't be read"):
        read_split(data, Split.TEST)


@pytest.mark.parametrize("change", [{"status": "running"}, {"results": {"n": 7}}, {"files": {}}])
def test_an_edited_manifest_is_refused(data: Path, change: dict[str, Any]):
    """It says what a run is; edited, a run passes for another."""
    path = data / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(UserError, match=r"manifest\.json: not as a stage wrote it"):
        read_finished(data)


@pytest.fixture
def run(study: Callable[..., Study], use_engine: Any, says_by_prompt: Any) -> Path:
    """A finished evaluation run."""
    use_engine(says_by_prompt)
    return evaluate(study())


@pytest.mark.parametrize(
    ("pattern", "by"),
    [
        (rb'"label":"benign"', b'"label":"misbehavior"'),
        (rb'"score":0\.\d+', b'"score":0.99'),
        (rb'"sample_id":"\w', b'"sample_id":"0'),
    ],
)
def test_an_edited_verdict_is_refused_by_its_line(run: Path, study: Any, pattern: bytes, by: bytes):
    """One label edited in a log of thousands: every number made of it would be wrong, and look right."""
    log = run / "verdicts.jsonl"
    lines = log.read_bytes().split(b"\n")
    number = next(i for i, line in enumerate(lines) if re.search(pattern, line) and by not in line)
    lines[number] = re.sub(pattern, by, lines[number], count=1)
    log.write_bytes(b"\n".join(lines))
    for read in (read_verdicts, read_verdict_columns):
        with pytest.raises(UserError, match=rf"verdicts\.jsonl:{number + 1}: no Verdict as it was written"):
            read(log)
    with pytest.raises(UserError, match=rf":{number + 1}:"):
        read_evaluation(study().paths.data, run)


def test_verify_names_what_is_not_whole(data: Path, run: Path, tmp_path: Path):
    """Who gets a folder from a colleague, or from an old disk, has to know which of it to believe."""
    found = verify_folders([data, run])
    assert {*found.whole} == {data, run}
    assert (found.problems, found.unfinished, found.unrecorded) == ([], [], [])
    assert found.n_files == 7
    assert found.n_lines > 0
    shutil.copytree(data, tmp_path / "all" / "data")
    shutil.copytree(run, tmp_path / "all" / "run")
    shutil.copytree(run, tmp_path / "all" / "half")
    seal(tmp_path / "all" / "half", {**read_finished(run), "status": "running"})
    damaged = tmp_path / "all" / "data" / "validation" / "part-00000.parquet"
    damaged.write_bytes(flipped(damaged.read_bytes(), 4000))
    log = tmp_path / "all" / "run" / "verdicts.jsonl"
    log.write_bytes(log.read_bytes()[:-10])
    (tmp_path / "all" / "run" / "notes.txt").write_text("mine")
    found = verify_folders([tmp_path / "all"])
    assert found.whole == []
    assert found.unfinished == [tmp_path / "all" / "half"]
    assert [str(damaged) in one or f"{log}: lines are missing" in one for one in found.problems] == [True] * 2
    assert found.unrecorded == [tmp_path / "all" / "run" / "notes.txt"]


def test_the_script_says_it_in_lines_of_its_own(data: Path, tmp_path: Path):
    """A release is checked by a script that reads exit codes."""

    def verify(*overrides: str) -> Done:
        paths = [f"paths.data={data.parent}", f"paths.runs={tmp_path / 'runs'}"]
        return script("eval/verify.py", *paths, *overrides, folder=tmp_path)

    done = verify()
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].startswith("1 whole, 0 unfinished, 0 problems: 5 files")
    (data / "config.json").unlink()
    done = verify(f"run={data}")
    assert done.returncode == 1
    assert f"not whole   {data / 'config.json'}: can't be read" in done.stdout
    assert "Traceback" not in done.stderr
    assert verify(f"run={tmp_path / 'nothing'}").returncode == 1
