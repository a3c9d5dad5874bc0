"""Files that are made to cost much: each reader of other people's files refuses them in one line."""

import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from monitorbench import untrusted
from monitorbench.config.base import UserError
from monitorbench.config.imports import Import
from monitorbench.engines.stored.gguf import gguf_tokenizer
from monitorbench.interop.imports.readers.open import read_files
from monitorbench.sources.fetch import local

ROW = {"id": "a", "label": 1, "score": 0.5, "response": "x" * 1000}
LINE = json.dumps(ROW).encode() + b"\n"
CSV = b"id,label,score,response\n" + b"a,1,0.5,%s\n" % (b"x" * 1000) * 2000
LOG = b'{"version": 2, "eval": {"eval_id": "e"}, "samples": ['
DEEP = b"[" * 100_000 + b"]" * 100_000
Write = Callable[[Path], object]


def packed(content: bytes) -> Write:
    """Writes a file of this content, compressed as its ending says."""

    def write(file: Path) -> None:
        kind = {".gz": "gzip", ".zst": "zstd"}.get(file.suffix)
        with pa.output_stream(str(file), compression=kind) as stream:
            stream.write(content)

    return write


def parquet(**columns: pa.Array) -> Write:
    return lambda file: pq.write_table(pa.table(columns), file, store_schema=False)


def repeated(value: object, n: int) -> pa.Array:
    return pa.array([value]).take(pa.array(np.zeros(n, dtype=np.int64)))


def eval_log(file: Path) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", LOG + b"]}")
        archive.writestr("samples/a_epoch_1.json", b'{"id": "a", "x": "' + b"x" * 3_000_000 + b'"}')


TOO_MUCH = "unpacks to more than"
BOMBS: list[tuple[str, Write, str]] = [
    *((f"b.csv{end}", packed(CSV), TOO_MUCH) for end in (".gz", ".zst")),
    *((f"b.jsonl{end}", packed(LINE * 2000), TOO_MUCH) for end in (".gz", ".zst")),
    *((f"b.json{end}", packed(b"[" + LINE * 2000), TOO_MUCH) for end in (".gz", ".zst")),
    ("log.json.gz", packed(LOG + LINE * 2000), TOO_MUCH),
    ("log.eval", eval_log, TOO_MUCH),
    ("texts.parquet", parquet(score=repeated(0.5, 2000), response=repeated("x" * 1000, 2000)), TOO_MUCH),
    ("values.parquet", parquet(score=repeated([0.5] * 100, 2000)), TOO_MUCH),
    (
        "chats.parquet",
        parquet(
            score=repeated(0.5, 2000), response=repeated([{"role": "user", "content": "x" * 1000}], 2000)
        ),
        TOO_MUCH,
    ),
    ("rows.csv", packed(b"id,label,score\n" + b"a,1,0.5\n" * 20_001), "more than 20,000 rows"),
    ("rows.jsonl", packed(b"{}\n" * 20_001), "more than 20,000 rows"),
    ("rows.parquet", parquet(score=repeated(0.5, 20_001)), "more than 20,000 rows"),
    ("line.csv", packed(b"id,label,score\na,1,0.5\n" + b"x" * 400_000), "line 3: longer than"),
    ("line.jsonl", packed(LINE + b'{"id":"' + b"x" * 400_000), "line 2: longer than"),
    ("document.json", packed(b"[" + LINE * 2000), "one JSON document of more than"),
    ("deep.json", packed(DEEP), "nested too deeply"),
    ("deep.jsonl", packed(LINE + b'{"x":' + DEEP + b"}"), "line 2: nested too deeply"),
    ("deep-object.json", packed(b'{"a":' * 100_000 + b"1" + b"}" * 100_000), "nested too deeply"),
    ("deep-log.json", packed(LOG + DEEP + b"]}"), "recursion depth"),
    ("broken.csv.gz", lambda file: file.write_bytes(gzip.compress(CSV)[:-9]), "broken .gz file"),
    ("broken.jsonl.zst", lambda file: file.write_bytes(b"no zstd"), "broken .zst file"),
    ("broken.parquet", packed(b"PAR1no ParquetPAR1"), "no Parquet file"),
]


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rule over files of kilobytes."""
    monkeypatch.setattr(untrusted, "_FREE_BYTES", 1_000_000)
    monkeypatch.setattr(untrusted, "MAX_LINE_BYTES", 300_000)
    monkeypatch.setattr(untrusted, "MAX_DOCUMENT_BYTES", 1_000_000)
    monkeypatch.setattr(untrusted, "MAX_ROWS", 20_000)
    monkeypatch.setattr("monitorbench.sources.files.inspect_archive.MAX_BYTES", 1_000_000)


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize(("name", "write", "said"), BOMBS, ids=[name for name, _, _ in BOMBS])
def test_a_file_that_would_cost_much_is_one_line(name: str, write: Write, said: str, tmp_path: Path):
    """If it failed: two megabytes would take seven gigabytes, and the machine with them."""
    write(tmp_path / name)
    with pytest.raises(UserError) as raised:
        read_files([tmp_path / name], Import())
    assert said in str(raised.value)
    assert name in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("name", ["b.jsonl.gz", "texts.parquet"])
def test_sources_keep_the_same_rule(name: str, tmp_path: Path):
    """If it failed: a dataset's file would be let in where a file of scores is not."""
    next(write for bomb, write, _ in BOMBS if bomb == name)(tmp_path / name)
    files = local("own", tmp_path / name, (name,), "skip")
    with pytest.raises(UserError, match=TOO_MUCH):
        list(files.parquet("", dict) if name.endswith("parquet") else files.jsonl("", dict))


def test_a_gguf_file_is_read_to_its_end_and_no_further(tmp_path: Path):
    """If it failed: sixty bytes with an array of 2^40 values would never end."""
    text = (7).to_bytes(8, "little") + b"a.array"
    array = (9).to_bytes(4, "little") + (4).to_bytes(4, "little") + (2**40).to_bytes(8, "little")
    header = b"GGUF" + (3).to_bytes(4, "little") + (0).to_bytes(8, "little") + (1).to_bytes(8, "little")
    (tmp_path / "m.gguf").write_bytes(header + text + array + b"\0" * 16)
    with pytest.raises(UserError, match="breaks off"):
        gguf_tokenizer(tmp_path / "m.gguf", "monitor.gguf")


def test_what_is_packed_well_is_read(tmp_path: Path):
    """If it failed: an ordinary file of repeated words would be refused."""
    (tmp_path / "s.csv.gz").write_bytes(gzip.compress(CSV))
    assert len(gzip.compress(CSV)) * 200 < len(CSV)
    assert read_files([tmp_path / "s.csv.gz"], Import()).table.num_rows == 2000
