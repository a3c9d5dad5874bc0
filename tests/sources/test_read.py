"""Raw files with something wrong: one line that says where, or a counted, logged skip; never fewer rows."""

import gzip
import hashlib
import io
import json
import logging
import tarfile
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.config.base import UserError
from monitorbench.config.sources import Source, SourceFile
from monitorbench.sources import read
from monitorbench.sources.fetch import find
from monitorbench.sources.read import BadRow, OnBadRow, SourceFiles, filled, text

LABELS = ("safe", "unsafe")
LIMIT = 4096
NAME = "upstream"


class Row(NamedTuple):
    id: str
    text: str


def parse(row: Mapping[str, Any]) -> Row:
    if text(row, "label") not in LABELS:
        raise BadRow(f"unknown label: {row['label']!r}")
    return Row(filled(row, "id"), filled(row, "text"))


def line(id_: str, **change: Any) -> bytes:
    return json.dumps({"id": id_, "text": f"text {id_}", "label": "safe", **change}).encode()


def mirrored(
    folder: Path, file: str, content: bytes, on_bad_row: OnBadRow = "error", sha256: str = ""
) -> SourceFiles:
    """One raw file in a mirror, found as a build finds it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file).write_bytes(content)
    source = Source(
        origin="none",
        repo="https://example.org",
        revision="0" * 40,
        licence="MIT",
        files=(SourceFile(path="", mirror=file, sha256=sha256),),
    )
    return find(NAME, source, folder, folder / "cache", on_bad_row)


def ids(files: SourceFiles) -> list[str]:
    return [row.id for row in files.jsonl("", parse)]


def assert_one_line(message: str, *parts: str) -> None:
    assert "\n" not in message
    for part in (NAME, *parts):
        assert part in message, message


BAD_LINES = {
    "missing field": (b'{"id": "b", "label": "safe"}', "missing field 'text'"),
    "a field that is no text": (line("b", text=7), "'text' is not text"),
    "an empty field": (line("b", text=" "), "'text' is empty"),
    "unknown label": (line("b", label="maybe"), "unknown label: 'maybe'"),
    "another encoding": (line("b", text="X").replace(b"X", "é".encode("latin-1")), "utf-8"),
    "half a UTF-8 character": (line("b", text="X").replace(b"X", "é".encode()[:1]), "utf-8"),
    "half a surrogate pair": (line("b", text="X").replace(b"X", b"\\ud83d"), "surrogate"),
    "a torn line": (line("b")[:-9], "not valid"),
    "no object": (b"[1, 2]", "not an object"),
    "duplicate id": (line("a"), "duplicate id: a"),
    "a very long line": (line("b", text="x" * LIMIT), f"longer than {LIMIT} bytes"),
    "hostile nesting": (b"[" * (LIMIT - 10), ""),
}


@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("kind", BAD_LINES)
def test_a_bad_row_is_one_line_or_a_counted_logged_skip(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: str,
    zipped: bool,
):
    """Without the place nobody finds the row; without the count a smaller corpus passes for a whole one."""
    monkeypatch.setattr(read, "MAX_LINE_BYTES", LIMIT)
    bad, what = BAD_LINES[kind]
    file = "rows.jsonl.gz" if zipped else "rows.jsonl"
    content = b"\n".join([line("a"), b"", bad, line("c"), b""])
    content = gzip.compress(content) if zipped else content
    with pytest.raises(UserError) as caught:
        ids(mirrored(tmp_path, file, content))
    assert_one_line(str(caught.value), file, "line 3", what, "on_bad_row=skip")
    files = mirrored(tmp_path, file, content, "skip")
    with caplog.at_level(logging.WARNING):
        assert ids(files) == ["a", "c"]
    assert files.bad_rows.total() == 1
    (record,) = caplog.records
    assert_one_line(record.getMessage(), file, "line 3", what)


@given(st.lists(st.sampled_from([None, *BAD_LINES]), max_size=12))
def test_what_is_skipped_and_what_is_kept_add_up(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[str | None]
):
    """A good row lost with a bad neighbour would be missing from every later number."""
    folder = tmp_path_factory.getbasetemp() / "adds_up"
    kinds = [kind for kind in kinds if kind not in ("half a surrogate pair", "hostile nesting")]
    lines = [line("a")]
    lines += [BAD_LINES[kind][0] if kind else line(f"good {n}") for n, kind in enumerate(kinds)]
    good = ["a", *(f"good {n}" for n, kind in enumerate(kinds) if not kind)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read, "MAX_LINE_BYTES", LIMIT)
        files = mirrored(folder, "rows.jsonl", b"\n".join(lines), "skip")
        assert ids(files) == good
        assert files.bad_rows.total() == len(lines) - len(good)
        files = mirrored(folder, "rows.jsonl", b"\n".join(lines))
        if first := next((n for n, kind in enumerate(kinds) if kind), None):
            with pytest.raises(UserError, match=rf"rows\.jsonl line {first + 2}: "):
                ids(files)


def test_a_line_of_fifty_megabytes_is_never_held_whole(tmp_path: Path):
    """One hostile or broken line would take the memory of the whole build."""
    piece = b"x" * (1 << 20)
    with gzip.open(tmp_path / "rows.jsonl.gz", "wb", compresslevel=1) as stream:
        stream.write(line("a") + b'\n{"id": "b", "text": "')
        for _ in range(50):
            stream.write(piece)
        stream.write(b'"}\n' + line("c"))
    files = mirrored(tmp_path, "rows.jsonl.gz", (tmp_path / "rows.jsonl.gz").read_bytes(), "skip")
    tracemalloc.start()
    try:
        assert ids(files) == ["a", "c"]
        assert tracemalloc.get_traced_memory()[1] < 3 * read.MAX_LINE_BYTES
    finally:
        tracemalloc.stop()
    assert files.bad_rows.total() == 1


def test_the_log_is_not_flooded(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """Ten thousand lines of warnings hide the one that matters; the count still has all."""
    files = mirrored(tmp_path, "rows.jsonl", b"\n".join([b"{}"] * 500), "skip")
    with caplog.at_level(logging.WARNING):
        assert ids(files) == []
    assert files.bad_rows.total() == 500
    assert 1 <= len(caplog.records) <= 10


@pytest.mark.parametrize("on_bad_row", ["error", "skip"])
def test_a_wrong_checksum_is_refused(tmp_path: Path, on_bad_row: OnBadRow):
    """Another file than the one named would make another corpus under the same name."""
    wrong = "1" * 64
    with pytest.raises(UserError) as caught:
        mirrored(tmp_path, "rows.jsonl.gz", gzip.compress(line("a")), on_bad_row, wrong)
    right = hashlib.sha256(line("a")).hexdigest()
    assert_one_line(str(caught.value), "rows.jsonl.gz", right[:12], wrong[:12], "fetch the file again")
    assert ids(mirrored(tmp_path, "rows.jsonl.gz", gzip.compress(line("a")), on_bad_row, right)) == ["a"]


@pytest.mark.parametrize("on_bad_row", ["error", "skip"])
@pytest.mark.parametrize("has_checksum", [False, True])
def test_a_gzip_that_breaks_off_anywhere_is_an_error(
    tmp_path: Path, has_checksum: bool, on_bad_row: OnBadRow
):
    """Half a download would be a silently smaller corpus."""
    content = b"\n".join(line(str(n)) for n in range(4))
    sha256 = hashlib.sha256(content).hexdigest() if has_checksum else ""
    whole = gzip.compress(content, mtime=0)
    for length in range(len(whole)):
        with pytest.raises(UserError) as caught:
            ids(mirrored(tmp_path, "rows.jsonl.gz", whole[:length], on_bad_row, sha256))
        assert_one_line(str(caught.value), "rows.jsonl.gz")


def test_a_flipped_byte_in_a_gzip_never_changes_a_row(tmp_path: Path):
    """Damage that is read as data becomes a label."""
    content = b"\n".join(line(str(n)) for n in range(4))
    whole = gzip.compress(content, mtime=0)
    n_refused = 0
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 0xFF
        files = mirrored(tmp_path, "rows.jsonl.gz", bytes(damaged), "skip")
        try:
            assert ids(files) == ["0", "1", "2", "3"], position
        except UserError as error:
            n_refused += 1
            assert_one_line(str(error), "rows.jsonl.gz")
    assert n_refused > len(whole) - 12, "only the header's flags, time and system may pass"


def _archive(mode: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for number in range(3):
            info = tarfile.TarInfo(f"member{number}")
            info.size = 700
            archive.addfile(info, io.BytesIO(hashlib.shake_256(str(number).encode()).digest(700)))
    return buffer.getvalue()


ARCHIVES = [("rows.tar.gz", "w:gz"), ("rows.tar.xz", "w:xz")]


@pytest.mark.parametrize(("file", "mode"), ARCHIVES)
def test_an_archive_that_breaks_off_is_an_error(tmp_path: Path, file: str, mode: str):
    """An archive that ends early would be a silently smaller corpus."""
    whole = _archive(mode)
    everything = list(mirrored(tmp_path, file, whole).tar(""))
    assert [name for name, _ in everything] == ["member0", "member1", "member2"]
    for length in range(0, len(whole), 23):
        try:
            # Cut in the checksum at the very end, it may still be whole.
            assert list(mirrored(tmp_path, file, whole[:length]).tar("")) == everything
        except UserError as error:
            assert_one_line(str(error), file)


@pytest.mark.parametrize(("file", "mode"), ARCHIVES)
def test_a_damaged_archive_is_an_error_without_a_checksum_too(tmp_path: Path, file: str, mode: str):
    """gzip's own checksum is behind the archive's end: unread, damage passes for a response."""
    whole = _archive(mode)
    everything = list(mirrored(tmp_path, file, whole).tar(""))
    for position in range(20, len(whole), 41):
        damaged = whole[:position] + bytes([whole[position] ^ 0xFF]) + whole[position + 1 :]
        try:
            assert list(mirrored(tmp_path, file, damaged).tar("")) == everything
        except UserError as error:
            assert_one_line(str(error), file)


def test_a_json_array_and_a_table_name_their_rows(tmp_path: Path):
    """An error in the ten-thousandth element of one long line has no line number to go by."""
    rows = [json.loads(line("a")), {"id": "b"}, json.loads(line("c"))]
    files = mirrored(tmp_path, "rows.json", json.dumps(rows).encode())
    with pytest.raises(UserError) as caught:
        list(files.json("", parse))
    assert_one_line(str(caught.value), "rows.json", "element 1", "missing field 'label'")
    files = mirrored(tmp_path, "rows.json", json.dumps(rows).encode(), "skip")
    assert [row.id for row in files.json("", parse)] == ["a", "c"]
    for content in (b"", b"[", b'{"id": 1}', b"\xff\xfe"):
        with pytest.raises(UserError) as caught:
            list(mirrored(tmp_path, "rows.json", content, "skip").json("", parse))
        assert_one_line(str(caught.value), "rows.json")
    with pytest.raises(UserError) as caught:
        list(mirrored(tmp_path, "rows.parquet", b"PAR1 and nothing", "skip").parquet("", parse))
    assert_one_line(str(caught.value), "rows.parquet")


CSV = b"\xef\xbb\xbfid,text,label\na,text a,safe\nb,BAD,safe\nc,text c,LABEL\n"


def test_a_spreadsheets_mark_and_encoding(tmp_path: Path):
    """Excel's byte-order mark would hide the first column; its Latin-1 would become wrong letters."""
    content = CSV.replace(b"LABEL", b"unsafe")
    files = mirrored(tmp_path, "rows.csv", content)
    assert [row.id for row in files.csv("", parse)] == ["a", "b", "c"]
    content = content.replace(b"BAD", b"caf\xe9")
    with pytest.raises(UserError) as caught:
        list(mirrored(tmp_path, "rows.csv", content).csv("", parse))
    assert_one_line(str(caught.value), "rows.csv line 3", "UTF-8")
    files = mirrored(tmp_path, "rows.csv", content, "skip")
    assert [row.id for row in files.csv("", parse)] == ["a", "c"]
    assert files.bad_rows.total() == 1


