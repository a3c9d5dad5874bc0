"""JSON as its standard has it, for files that people and other programs write.

Python's own reader keeps the last of two equal keys, takes `NaN` and `Infinity` for numbers and lets
half a surrogate pair through: a label that is there twice is neither of the two.
"""

import json
import math
import re
from collections import Counter
from typing import Any, NamedTuple, NoReturn

_LENIENT = json.JSONDecoder(strict=False)
_ENCODE = json.JSONEncoder(ensure_ascii=False).encode
_BLANK = re.compile(r"[ \t\r\n]*")
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")


class Refused(ValueError):
    """JSON that Python's reader would accept and this one refuses; the text says why."""


def loads(text: str | bytes, *, of_python: bool = False) -> Any:
    """The value of a JSON text; `of_python`: of one that Python may have written, with its NaN and halves.

    Raises `ValueError` for what is no JSON in UTF-8; `Refused` for an object with the same key twice, at any
    depth, for what is nested too deeply, and, unless `of_python`, for `NaN`, `Infinity`, a number too large
    to be finite, and half a surrogate pair, which no file can hold.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8-sig")
    try:
        if of_python:
            return OF_PYTHON.decode(text)
        value = _STRICT.decode(text)
        if _HALF_PAIR.search(text):
            _without_halves(value)
    except RecursionError as error:
        raise Refused("nested too deeply") from error
    return value


class Members(NamedTuple):
    """Members that precede a field in an object."""

    values: dict[str, Any]
    end: int
    """Index at which the last of `values` ends."""
    field: int | None
    """Index at which the field's own value begins; None where the object has none, or not yet."""
    closed: bool
    """Whether the object ends, without the field."""


def members_before(text: str, field: str, start: int = 0) -> Members | None:
    """The members of the object at `text[start]` that precede `field`; the text may break off behind it.

    A line break in a string is taken as it is. None where there is no object, where a member is broken or a
    key is there twice.
    """
    values: dict[str, Any] = {}
    at = end = _behind_blank(text, start) + 1
    if text[at - 1 : at] != "{":
        return None
    try:
        while True:
            key, at = _LENIENT.raw_decode(text, _behind_blank(text, at))
            at = _behind_blank(text, at)
            if not isinstance(key, str) or key in values or text[at : at + 1] != ":":
                return None
            at = _behind_blank(text, at + 1)
            if key == field:
                return Members(values, end, at, closed=False)
            values[key], end = _LENIENT.raw_decode(text, at)
            at = _behind_blank(text, end)
            if text[at : at + 1] != ",":
                broken = at < len(text) and text[at] != "}"
                return None if broken else Members(values, end, None, closed=at < len(text))
            at += 1
    except (ValueError, RecursionError):
        return None


def _behind_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        times = Counter(key for key, _ in pairs)
        raise Refused(f"key {max(times, key=times.__getitem__)[:80]!r} twice in one object")
    return found


OF_PYTHON = json.JSONDecoder(object_pairs_hook=_object)
"""Decoder of `loads(of_python=True)`, for a value that other text follows (`raw_decode`)."""


def _no_number(name: str) -> NoReturn:
    raise Refused(f"{name} is no finite number")


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        _no_number(number[:40])
    return value


def _without_halves(value: Any, field: str = "") -> None:
    """Raise `Refused` for the first text with half a surrogate pair; `field` is the outermost key."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise Refused(f"{field}half a surrogate pair at character {error.start}") from error
    elif isinstance(value, dict):
        for key, inner in value.items():
            _without_halves(key, field)
            _without_halves(inner, field or f"field {key!r}: ")
    elif isinstance(value, list):
        for inner in value:
            _without_halves(inner, field)


_STRICT = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_number, parse_float=_finite)


def parsed(value: object) -> object:
    """The value that a text writes as JSON; any other value, or other text, as it is."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


def as_json(value: object) -> str:
    """Return a value's JSON, on one line."""
    return _ENCODE(value)
