"""Which of a monitor's quotes stand in the judged response, and where.

A quote is looked for as it is, then with case and white space folded, then with a stated share of its
characters wrong. One that is found nowhere is kept and says so: it is to be counted.
"""

import re
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitorbench.config.seen import View
from monitorbench.prompts.lookalikes import INVISIBLE, OPENING
from monitorbench.prompts.transcript import ALL, Block, blocks
from monitorbench.records import GroundedQuote, Grounding, Message, Span

MAX_CELLS = 40_000_000
"""How much one response's fuzzy search may compare, in characters of the response times characters of
the quotes (well under a second); a quote beyond that is looked for exactly and folded only."""

MAX_SOUGHT = 256
"""Different quotes of one answer that are looked for; any beyond count as found nowhere."""

_ROW_CELLS = 1000
"""Cost of a row of the search before its first cell, in cells."""

_MAX_MISALIGNED = 1000
"""Places at which a folded quote would begin or end inside a character (the first `s` of a folded ß)."""

# What a transcript puts before text that imitates its tags; a monitor copies it with the rest.
_MARK = re.compile(rf"\\(?=[\s{INVISIBLE}]*[{re.escape(OPENING)}])")
_NO_CHARACTER = 0xFFFFFFFF


class _Folded(NamedTuple):
    """Folded text; its character i came from characters [starts[i], ends[i]) of the original."""

    text: str
    starts: list[int]
    ends: list[int]


class _Field(NamedTuple):
    message: int
    block: Block

    def place(self, start: int, end: int) -> Span:
        return Span(message=self.message, field=self.block.field, call=self.block.call, start=start, end=end)


def ground(
    quotes: Sequence[str], response: Sequence[Message], fuzzy_ratio: float, view: View = ALL
) -> tuple[GroundedQuote, ...]:
    """Look each quote up in the response's own text, as it was before a prompt showed it; `view` as there.

    `fuzzy_ratio` in (0, 1] is the least ratio that counts: 1 − d / n, with n the folded quote's length
    and d its least Levenshtein distance to any part of a field's folded text (Sellers 1980). A quote of
    white space is found nowhere. Of equally good places the first is named.
    """
    fields = [
        _Field(index, block) for index, message in enumerate(response) for block in blocks(message, view)
    ]
    folded: list[_Folded] = []
    search: _FuzzySearch | None = None
    grounded: dict[str, GroundedQuote] = {}
    for quote in islice(dict.fromkeys(quotes), MAX_SOUGHT):
        how, ratio, place = Grounding.EXACT, 1.0, _exact(quote, fields)
        if place is None and fields and quote.strip():
            folded = folded or [fold(field.block.text) for field in fields]
            sought = fold(quote).text.strip()
            how, place = Grounding.FOLDED, _in_folded(sought, fields, folded)
            if place is None:
                search = search or _FuzzySearch(fields, folded)
                how, (ratio, place) = Grounding.FUZZY, search.find(sought, fuzzy_ratio)
        if place is None:
            how, ratio = Grounding.NONE, 0.0
        grounded[quote] = GroundedQuote(quote=quote, how=how, ratio=ratio, place=place)
    return tuple(grounded.get(quote) or _nowhere(quote) for quote in quotes)


def _nowhere(quote: str) -> GroundedQuote:
    return GroundedQuote(quote=quote, how=Grounding.NONE, ratio=0.0, place=None)


def fold(text: str) -> _Folded:
    """Case-folded, every run of white space one space, without the transcript's backslash marks."""
    marks = {match.start() for match in _MARK.finditer(text)}
    folded, starts, ends = [], [], []
    for index, character in enumerate(text):
        if index in marks:
            continue
        if not character.isspace():
            for letter in character.casefold():
                folded.append(letter)
                starts.append(index)
                ends.append(index + 1)
        elif not folded or folded[-1] != " ":
            folded.append(" ")
            starts.append(index)
            ends.append(index + 1)
    return _Folded("".join(folded), starts, ends)


def _exact(quote: str, fields: Sequence[_Field]) -> Span | None:
    if not quote.strip():
        return None
    for field in fields:
        start = field.block.text.find(quote)
        if start >= 0:
            return field.place(start, start + len(quote))
    return None