def test_a_skipped_csv_line_leaves_the_numbers_of_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """The log would send a person to the line above the bad one."""
    content = CSV.replace(b"BAD", b"caf\xe9").replace(b"LABEL", b"maybe")
    with caplog.at_level(logging.WARNING):
        list(mirrored(tmp_path, "rows.csv", content, "skip").csv("", parse))
    places = [record.getMessage() for record in caplog.records]
    assert len(places) == 2
    assert "line 3" in places[0]
    assert "line 4" in places[1]


@pytest.mark.parametrize("on_bad_row", ["error", "skip"])
def test_a_long_csv_field_is_a_row_like_any_other(tmp_path: Path, on_bad_row: OnBadRow):
    """Python's csv refuses a field over 128 KiB; a long transcript would stop the build even under skip."""
    content = CSV.replace(b"LABEL", b"safe").replace(b"BAD", b"x" * 200_000)
    files = mirrored(tmp_path, "rows.csv", content, on_bad_row)
    assert [row.id for row in files.csv("", parse)] == ["a", "b", "c"]


def test_an_id_is_unique_across_the_files_of_a_source(source_files: Callable[..., SourceFiles]):
    """The same row in two files of a source would count double."""
    rows = {"one.jsonl": [json.loads(line("a"))], "two.jsonl": [json.loads(line("a"))]}
    with pytest.raises(UserError, match=r"two\.jsonl.* line 1: duplicate id: a"):
        ids(source_files(NAME, also=rows))
