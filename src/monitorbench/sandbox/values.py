"""Plain data between a candidate and its check: what can be said in JSON, and nothing that acts.

`encode` runs beside the candidate and `decode` beside the check, so the check only ever sees objects that
were built here from text: no class of the candidate, no object that claims to equal everything. What is no
plain data becomes a *reference*, a number that means something to the candidate's side alone.
"""

import builtins
import decimal
import fractions
import itertools
import json
import os
import struct
from collections import deque
from collections.abc import Callable
from typing import Any

MESSAGE_LIMIT = 16 * 2**20
"""Bytes of one message; a longer one is an error of who sends it."""
_ITEMS_LIMIT = 200_000
"""Items that are read of an iterator."""
_LENGTH = struct.Struct("=I")
_EMPTY: dict[Any, Any] = {}


class BadMessage(Exception):
    """The other side sent what is no message, or closed the pipe (`EOFError` is its cause)."""


class Reference:
    """Something that only the candidate's side can use; the check can hand it back, and equals it to none."""

    def __init__(self, number: int) -> None:
        self.number = number


def encode(value: Any, refer: Callable[[Any], int]) -> Any:
    """The value as JSON; `refer` numbers what is no plain data. Raises ValueError for endless iterators."""
    if value is None or value is True or value is False:
        return value
    if isinstance(value, Reference):
        return ["reference", value.number]
    for kind, plain in _SCALARS.items():
        if isinstance(value, kind):
            return plain(value)
    if isinstance(value, dict):
        return ["dict", [[encode(key, refer), encode(item, refer)] for key, item in dict.items(value)]]
    for collection, word in _COLLECTIONS.items():
        if isinstance(value, collection):
            return [word, [encode(item, refer) for item in value]]
    if isinstance(value, range):
        return ["range", [value.start, value.stop, value.step]]
    if hasattr(type(value), "__next__"):
        items = list(itertools.islice(value, _ITEMS_LIMIT + 1))
        if len(items) > _ITEMS_LIMIT:
            raise ValueError(f"an iterator of more than {_ITEMS_LIMIT} items")
        return ["iterator", [encode(item, refer) for item in items]]
    name = getattr(value, "__name__", None)
    if isinstance(name, str) and getattr(builtins, name, None) is value:
        return ["builtin", name]
    return ["reference", refer(value)]


def decode(given: Any, resolve: Callable[[int], Any], *, trusted: bool) -> Any:
    """The value of what `encode` made; `resolve` turns a reference's number back.

    Builtin functions are only taken from a `trusted` side. Raises BadMessage for anything else.
    """
    if given is None or isinstance(given, bool | int | float | str):
        return given
    if not (isinstance(given, list) and len(given) == 2 and isinstance(given[0], str)):
        raise BadMessage("no plain data")
    kind, content = given
    try:
        if kind in _BUILT_FROM_ITEMS:
            return _BUILT_FROM_ITEMS[kind]([decode(item, resolve, trusted=trusted) for item in content])
        match kind:
            case "dict":
                return {
                    decode(key, resolve, trusted=trusted): decode(item, resolve, trusted=trusted)
                    for key, item in content
                }
            case "range":
                return range(*content)
            case "complex":
                return complex(*content)
            case "bytes":
                return bytes.fromhex(content)
            case "bytearray":
                return bytearray.fromhex(content)
            case "decimal":
                return decimal.Decimal(content)
            case "fraction":
                return fractions.Fraction(*content)
            case "reference":
                return resolve(int(content))
            case "builtin" if trusted:
                return getattr(builtins, content)
    except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise BadMessage(f"no plain data: {kind}") from error
    raise BadMessage(f"no plain data: {kind[:40]!r}")


def send(descriptor: int, message: Any) -> None:
    """Write one message; ValueError where it is too long or no JSON."""
    data = json.dumps(message).encode()
    if len(data) > MESSAGE_LIMIT:
        raise ValueError(f"more than {MESSAGE_LIMIT} bytes of plain data")
    view = memoryview(_LENGTH.pack(len(data)) + data)
    while view:
        view = view[os.write(descriptor, view) :]


def receive(descriptor: int) -> Any:
    """Read one message; BadMessage where there is none, EOFError where the pipe is closed."""
    (size,) = _LENGTH.unpack(read_exactly(descriptor, _LENGTH.size))
    if size > MESSAGE_LIMIT:
        raise BadMessage(f"a message of {size} bytes")
    data = read_exactly(descriptor, size)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadMessage("no message") from error


def read_exactly(descriptor: int, size: int) -> bytes:
    """Read so many bytes; EOFError where the pipe is closed before."""
    parts = []
    while size:
        part = os.read(descriptor, min(size, 2**20))
        if not part:
            raise EOFError("the other side closed the pipe")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


_SCALARS: dict[type, Callable[[Any], Any]] = {
    int: int,
    float: float,
    str: str,
    complex: lambda value: ["complex", [value.real, value.imag]],
    bytes: lambda value: ["bytes", value.hex()],
    bytearray: lambda value: ["bytearray", value.hex()],
    decimal.Decimal: lambda value: ["decimal", str(value)],
    fractions.Fraction: lambda value: ["fraction", [value.numerator, value.denominator]],
}
_COLLECTIONS: dict[type[Any], str] = {
    list: "list",
    tuple: "tuple",
    set: "set",
    frozenset: "frozenset",
    deque: "deque",
    type(_EMPTY.keys()): "keys",
    type(_EMPTY.values()): "values",
    type(_EMPTY.items()): "items",
}
_BUILT_FROM_ITEMS: dict[str, Callable[[Any], Any]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "deque": deque,
    "iterator": iter,
    "keys": lambda items: dict.fromkeys(items).keys(),
    "values": lambda items: dict(enumerate(items)).values(),
    "items": lambda items: dict(items).items(),
}
