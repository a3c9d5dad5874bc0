"""The verdict log: nothing that was paid for is lost, nothing torn is believed, no verdict is doubled."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from drawing import draws
from hypothesis import given
from hypothesis import strategies as st
from made_verdicts import made_verdict

from monitorbench.records import Label, Verdict
from monitorbench.runs.keyed_log import open_verdict_log, read_verdicts


def verdict(key: str = "k", label: Label | None = Label.MISBEHAVIOR, **fields: Any) -> Verdict:
    """A verdict with a score; without a label it has none."""
    given = {"score": 0.75 if label else None, "label_mass": 0.5 if label else None}
    return made_verdict(label, key=key, sample_id=f"sample of {key}", **given | fields)


texts = st.text(max_size=12) | st.sampled_from(["\n", "\r\n", "\u2028", "\x85", '"}\n{"', "漢字😀"])
verdicts = st.lists(
    st.builds(
        lambda answer, quotes, rest: verdict(answer=answer, quotes=quotes, **rest),
        texts,
        st.lists(texts, max_size=2).map(tuple),
        st.just({"label": None}) | st.builds(lambda score: {"score": score}, st.floats(0, 1)),
    ),
    min_size=1,
    max_size=4,
).map(lambda found: [one.model_copy(update={"key": f"key{i}"}) for i, one in enumerate(found)])


def write(path: Path, given: list[Verdict]) -> None:
    """A log of these, written in one go."""
    path.unlink(missing_ok=True)
    with open_verdict_log(path) as log:
        for one in given:
            log.append(one)


@given(verdicts)
@draws(25)
def test_verdicts_come_back(tmp_path_factory: pytest.TempPathFactory, given: list[Verdict]):
    """A line break in an answer must not make two lines of one verdict."""
    path = tmp_path_factory.getbasetemp() / "round" / "verdicts.jsonl"
    write(path, given)
    assert read_verdicts(path) == given
    assert path.read_bytes().count(b"\n") == len(given)


def test_a_log_may_be_torn_at_any_byte(tmp_path: Path):
    """A machine that died while writing costs one verdict: not the log, and not a wrong number."""
    given = [verdict("a", answer="no é😀"), verdict("b", None), verdict("c", quotes=("漢",))]
    path = tmp_path / "verdicts.jsonl"
    write(path, given)
    whole = path.read_bytes()
    for cut in range(len(whole) + 1):
        _check_cut(path, given, whole, cut)


def _check_cut(path: Path, given: list[Verdict], whole: bytes, cut: int) -> None:
    kept = whole[:cut].count(b"\n")
    path.write_bytes(whole[:cut])
    assert read_verdicts(path) == given[:kept]
    with open_verdict_log(path) as log:
        assert list(log.entries.values()) == given[:kept]
        for one in given[kept:]:
            log.append(one)
    assert path.read_bytes() == whole


SECOND = """
import pathlib, sys
from monitorbench.config.base import UserError
from monitorbench.judging.identity import verdict_key
from monitorbench.runs.keyed_log import open_verdict_log
try:
    with open_verdict_log(pathlib.Path(sys.argv[1])) as log:
        print(len(log.entries))
except UserError as error:
    print("refused:", error)
"""


def test_a_second_process_is_refused(tmp_path: Path):
    """Two jobs on one log would pay for every verdict twice and interleave their lines."""
    path = tmp_path / "verdicts.jsonl"

    def second() -> str:
        command = [sys.executable, "-c", SECOND, str(path)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    with open_verdict_log(path) as log:
        log.append(verdict("a"))
        answer = second()
        log.append(verdict("b"))
    assert answer.startswith("refused:")
    assert str(path) in answer
    assert [one.key for one in read_verdicts(path)] == ["a", "b"]
    assert second() == "2\n"


def test_a_key_that_is_there_is_refused(tmp_path: Path):
    """A sample counted twice shifts every rate, unseen."""
    path = tmp_path / "verdicts.jsonl"
    write(path, [verdict("a")])
    with open_verdict_log(path) as log, pytest.raises(ValueError, match="a"):
        log.append(verdict("a", answer="no"))
    assert read_verdicts(path) == [verdict("a")]


def test_an_interrupted_run_keeps_what_it_has(tmp_path: Path):
    """Ctrl-C in the tenth hour must leave ten hours of verdicts, and the log free for the next try."""
    path = tmp_path / "verdicts.jsonl"

    def interrupted() -> None:
        with open_verdict_log(path) as log:
            log.append(verdict("a"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with open_verdict_log(path) as log:
        assert list(log.entries) == ["a"]
