"""What travels between a candidate and its check."""

import json
import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.sandbox import values

HASHABLE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=()))
    | st.binary()
    | st.complex_numbers(allow_nan=False)
    | st.fractions()
    | st.decimals(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=8,
)
PLAIN = st.recursive(
    HASHABLE,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(HASHABLE, inner, max_size=3)
        | st.sets(HASHABLE, max_size=3)
    ),
    max_leaves=12,
)


def refused(*_):
    raise AssertionError


def kinds(value):
    """A value with every type spelled out: 1, 1.0 and True are equal, but not the same answer."""
    if isinstance(value, dict):
        return [(kinds(key), kinds(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [kinds(item) for item in value]
    if isinstance(value, set | frozenset):
        return type(value), value
    return type(value), value


@given(PLAIN)
def test_plain_data_arrives_as_it_was(value):
    """If it failed: right answers would be labelled wrong."""
    sent = json.loads(json.dumps(values.encode(value, refused)))
    assert kinds(values.decode(sent, refused, trusted=False)) == kinds(value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
KINDS = st.sampled_from(
    "list tuple set frozenset deque iterator keys values items dict range complex bytes bytearray decimal "
    "fraction reference builtin __import__".split()
)


@given(JSON | st.tuples(KINDS, JSON).map(list))
def test_whatever_a_candidate_says_is_plain_data_or_refused(said):
    """If it failed: an answer could act, or end the check's process by an error of ours."""
    try:
        found = values.decode(said, float, trusted=False)
    except values.BadMessage:
        return
    assert type(found).__module__ in ("builtins", "collections", "decimal", "fractions")
    assert not callable(found)


def test_what_is_no_plain_data_is_a_number():
    """If it failed: an object of the candidate would meet the check."""
    kept = []

    def refer(value):
        kept.append(value)
        return len(kept) - 1

    thing = object()
    sent = values.encode([thing, thing], refer)
    assert sent == ["list", [["reference", 0], ["reference", 1]]]
    assert values.decode(sent, kept.__getitem__, trusted=True) == [thing, thing]


@pytest.mark.parametrize("value", [float("inf"), -0.0, float("nan"), Decimal("NaN"), Fraction(1, 3), 10**400])
def test_numbers_keep_what_they_are(value):
    """If it failed: `-0.0` or `nan` would arrive as another answer."""
    found = values.decode(json.loads(json.dumps(values.encode(value, refused))), refused, trusted=False)
    assert repr(found) == repr(value)
    assert not isinstance(value, float) or math.copysign(1, found) == math.copysign(1, value)
