"""The two containers of Inspect AI logs, opened: `.eval` (a zip of JSON files) and `.json`.

Owns zip and compression. Promises: one sample in memory at a time, never more than `MAX_BYTES` of one entry
however small it is compressed, and one line for what can't be read. Entries compressed with zstd, as Inspect
writes them since 2026, go through pyarrow (zipfile can from Python 3.14).

A sample in chunks, a shell and beside it numbered sequences (`inspect_ai/log/_recorders/chunked/format.py`,
inspect-ai 0.3.285), is put together: only the chunks are read that hold its conversation, events never; an
index that no chunk holds is a bad row.
"""

import io
import json
import logging
import re
import struct
import zipfile
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from monitorbench import strict_json
from monitorbench.config.base import UserError
from monitorbench.sources.files.inspect_json import LogMember, members
from monitorbench.sources.read import BadRow, SourceFiles
from monitorbench.untrusted import in_time, members_within, opened

_log = logging.getLogger(__name__)
MAX_BYTES = 512 * 1024 * 1024
"""Limit of one sample's JSON, or of one of its chunks; parsing takes several times as much memory."""

CONVERT = "convert it with `inspect log convert LOG --to json --output-dir DIR` (package inspect-ai)"

_SAMPLE = re.compile(r"samples/.+_epoch_\d+\.json")
NO_LOGS = ("logs.json", "listing.json", "eval-set.json")
"""JSON files that Inspect writes beside its logs."""

_HEADER = {"eval", "status"}
_ZSTANDARD = 93
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")


class Logged(NamedTuple):
    """One sample as it was logged, and what the log's header says of its run."""

    where: str
    """For messages: the log and the entry."""
    log: str
    path: Path
    """The log's file."""
    run: str
    task: str
    model: str
    status: str
    """Outcome of the run: `success` where it is finished."""
    id: str | int
    epoch: int
    row: Mapping[str, Any]

    @property
    def unusable(self) -> str:
        """Why the log says that this sample tells nothing: an error, or somebody's mark; "" otherwise."""
        error, mark = self.row.get("error"), self.row.get("invalidation")
        if error:
            message = error.get("message") if isinstance(error, Mapping) else error
            return f"it ended in an error ({' '.join(str(message).split())[:120]})"
        if mark:
            reason = mark.get("reason") if isinstance(mark, Mapping) else mark
            return f"it is marked as invalid ({' '.join(str(reason or 'no reason').split())[:120]})"
        return ""

    @property
    def scores(self) -> Mapping[str, Mapping[str, Any]]:
        """Score of each scorer: a value, and texts and metadata beside it; `BadRow` for anything else."""
        scores = self.row.get("scores") or {}
        if not isinstance(scores, Mapping):
            raise BadRow("field 'scores': expected an object with a score for each scorer")
        for name, score in scores.items():
            if not isinstance(score, Mapping):
                raise BadRow(f"field 'scores.{name}': expected an object with a value")
        return scores


class _Run(NamedTuple):
    id: str
    task: str
    model: str
    status: str


def logged_samples(files: SourceFiles) -> Iterator[Logged]:
    """The samples of all logs; `UserError` for a log that can't be read, `files.bad` for a sample."""
    for file in files.matching():
        try:
            opened(file.path).close()
            if zipfile.is_zipfile(file.path):
                yield from in_time(file.path, _from_archive(files, file.path))
            elif file.path.name not in NO_LOGS:
                yield from in_time(file.path, _from_json(files, file.path))
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, struct.error) as error:
            raise UserError(f"{files.name}: {file.path}: broken log ({error}); fetch it again") from error


def _from_archive(files: SourceFiles, path: Path) -> Iterator[Logged]:
    with zipfile.ZipFile(path) as archive:
        # A sample that was logged again is there twice under one name, of which the last counts.
        names = dict.fromkeys(members_within(path, ((name, 0) for name in archive.namelist())))
        header = next((n for n in ("header.json", "_journal/start.json") if n in names), None)
        if header is None:
            raise UserError(f"{files.name}: {path}: no Inspect log: it has no header.json")
        content = partial(_content, files, archive, path)
        told = content(header)
        if header == "_journal/start.json" and isinstance(told, Mapping):
            told = {"status": "started", **told}
        run, starts = _run(files, path, told), _chunk_starts(names)
        for name in names:
            shell = _SHELL.fullmatch(name)
            if shell is None and not _SAMPLE.fullmatch(name):
                continue
            where = f"{path.name} {name}"
            try:
                if shell is not None:
                    row = _whole_row(shell[1], starts, content, f"{shell[1]}/metadata.json" in names)
                else:
                    row = content(name)
            except BadRow as error:
                files.bad(where, str(error))
                continue
            yield from _logged(files, path, where, run, row)


def _from_json(files: SourceFiles, path: Path) -> Iterator[Logged]:
    header: dict[str, Any] = {}
    run = None
    try:
        for key, value, number in _members(path):
            if number is None:
                header |= {key: value} if key in (*_HEADER, "samples") else {}
                continue
            if run is None:
                if not header.keys() >= _HEADER:  # it stands behind the samples
                    header |= {key: value for key, value, _ in _members(path) if key in _HEADER}
                run = _run(files, path, header)
            yield from _logged(files, path, f"{path.name} sample {number}", run, value)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{files.name}: {path}: no JSON ({error}); fetch the log again") from error
    if run is None:
        _run(files, path, header)
    if not isinstance(header.get("samples"), list):
        raise UserError(f"{files.name}: {path}: no Inspect log with samples")


