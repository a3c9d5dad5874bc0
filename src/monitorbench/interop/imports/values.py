"""A column's values as numbers, flags, names or texts; what is none is refused by line and field."""

import hashlib
from binascii import hexlify
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from monitorbench.config.base import UserError
from monitorbench.interop.imports.readers.open import ImportedFiles, lowered
from monitorbench.metrics.bootstrap import FloatArray, IntArray

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_SHARE = r"^(?P<part>\d+\.?\d*|\.\d+)\s*(?:%|/\s*(?P<whole>\d+\.?\d*))$"
_DECIMAL_COMMA = r"^([+-]?0*),(\d+\s*%?)$", r"^([+-]?\d+),(\d{1,2}\s*%?)$", r"^([+-]?\d+),(\d{4,}\s*%?)$"
"""Numbers whose comma can't divide thousands."""
_A_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
_AT_ONCE = 65_536
_WITHIN = 1e-9
"""Distance that a rescaled score may lie outside [0, 1] by rounding."""


def texts(read: ImportedFiles, name: str, *, keeps_words: bool = False) -> pa.Array:
    """Strings [rows], null where there is nothing; numbers are as they are written.

    They are names, without blanks around them, and a word for a missing value is nothing too; unless
    `keeps_words`: "None" may be what a model said.
    """
    column = _whole(read, name)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        kind = column.type
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_duration(kind):
            refuse(read, 0, name, f"holds {str(column.type)[:60]}", "text or a number in each row")
        column = pc.cast(column, pa.string())
    column = pc.cast(column, pa.string())
    if not keeps_words:
        column = pc.utf8_trim_whitespace(column)
    is_nothing = pc.equal(column, "")
    if not keeps_words:
        is_missing = pc.is_in(lowered(column), value_set=pa.array(read.missing, pa.string()))
        is_nothing = pc.or_(is_nothing, is_missing)
    return pc.if_else(is_nothing, pa.scalar(None, pa.string()), column)


def numbers(
    read: ImportedFiles, name: str, *, least: float | None = None, whole: float | None = None
) -> FloatArray:
    """[rows], NaN where there is none. Refused: text that is no number, infinity, what is below `least`.

    With a `whole`, `70 %` and `7/10` are that share of it. A decimal comma is one where it can't be another.
    A duration is its seconds.
    """
    column = _whole(read, name)
    if pa.types.is_duration(column.type):
        column = pc.divide(
            pc.cast(pc.cast(column, pa.int64()), pa.float64(), safe=False), _A_SECOND[column.type.unit]
        )
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        filled = pc.fill_null(pc.cast(column, pa.float64(), safe=False), np.nan)
        values: FloatArray = filled.to_numpy(zero_copy_only=False)
    else:
        plain = pc.utf8_trim_whitespace(texts(read, name))
        parsed = _parsed(plain)
        values = _spelled(read, name, plain, whole) if parsed is None else parsed
    _refuse_first(read, pa.array(np.isinf(values)), name, "is no finite number", "a number")
    if least is not None:
        _refuse_first(read, pa.array(values < least), name, "is too low", f"{least:g} or more")
    return np.array(values)


def _parsed(plain: pa.Array) -> FloatArray | None:
    """The texts as numbers, NaN for null, where each is a finite number as computers write them."""
    try:
        parsed = pc.cast(plain, pa.float64())
    except pa.ArrowInvalid:
        return None
    values: FloatArray = parsed.to_numpy(zero_copy_only=False)
    return values if np.isfinite(values).sum() == len(values) - parsed.null_count else None


def _spelled(read: ImportedFiles, name: str, plain: pa.Array, whole: float | None) -> FloatArray:
    """The texts as numbers, as people write them; what is none is refused."""
    for pattern in _DECIMAL_COMMA:
        plain = pc.replace_substring_regex(plain, pattern, r"\1.\2")
    is_number = pc.match_substring_regex(plain, _NUMBER)
    if whole is not None and not pc.all(is_number).as_py():
        plain = _shares(plain, whole)
        is_number = pc.match_substring_regex(plain, _NUMBER)
    levels = "" if whole is None else " or import.levels (for a score)"
    expected = f"a number, or its word in import.missing_values (for none){levels}"
    _refuse_first(read, pc.invert(is_number), name, "is no number", expected)
    plain = pc.fill_null(pc.replace_substring_regex(plain, r"^\+", ""), "nan")
    values: FloatArray = pc.cast(plain, pa.float64()).to_numpy()
    return values


def _shares(plain: pa.Array, whole: float) -> pa.Array:
    """The texts with a number in the place of each percentage and fraction."""
    parts = pc.extract_regex(plain, _SHARE)
    converted = []
    for text, share in zip(plain.to_pylist(), parts.to_pylist(), strict=True):
        of = 0.0 if share is None else float(share["whole"] or 100)
        converted.append(text if not of else repr(float(share["part"]) * whole / of))
    return pa.array(converted, pa.string())


