"""Files of other people hold one value for each key, or are refused: what a user would lose is a label.

Python's own reader is the oracle for everything that is allowed.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitorbench import strict_json

plain = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
values = st.recursive(plain, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@given(value=values, escaped=st.booleans())
def test_what_json_allows_is_read_as_python_reads_it(value: object, escaped: bool):
    """A reader that is strict about other things would cost a team its data."""
    text = json.dumps(value, ensure_ascii=escaped)
    assert strict_json.loads(text) == json.loads(text) == strict_json.loads(text.encode())
    assert strict_json.loads(b"\xef\xbb\xbf" + text.encode(), of_python=True) == value


@given(
    value=values, keys=st.lists(st.text(), min_size=1, unique=True), depth=st.integers(0, 5), data=st.data()
)
def test_a_key_twice_is_refused_at_any_depth(value: object, keys: list[str], depth: int, data: st.DataObject):
    """The last of two labels is as good a guess as the first."""
    twice = data.draw(st.sampled_from(keys))
    members = data.draw(st.permutations([*keys, twice]))
    text = "{" + ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key in members) + "}"
    for _ in range(depth):
        text = data.draw(st.sampled_from((f"[1, {text}]", f'{{"a": 1, "b": {text}}}')))
    for of_python in (False, True):
        with pytest.raises(strict_json.Refused) as error:
            strict_json.loads(text, of_python=of_python)
        assert str(error.value) == f"key {twice[:80]!r} twice in one object"


def test_an_escaped_key_is_the_same_key():
    """`"l\\u0061bel"` is `"label"` to every reader."""
    with pytest.raises(strict_json.Refused, match="key 'label' twice"):
        strict_json.loads(r'{"label": "benign", "l\u0061bel": "misbehavior"}')


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("NaN", "NaN is no finite number"),
        ("[-Infinity]", "-Infinity is no finite number"),
        ('{"a": Infinity}', "Infinity is no finite number"),
        ('{"a": -1e999}', "-1e999 is no finite number"),
        (r'"\ud800"', "half a surrogate pair at character 0"),
        (r'{"a": {"b": ["xy\uDfff"]}}', "field 'a': half a surrogate pair at character 2"),
        (r'{"\udc00": 1}', "half a surrogate pair at character 0"),
    ],
)
def test_what_is_only_pythons_is_refused(text: str, complaint: str):
    """No other program reads such a file the same way; no file can hold such a text."""
    with pytest.raises(strict_json.Refused) as error:
        strict_json.loads(text)
    assert str(error.value) == complaint
    strict_json.loads(text, of_python=True)


def test_whole_pairs_and_a_huge_object_are_fine():
    """Emoji escaped as JSON escapes them; a million keys must not be compared with each other."""
    assert strict_json.loads(r'"\ud83d\ude00 \\ud800"') == "😀 \\ud800"
    many = ", ".join(f'"{n}": 1' for n in range(300_000))
    with pytest.raises(strict_json.Refused, match="key '299999' twice"):
        strict_json.loads(f'{{{many}, "299999": 2}}')


@pytest.mark.parametrize("content", [b"\xff\xfe{\x00}\x00", b'"\xed\xa0\x80"', b"", b"{", b"[" * 100_000])
def test_no_json_is_no_traceback(content: bytes):
    """What callers catch."""
    with pytest.raises((ValueError, RecursionError)):
        strict_json.loads(content)


FLAT = st.dictionaries(st.text(max_size=4), st.recursive(st.text() | st.integers(), st.lists), max_size=5)


@given(FLAT, st.text(max_size=4), st.sampled_from([None, 1]), st.booleans())
def test_members_before_a_field_are_those_that_a_whole_parse_has(
    values: dict[str, object], field: str, indent: int | None, cut: bool
):
    """Else evidence would be cut in the wrong place, and the label asked for inside a quote."""
    text = "  " + json.dumps({**values, field: "the label"}, indent=indent, ensure_ascii=cut)
    before = dict(list(values.items())[: list(values).index(field)] if field in values else values)
    found = strict_json.members_before(text, field)
    assert found is not None
    assert found.values == before
    assert found.field is not None
    assert not found.closed
    if field in values:
        return
    assert text[found.field :].startswith('"the label"')
    if not before:
        return
    assert json.loads(text[: found.end] + "}") == before
    alone = strict_json.members_before(json.dumps(before, indent=indent), field)
    assert alone is not None
    assert (alone.values, alone.field, alone.closed) == (before, None, True)


BROKEN = ("", "[1]", "{}", '{"a": }', '{"a" 1', '{"a": 1 "b": 2}', '{"a": "', '{"a": 1, "a": 2}', "{1: 2}")


@pytest.mark.parametrize("text", [*BROKEN, '{"a": ' * 9000])
def test_broken_members_are_none(text: str):
    """Else what a monitor meant would be guessed, or a nesting without end be a traceback."""
    assert strict_json.members_before(text, "label") is None


def test_an_object_that_breaks_off_behind_a_member_says_so():
    """Else evidence that was cut off would pass for evidence that ended."""
    whole, broken = (strict_json.members_before(text, "label") for text in ('{"a": "x\ny"}', '{"a": "x\ny" '))
    assert whole is not None
    assert broken is not None
    assert (whole.values, whole.closed) == ({"a": "x\ny"}, True)
    assert (broken.values, broken.closed) == ({"a": "x\ny"}, False)