def has_header(path: Path) -> bool:
    """Whether a JSON file is an Inspect log by a header that stands behind its samples."""
    try:
        return any(key == "eval" for key, _, _ in _members(path))
    except (ValueError, RecursionError):
        return False


def _members(path: Path) -> Iterator[LogMember]:
    with io.TextIOWrapper(opened(path), encoding="utf-8-sig") as stream:
        yield from members(stream, MAX_BYTES)


def _run(files: SourceFiles, path: Path, log: object) -> _Run:
    header: Mapping[str, Any] = log if isinstance(log, Mapping) else {}
    spec = header.get("eval")
    if not isinstance(spec, Mapping):
        raise UserError(f"{files.name}: {path}: no Inspect log: its header has no 'eval'")
    status, dataset = header.get("status", "success"), spec.get("dataset")
    files.run_statuses[path.name] = str(status)
    if status != "success":
        planned = dataset.get("samples") if isinstance(dataset, Mapping) else None
        of = f" of {planned} samples" if isinstance(planned, int) else ""
        words = "%s: %s: its run did not finish (status %r): what it has%s is read"
        _log.warning(words, files.name, path.name, status, of)
    task, model = str(spec.get("task") or ""), str(spec.get("model") or "")
    # Only logs before 2025 lack an eval_id; there a run, a task and a model are one evaluation.
    id_ = spec.get("eval_id") or f"{spec.get('run_id')}-{task}-{model}"
    return _Run(str(id_), task.rsplit("/", 1)[-1], model, str(status))


def _logged(files: SourceFiles, path: Path, where: str, run: _Run, row: object) -> Iterator[Logged]:
    if not isinstance(row, Mapping) or not isinstance(row.get("id"), str | int):
        files.bad(where, "not a sample with an id")
        return
    epoch = row.get("epoch", 1)
    if not isinstance(epoch, int):
        files.bad(where, f"field 'epoch': {epoch!r} is no number")
        return
    yield Logged(where, path.name, path, *run, row["id"], epoch, row)


def _content(files: SourceFiles, archive: zipfile.ZipFile, path: Path, name: str) -> Any:
    """The value of an entry's JSON; `BadRow` where it is too large."""
    packed = _entry(files, archive, name)
    try:
        return strict_json.loads(packed, of_python=True)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{files.name}: {path} {name}: no JSON ({error}); fetch the log again") from error


def _entry(files: SourceFiles, archive: zipfile.ZipFile, name: str) -> bytes:
    info = archive.getinfo(name)
    try:
        if info.flag_bits & 1:
            raise UserError(f"{files.name}: {archive.filename}: encrypted; decrypt it first")
        if info.compress_type == _ZSTANDARD:
            content = _zstandard(archive, info)
        else:
            with archive.open(info) as stream:
                content = stream.read(MAX_BYTES + 1)
    except NotImplementedError as error:
        raise UserError(
            f"{files.name}: {archive.filename}: compressed by method {info.compress_type}; {CONVERT}"
        ) from error
    if len(content) > MAX_BYTES:
        raise BadRow(f"unpacks to more than {MAX_BYTES >> 20} MiB")
    if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
        raise zipfile.BadZipFile(f"wrong size or checksum of {name}")
    return content


def _zstandard(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """The first `MAX_BYTES` + 1 bytes of an entry; zipfile gives its place but not its content."""
    if not pa.Codec.is_available("zstd"):
        raise NotImplementedError
    with open(str(archive.filename), "rb") as stream:
        stream.seek(info.header_offset)
        header = _LOCAL_HEADER.unpack(stream.read(_LOCAL_HEADER.size))
        # The last two fields are the lengths of the name and the extra field that follow.
        stream.seek(header[-2] + header[-1], 1)
        packed = stream.read(info.compress_size)
    with pa.input_stream(pa.py_buffer(packed), compression="zstd") as unpacked:
        content: bytes = unpacked.read(MAX_BYTES + 1)
    return content


# --- samples in chunks ---------------------------------------------------------------------------------

_SHELL = re.compile(r"(samples/.+_epoch_\d+)/sample\.json")

_Starts = Mapping[str, Sequence[int]]
"""First index of every chunk, sorted, by sequence (such as `samples/a_epoch_1/messages`)."""

_MOST_ITEMS = 1_000_000
"""Most messages of a sample, which may name one chunk again and again."""
_CHUNK = re.compile(r"(samples/.+_epoch_\d+/(?:messages|attachments))/(\d+)\.json")
_ATTACHMENT = re.compile(r"attachment://(\d+)")


def _chunk_starts(names: Iterable[str]) -> _Starts:
    """Find where the chunks of each sequence begin, from the names of a log's entries."""
    starts: dict[str, list[int]] = {}
    for name in names:
        if match := _CHUNK.fullmatch(name):
            starts.setdefault(match[1], []).append(int(match[2]))
    return {sequence: sorted(numbers) for sequence, numbers in starts.items()}


def _whole_row(sample: str, starts: _Starts, read: Callable[[str], Any], has_metadata: bool) -> Any:
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
    sequence: str, starts: _Starts, read: Callable[[str], Any], ranges: Iterable[tuple[int, int]]
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
            if len(items) > _MOST_ITEMS:
                raise BadRow(f"{sequence}: more than {_MOST_ITEMS:,} items")
    return items
