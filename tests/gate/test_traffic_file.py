"""Files of scores that others write."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.config.base import UserError
from monitorbench.gate.traffic import read_traffic

LINES = st.lists(
    st.tuples(st.none() | st.floats(0, 1), st.none() | st.sampled_from(["a", "b", "c"])),
    min_size=1,
    max_size=20,
)


@given(LINES)
def test_a_group_is_its_highest_score_or_unscored(tmp_path_factory: pytest.TempPathFactory, lines: list):
    """Steps of one trajectory would count as independent, and the alarm go off by itself."""
    file = tmp_path_factory.getbasetemp() / "traffic.jsonl"
    file.write_text("".join(json.dumps({"score": s, "group": g, "other": 1}) + "\n" for s, g in lines))
    by_group: dict[object, list[float | None]] = {}
    for i, (score, group) in enumerate(lines):
        by_group.setdefault(group or i, []).append(score)
    expected = [None if None in scores else max(scores) for scores in by_group.values()]
    assert read_traffic(file) == expected


def test_decisions_on_one_exchange_are_one(tmp_path: Path):
    """Retries and pieces of a streamed answer would count as independent, and the alarm go off by itself."""
    file = tmp_path / "decisions.jsonl"
    lines = [("a", 0.25), ("b", 0.5), ("a", 0.75)]
    file.write_text("".join(json.dumps({"sample_id": name, "score": score}) + "\n" for name, score in lines))
    assert read_traffic(file) == [0.75, 0.5]
    file.write_text('{"sample_id": 1, "score": 0.1}\n{"sample_id": "a", "group": "g", "score": 0.2}\n')
    assert read_traffic(file) == [0.1, 0.2]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: Expecting"),
        ('{"scores": 0.5}', "line 2: no score in it"),
        ('{"score": true}', "line 2: score=True"),
        ('{"score": 1.5}', r"line 2: score=1\.5"),
        ('{"score": 0.5, "group": 3}', "line 2: group=3"),
        ('{"score": NaN}', "line 2: NaN is no finite number"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, message: str):
    """A score that was read as something else drifts, or hides a drift."""
    file = tmp_path / "traffic.jsonl"
    file.write_text(f'{{"score": 0.5}}\n{line}\n')
    with pytest.raises(UserError, match=message):
        read_traffic(file)


def test_a_missing_or_empty_file_is_said_to_be(tmp_path: Path):
    """An empty log is no steady one."""
    with pytest.raises(UserError, match="no such file"):
        read_traffic(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(UserError, match="no row in it"):
        read_traffic(tmp_path / "empty.jsonl")
