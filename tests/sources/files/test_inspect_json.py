"""What a user would lose here: a log of many gigabytes in one JSON file, read in the memory of one sample."""

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.sources.files import inspect_json
from monitorbench.sources.files.inspect_json import members

_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
_heads = st.dictionaries(st.sampled_from(["version", "eval", "é"]) | st.text(max_size=3), _values, max_size=4)
_logs = st.builds(
    lambda head, samples: {**head, "samples": samples, "reductions": 1}, _heads, st.lists(_values, max_size=4)
)


def whole(text: str) -> Any:
    """The log put together from its members."""
    found: dict[str, Any] = {}
    for key, value, number in members(io.StringIO(text), 1000):
        if number is None:
            found[key] = value
        else:
            assert number == len(found[key])
            found[key].append(value)
    return found


@pytest.fixture(autouse=True, scope="module")
def _small_chunks() -> Iterator[None]:
    """So few characters at a time that every value goes on behind what was read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inspect_json, "_CHUNK", 3)
        yield


@given(_logs, st.sampled_from([None, 1]))
def test_the_members_are_what_the_json_says(log: Any, indent: int | None) -> None:
    """Python's own reader is the oracle, whatever is in the log and wherever a chunk ends."""
    assert whole(json.dumps(log, indent=indent, ensure_ascii=False)) == log


@given(_logs, st.data())
def test_a_log_that_breaks_off_is_an_error(log: Any, data: Any) -> None:
    """Fewer samples than were written must not pass for all."""
    text = json.dumps(log)
    with pytest.raises(ValueError, match=r"\S"):
        whole(text[: data.draw(st.integers(1, len(text) - 1))])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"a": 1,}', "a comma before"),
        ('{"samples": [1,]}', "a comma before"),
        ('{"a": 1 "b": 2}', "expected ','"),
        ('{"a" 1}', "expected ':'"),
        ("{1: 2}", "expected a key"),
        ('{"a": 1} 2', "behind the end"),
        ('{"samples": [], "samples": [1]}', "key 'samples' twice"),
        ('{"a": {"b": 1, "b": 2}}', "key 'b' twice"),
        (f'{{"samples": ["{"x" * 3000}"]}}', "a value of more than 1000 characters"),
    ],
)
def test_what_is_no_log_says_what_it_is(text: str, complaint: str) -> None:
    """A line that only says no JSON sends a person looking through gigabytes."""
    with pytest.raises(ValueError, match=complaint):
        whole(text)


def test_a_file_that_holds_no_object_has_no_members() -> None:
    """Its reader says that there is no header."""
    assert whole("[1, 2]") == whole("") == {}


def test_no_more_is_held_than_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a log larger than the memory could not be read."""
    held = []
    more = inspect_json._Text._more

    def counted(self: Any) -> bool:
        found = more(self)
        held.append(len(self._text))
        return found

    monkeypatch.setattr(inspect_json._Text, "_more", counted)
    text = json.dumps({"eval": {}, "samples": [{"n": n, "text": "x" * 100} for n in range(500)]})
    assert len(whole(text)["samples"]) == 500
    assert max(held) < 300 < len(text)
