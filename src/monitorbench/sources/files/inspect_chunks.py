"""A sample that an Inspect log keeps in chunks: a shell, and beside it numbered sequences, put together.

Layout: `inspect_ai/log/_recorders/chunked/format.py` (inspect-ai 0.3.285). Promises: of a sample only the
chunks are read that hold its conversation, events never; an index that no chunk holds is a `BadRow`.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from monitorbench.sources.read import BadRow

SHELL = re.compile(r"(samples/.+_epoch_\d+)/sample\.json")

Starts = Mapping[str, Sequence[int]]
"""First index of every chunk, sorted, by sequence (such as `samples/a_epoch_1/messages`)."""

_CHUNK = re.compile(r"(samples/.+_epoch_\d+/(?:messages|attachments))/(\d+)\.json")
_ATTACHMENT = re.compile(r"attachment://(\d+)")


def chunk_starts(names: Iterable[str]) -> Starts:
    """Find where the chunks of each sequence begin, from the names of a log's entries."""
    starts: dict[str, list[int]] = {}
    for name in names:
        if match := _CHUNK.fullmatch(name):
            starts.setdefault(match[1], []).append(int(match[2]))
    return {sequence: sorted(numbers) for sequence, numbers in starts.items()}


def whole_row(sample: str, starts: Starts, read: Callable[[str], Any], has_metadata: bool) -> Any:
    """The sample below `sample` (`samples/ID_epoch_N`) as logs of one entry a sample have it, without events.

    `read` gives the parsed JSON of an entry, and raises `BadRow` for one that is too large.
    """
    shell = read(f"{sample}/sample.json")
    if not isinstance(shell, Mapping):
        return shell
    messages = _items(f"{sample}/messages", starts, read, _ranges(shell.get("message_refs") or []))
    numbers = sorted({int(number) for number in _ATTACHMENT.findall(json.dumps(messages))})
    sequence = f"{sample}/attachments"
    available = [number for number in numbers if starts.get(sequence)]
    contents = _items(sequence, starts, read, [(number, number + 1) for number in available])
    attachments = dict(zip(map(str, available), contents, strict=True))
    metadata = {"metadata": read(f"{sample}/metadata.json")} if has_metadata else {}
    return {**shell, "messages": messages, "attachments": attachments, **metadata}


def _ranges(refs: object) -> list[tuple[int, int]]:
    """`message_refs`: half-open ranges of indices."""
    ranges = []
    for ref in refs if isinstance(refs, list) else [refs]:
        if not (isinstance(ref, list) and len(ref) == 2 and all(type(end) is int for end in ref)):
            raise BadRow(f"field 'message_refs': {str(ref)[:40]!r} is no range of messages")
        ranges.append((ref[0], ref[1]))
    return ranges


def _items(
    sequence: str, starts: Starts, read: Callable[[str], Any], ranges: Iterable[tuple[int, int]]
) -> list[Any]:
    """The items of a sequence in these ranges, one chunk in memory at a time."""
    begins = starts.get(sequence, ())
    first, chunk = -1, []
    items: list[Any] = []
    for start, end in ranges:
        while start < end:
            index = bisect_right(begins, start) - 1
            if index < 0:
                raise BadRow(f"{sequence} has no item {start}: the log is not whole")
            if begins[index] != first:
                first, chunk = begins[index], read(f"{sequence}/{begins[index]}.json")
            some = chunk[start - first : end - first] if isinstance(chunk, list) else []
            if not some:
                raise BadRow(f"{sequence} has no item {start}: the log is not whole")
            items += some
            start += len(some)
    return items