def whole_numbers(read: ImportedFiles, name: str) -> IntArray:
    """[rows]; a value that is absent or no whole number is refused."""
    values = numbers(read, name)
    wrong = np.isnan(values) | (values != np.floor(values))
    _refuse_first(read, pa.array(wrong), name, "is no whole number", "one in each row")
    return values.astype(np.int64)


def flags(
    read: ImportedFiles,
    name: str,
    of_misbehavior: Sequence[str],
    of_benign: Sequence[str],
    others: str = "import.misbehavior_values and import.benign_values set others",
) -> FloatArray:
    """1 misbehavior, 0 benign, NaN nothing [rows]; any other value is refused with what `others` says."""
    numbers_of = {**dict.fromkeys(of_misbehavior, 1.0), **dict.fromkeys(of_benign, 0.0)}
    listed = ", ".join(map(repr, lowered(pa.array(numbers_of, pa.string())).to_pylist()))
    return _of_words(read, name, numbers_of, "is no label", f"{listed}; {others}")


def _of_words(
    read: ImportedFiles, name: str, numbers_of: Mapping[str, float | None], what: str, expected: str
) -> FloatArray:
    """The number of each word [rows], NaN where there is none; any other word is refused."""
    plain = lowered(pc.utf8_trim_whitespace(texts(read, name, keeps_words=True)))
    positions = pc.index_in(plain, value_set=lowered(pa.array(numbers_of, pa.string())))
    is_missing = pc.is_in(plain, value_set=pa.array([*read.missing, None]))
    _refuse_first(read, pc.invert(pc.or_(pc.is_valid(positions), is_missing)), name, what, expected)
    codes = np.array([*numbers_of.values(), None], dtype=np.float64)
    of_words: FloatArray = codes[pc.fill_null(positions, len(numbers_of)).to_numpy()]
    return of_words


def scores(
    read: ImportedFiles, name: str, *, scale: tuple[float, float], levels: Mapping[str, float | None] | None
) -> FloatArray:
    """[rows] in [0, 1], NaN where there is none: rescaled from `scale`, or the number of each level."""
    if levels is not None:
        expected = f"one of {', '.join(levels)} (import.levels), or its word in import.missing_values"
        return _of_words(read, name, levels, "is no level", expected)
    if pa.types.is_duration(read.table.column(name).type):
        refuse(read, 0, name, "is a duration", "a score")
    low, high = scale
    values = (numbers(read, name, whole=max(scale)) - low) / (high - low)
    outside = (values < -_WITHIN) | (values > 1 + _WITHIN)
    ends = f"[{low:g},{high:g}]"
    hint = "" if scale != (0, 1) else "; another scale: import.scale=[LOWEST,HIGHEST], such as [0,100]"
    _refuse_first(
        read, pa.array(outside), name, "is outside the scale", f"a number in {ends} (import.scale){hint}"
    )
    return np.clip(values, 0.0, 1.0)


def hashes(values: pa.Array) -> pa.Array:
    """The first 16 hex digits of each text's SHA-256."""
    packed = pc.cast(values, pa.binary())
    parts = (packed.slice(start, _AT_ONCE).to_pylist() for start in range(0, len(packed) or 1, _AT_ONCE))
    digests = (b"".join(hashlib.sha256(text).digest()[:8] for text in part) for part in parts)
    return pa.concat_arrays([hex_digits(part, 16) for part in digests])


def hex_digits(content: bytes, width: int) -> pa.Array:
    """Texts of `width` hex digits each, the bytes of one behind those of another."""
    digits = hexlify(content)
    ends = np.arange(0, len(digits) + 1, width, dtype=np.int32)
    return pa.StringArray.from_buffers(len(ends) - 1, pa.py_buffer(ends), pa.py_buffer(digits))


def refuse(read: ImportedFiles, row: int, name: str, what: str, expected: str) -> None:
    """Raise `UserError` for a value: its line, field and text, and what was expected."""
    value = read.table.column(name)[row].as_py() if name in read.table.column_names else ""
    text = "" if value is None else str(value)
    text = f"{text[:40]}…" if len(text) > 40 else text
    reason = f" {what}" if what.startswith("is ") else f": {what}"
    raise UserError(f"{read.where(row)}: {name}={text!r}{reason}; expected {expected}")


def _refuse_first(read: ImportedFiles, is_wrong: pa.Array, name: str, what: str, expected: str) -> None:
    wrong = np.flatnonzero(pc.fill_null(is_wrong, False).to_numpy(zero_copy_only=False))
    if wrong.size:
        refuse(read, int(wrong[0]), name, what, expected)


def _whole(read: ImportedFiles, name: str) -> pa.Array:
    column = read.table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
