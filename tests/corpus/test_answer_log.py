"""A subject's answers are kept through kills, and never mixed up."""

from pathlib import Path

import pytest

from monitorbench.config.base import UserError
from monitorbench.corpus.elicited import Elicited, answer_key, open_answer_log, read_answers


def answer(key: str) -> Elicited:
    return Elicited(
        key=key,
        request="r",
        text="(B) …\n",
        finish_reason="stop",
        prompt_tokens=3,
        completion_tokens=2,
        seconds=0.1,
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with open_answer_log(tmp_path / "run" / "answers.jsonl") as log:
        log.append(answer("a"))
        log.append(answer("b"))
    return tmp_path / "run" / "answers.jsonl"


def test_a_torn_last_line_is_asked_again_and_the_rest_is_kept(path: Path):
    """A killed run could not be resumed, or would glue two lines together."""
    whole = path.read_bytes()
    for cut in range(whole.index(b"\n") + 1, len(whole)):
        path.write_bytes(whole[:cut])
        assert [a.key for a in read_answers(path)] == ["a"]
        with open_answer_log(path) as log:
            assert list(log.entries) == ["a"]
            log.append(answer("b"))
        assert path.read_bytes() == whole


def test_a_foreign_line_is_named(path: Path):
    """Damage in the middle would silently cost answers."""
    path.write_bytes(b'{"key": 1}\n' + path.read_bytes())
    with pytest.raises(UserError, match=r"answers\.jsonl:1: no Elicited"):
        read_answers(path)


def test_two_processes_can_not_write_the_same_answers(path: Path):
    """Every answer would be bought twice, and lines could interleave."""
    with open_answer_log(path), pytest.raises(UserError, match="another process"), open_answer_log(path):
        pass


def test_a_key_changes_with_the_prompt_and_with_the_subject():
    """Answers of one model would pass for another's."""
    keys = {
        answer_key([1, 2], {"weights": "x"}),
        answer_key([1, 3], {"weights": "x"}),
        answer_key([1, 2], {"weights": "y"}),
    }
    assert len(keys) == 3
    assert answer_key((1, 2), {"weights": "x"}) in keys
