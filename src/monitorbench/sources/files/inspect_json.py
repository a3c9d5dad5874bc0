"""An Inspect log in one `.json` file, member by member: never more in memory than one sample and the header.

Promises: a key that is there twice, and whatever is no JSON, is a `ValueError`; a sample takes at most as
many characters as the caller allows.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, TextIO

from monitorbench import strict_json

_CHUNK = 1 << 20
_DELIMITERS = tuple(" \t\r\n,:]}")
"""Characters that may follow a whole value."""


class LogMember(NamedTuple):
    """A member of the log's object, or one of its samples."""

    key: str
    value: Any
    number: int | None
    """Index of a sample among the samples; None for every other member."""


def members(stream: TextIO, longest: int) -> Iterator[LogMember]:
    """The members of the object in a file, and each element of a list `samples` as one of its own.

    Nothing for a file whose JSON is no object. Raises `ValueError` (`strict_json.Refused` for a key twice)
    where it is no JSON, and for a value of more than `longest` characters; `RecursionError` where one is
    nested too deeply.
    """
    text = _Text(stream, longest)
    if text.sign() != "{":
        return
    seen: set[str] = set()
    text.take("{")
    while text.sign() != "}":
        key = text.value()
        if not isinstance(key, str):
            raise ValueError("expected a key")
        if key in seen:
            raise strict_json.Refused(f"key {key[:80]!r} twice in one object")
        seen.add(key)
        text.take(":")
        if key == "samples" and text.sign() == "[":
            yield LogMember(key, [], None)
            yield from _elements(text, key)
        else:
            yield LogMember(key, text.value(), None)
        text.take_comma("}")
    text.take("}")
    if trailing := text.sign():
        raise ValueError(f"{trailing!r} behind the end")


def _elements(text: "_Text", key: str) -> Iterator[LogMember]:
    number = 0
    text.take("[")
    while text.sign() != "]":
        yield LogMember(key, text.value(), number)
        number += 1
        text.take_comma("]")
    text.take("]")


class _Text:
    """A file's text from where it was read to, as much of it as one value takes."""

    def __init__(self, stream: TextIO, longest: int) -> None:
        self._stream, self._longest = stream, longest
        self._text, self._at = "", 0

    def sign(self) -> str:
        """The next character that is no blank, which stays; "" at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in " \t\r\n":
                    return self._text[self._at]
                self._at += 1
            if not self._more():
                return ""

    def take(self, expected: str) -> None:
        """Pass over one sign."""
        if (sign := self.sign()) != expected:
            raise ValueError(f"expected {expected!r}, found {sign!r}" if sign else "it breaks off")
        self._at += 1

    def take_comma(self, end: str) -> None:
        """Pass over a comma that another member follows; `end` stays."""
        if self.sign() != end:
            self.take(",")
            if self.sign() == end:
                raise ValueError(f"a comma before {end!r}")

    def value(self) -> Any:
        """The next value, passed over."""
        self.sign()
        while True:
            try:
                value, end = strict_json.OF_PYTHON.raw_decode(self._text, self._at)
            except strict_json.Refused:
                raise
            except ValueError:
                if not self._more():  # else it may go on behind what was read
                    raise
                continue
            if self._text[end : end + 1] not in _DELIMITERS and self._more():  # as a number may
                continue
            self._at = end
            return value

    def _more(self) -> bool:
        """Read as much again as is waiting, so that a long value is not parsed once a chunk."""
        waiting = self._text[self._at :]
        if len(waiting) > self._longest:
            raise ValueError(f"a value of more than {self._longest} characters")
        read = self._stream.read(max(_CHUNK, len(waiting)))
        self._text, self._at = waiting + read, 0
        return bool(read)