def _in_folded(quote: str, fields: Sequence[_Field], folded: Sequence[_Folded]) -> Span | None:
    tries = _MAX_MISALIGNED
    for field, (text, starts, ends) in zip(fields, folded, strict=True):
        start = text.find(quote)
        while start >= 0 and tries:
            end = start + len(quote)
            inside = start and starts[start - 1] == starts[start]
            if not inside and (end == len(text) or starts[end - 1] != starts[end]):
                return field.place(starts[start], ends[end - 1])
            tries -= 1
            start = text.find(quote, start + 1)
    return None


class _FuzzySearch:
    """All fields' folded text as one row of characters, each field behind a column of its own."""

    def __init__(self, fields: Sequence[_Field], folded: Sequence[_Folded]) -> None:
        self._fields, self._folded = fields, folded
        lengths = [len(text) + 1 for text, _, _ in folded]
        self._begins = np.concatenate([[0], np.cumsum(lengths[:-1], dtype=np.int64)]).astype(np.int64)
        self._codes = np.full(sum(lengths), _NO_CHARACTER, np.uint32)
        for begin, (text, _, _) in zip(self._begins, folded, strict=True):
            self._codes[begin + 1 : begin + 1 + len(text)] = _codes(text)
        self._cells_left = MAX_CELLS

    def find(self, quote: str, fuzzy_ratio: float) -> tuple[float, Span | None]:
        """The best ratio of at least `fuzzy_ratio` and its place."""
        n = len(quote)
        most_wrong = int((1 - fuzzy_ratio) * n + 1e-9)
        cells = n * (len(self._codes) + 2 * n + _ROW_CELLS)
        if not most_wrong or cells > self._cells_left:
            return 0.0, None
        distances = self._distances(_codes(quote), most_wrong)
        if distances is None:
            return 0.0, None
        last = int(distances.argmin())
        wrong = int(distances[last])
        number = int(np.searchsorted(self._begins, last, side="right")) - 1
        begin = int(self._begins[number]) + 1
        _, starts, ends = self._folded[number]
        self._cells_left -= 2 * n * n
        window = self._codes[max(begin, last + 1 - n - wrong) : last + 1]
        first = last + 1 - _length(_codes(quote), window)
        place = self._fields[number].place(starts[first - begin], ends[last - begin])
        return 1 - wrong / n, place

    def _distances(self, quote: NDArray[np.uint32], most_wrong: int) -> NDArray[np.int32] | None:
        """Least distance of the quote to a text that ends in each column; None if all are larger.

        One row a character of the quote. The insertions within a row, D[j] = min over k <= j of
        D[k] + j - k, are one running minimum; a jump of more than the quote's length in `positions`
        keeps them, and the first column's own value keeps the rest, from crossing into the next field.
        """
        codes, begins = self._codes, self._begins
        positions = np.arange(len(codes), dtype=np.int32)
        jumps = np.zeros(len(codes), np.int32)
        jumps[begins] = len(quote) + 1
        positions += np.cumsum(jumps, dtype=np.int32)
        row = np.zeros(len(codes), np.int32)
        for number, character in enumerate(quote, 1):
            self._cells_left -= len(codes) + _ROW_CELLS
            new = row + np.int32(1)
            np.minimum(new[1:], row[:-1] + (codes[1:] != character), out=new[1:])
            new[begins] = number
            new -= positions
            np.minimum.accumulate(new, out=new)
            new += positions
            if new.min() > most_wrong:
                return None
            row = new
        row[begins] = len(quote)
        return row


def _length(quote: NDArray[np.uint32], window: NDArray[np.uint32]) -> int:
    """The length of the end of `window` that is nearest to the quote; the shortest of several, at least 1."""
    positions = np.arange(len(window) + 1)
    text = window[::-1]
    row = positions
    for number, character in enumerate(quote[::-1], 1):
        new = row + 1
        np.minimum(new[1:], row[:-1] + (text != character), out=new[1:])
        new[0] = number
        row = np.minimum.accumulate(new - positions) + positions
    return 1 + int(row[1:].argmin())


def _codes(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
