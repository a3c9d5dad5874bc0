"""Files that are made to cost much: each reader of other people's files refuses them in one line."""

import gzip
import io
import json
import os
import re
import signal
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file
from sealed import seal

from monitorbench import untrusted
from monitorbench.annotation.files import read_candidates
from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.imports import Import
from monitorbench.config.load import read_frozen
from monitorbench.corpus.columns import read_batches, read_columns
from monitorbench.corpus.store import read_split, write_split
from monitorbench.engines.stored.adapter import adapter_config, stated_base
from monitorbench.engines.stored.gguf import gguf_tokenizer
from monitorbench.engines.stored.head import read_directions, read_head
from monitorbench.gate.frozen import read_gate, read_looks
from monitorbench.gate.traffic import read_traffic
from monitorbench.interop.imports.readers.open import read_files
from monitorbench.intervention import outcomes as pilot
from monitorbench.intervention.recorded.marked_runs import read_step_scores
from monitorbench.intervention.statistics.decision_file import read_decision
from monitorbench.judging.recorded import read_recorded
from monitorbench.records import Message, Role, Sample, Split
from monitorbench.report.view import Runs
from monitorbench.runs.directory import write_manifest
from monitorbench.runs.files import read_objects
from monitorbench.runs.keyed_log import VERDICTS, read_verdicts
from monitorbench.runs.listing import listed
from monitorbench.runs.run_folders import runs_in
from monitorbench.scoring.control import outcomes as control
from monitorbench.sources.archive import regular_files
from monitorbench.sources.fetch import local
from monitorbench.sources.files import team_jsonl
from monitorbench.untrusted_parquet import parquet_table

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


SHARD_READERS: dict[str, Callable[[Path], object]] = {
    "records": lambda folder: read_split(folder, Split.TEST),
    "columns": lambda folder: read_columns(folder, Split.TEST),
    "batches": lambda folder: list(read_batches(folder, Split.TEST)),
    "steps, cases, baselines": lambda folder: parquet_table(next(folder.glob("test/*.parquet"))),
}


@pytest.mark.parametrize("reader", SHARD_READERS)
def test_samples_that_somebody_shared_keep_the_same_rule(
    reader: str, tmp_path: Path, make_sample: Callable[..., Sample], request: pytest.FixtureRequest
):
    """If it failed: a shared dataset of kilobytes would take all memory where a file of scores may not."""
    thoughts = Message(role=Role.ASSISTANT, content="a", thinking="x" * 20_000)
    write_split(tmp_path, Split.TEST, [make_sample(response=[thoughts], pair_id=f"p{i}") for i in range(200)])
    seal(tmp_path)
    SHARD_READERS[reader](tmp_path)
    request.getfixturevalue("small_limits")
    with pytest.raises(UserError, match=TOO_MUCH) as raised:
        SHARD_READERS[reader](tmp_path)
    assert "\n" not in str(raised.value)


def test_what_is_written_is_never_too_much_to_read(
    tmp_path: Path, make_sample: Callable[..., Sample], monkeypatch: pytest.MonkeyPatch
):
    """If it failed: a dataset of long equal texts could be built, and never be read again."""
    monkeypatch.setattr("monitorbench.corpus.store._SHARD_BYTES", 500_000)
    monkeypatch.setattr(untrusted, "_FREE_BYTES", 1_000_000)
    samples = [make_sample(response="x" * 20_000, pair_id=f"p{i:03}") for i in range(200)]
    write_split(tmp_path, Split.TEST, samples)
    seal(tmp_path)
    assert len(list(tmp_path.glob("test/*.parquet"))) == 9
    assert read_split(tmp_path, Split.TEST) == samples


def gguf_array(kind: int, n: int) -> bytes:
    """How an array of so many values of a kind begins: 4 numbers, 8 texts, 9 arrays."""
    return kind.to_bytes(4, "little") + n.to_bytes(8, "little")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (gguf_array(4, 2**40), "breaks off"),
        (gguf_array(8, 2**40) + bytes(160), "breaks off"),
        (gguf_array(9, 2**40) + gguf_array(4, 0) * 20, "breaks off"),
        (gguf_array(9, 1) * 3000 + gguf_array(4, 1), "recursion depth"),
    ],
)
def test_a_gguf_file_is_read_to_its_end_and_no_further(value: bytes, said: str, tmp_path: Path):
    """If it failed: sixty bytes with an array of 2^40 values would never end."""
    field = (7).to_bytes(8, "little") + b"a.array" + (9).to_bytes(4, "little")
    header = b"GGUF" + (3).to_bytes(4, "little") + (0).to_bytes(8, "little") + (1).to_bytes(8, "little")
    (tmp_path / "m.gguf").write_bytes(header + field + value + bytes(16))
    with pytest.raises(UserError, match=said):
        gguf_tokenizer(tmp_path / "m.gguf", "monitor.gguf")


SCORED = b'{"sample_id": "a", "label": "benign", "score": 0.5, "task": "t", "step": 1, "success": true}\n'
READERS: dict[str, Callable[[Path], object]] = {
    "import": lambda file: read_files([file], Import()),
    "recorded verdicts": read_recorded,
    "traffic of a gate": read_traffic,
    "outcomes of control": control.read_outcomes,
    "outcomes of a pilot": pilot.read_outcomes,
    "step scores": read_step_scores,
    "candidates of annotation": lambda file: read_candidates(file, Split.TEST),
    "a team's samples": lambda file: [*team_jsonl.load(local("own", file, team_jsonl.SUFFIXES, "error"))],
}
FILES: dict[str, tuple[str, Write, str]] = {
    "bomb.gz": ("b.jsonl.gz", packed(SCORED * 30_000), TOO_MUCH),
    "depth": ("b.jsonl", packed(b'{"x":' + DEEP + b"}"), "nested too deeply"),
    "digits": ("b.jsonl", packed(b'{"score": ' + b"9" * 5000 + b"}"), "4300 digits"),
    "line": ("b.jsonl", packed(b'{"id":"' + b"x" * 9_000_000), "longer than"),
    "surrogate": ("b.jsonl", packed(b'{"sample_id": "\\ud800"}\n'), "half a surrogate pair"),
    "utf-16": ("b.jsonl", packed(SCORED.decode().encode("utf-16")), "UTF-16"),
    "pipe": ("b.jsonl", lambda file: os.mkfifo(file), "no regular file|does not exist|no such file"),
}


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("fault", FILES)
@pytest.mark.parametrize("reader", READERS)
def test_every_reader_keeps_the_one_rule(reader: str, fault: str, tmp_path: Path):
    """If it failed: what `import` refuses would be let in by another door."""
    name, write, said = FILES[fault]
    if reader == "outcomes of a pilot" and name.endswith(".gz"):
        said = "ends in .jsonl or .csv"
    write(tmp_path / name)
    with pytest.raises(UserError, match=said) as raised:
        READERS[reader](tmp_path / name)
    assert name in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 600


@pytest.mark.parametrize("reader", READERS)
def test_no_reader_reads_for_ever(reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """If it failed: a file that is slow to read would hold a night's run."""
    monkeypatch.setattr(untrusted, "MIN_SECONDS", 0.0)
    monkeypatch.setattr(untrusted, "_BYTES_A_SECOND", float("inf"))
    (tmp_path / "slow.jsonl").write_bytes(SCORED)
    with pytest.raises(UserError, match=r"slow\.jsonl: takes more than 0 s to read"):
        READERS[reader](tmp_path / "slow.jsonl")


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
def test_an_archive_unpacks_to_so_much_and_no_more(kind: str, tmp_path: Path):
    """If it failed: a source's archive of kilobytes would fill the memory, member by member."""
    file = tmp_path / f"a.{kind}"
    content = bytes(600_000)
    if kind == "zip":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for number in range(3):
                archive.writestr(f"{number}", content)
    else:
        with tarfile.open(file, "w:gz" if kind == "tar.gz" else "w") as archive:
            for number in range(3):
                info = tarfile.TarInfo(f"r/{number}")
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    if kind == "tar":  # as large as what is in it
        assert len([*regular_files(file)]) == 3
        return
    with pytest.raises(UserError, match=TOO_MUCH):
        list(regular_files(file))


def test_links_out_of_a_folder_are_not_followed(tmp_path: Path):
    """If it failed: a folder that somebody sent could name any file of this machine."""
    (tmp_path / "secret.jsonl").write_bytes(SCORED)
    folder = tmp_path / "sent"
    folder.mkdir()
    (folder / "a.jsonl").symlink_to(tmp_path / "secret.jsonl")
    for read in (lambda: read_files([folder], Import()), lambda: local("own", folder, (".jsonl",), "error")):
        with pytest.raises(UserError, match=r"a\.jsonl: a link out of"):
            read()
    inside = tmp_path / "snapshots" / "1"
    inside.mkdir(parents=True)
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "f").write_bytes(SCORED)
    (inside / "a.jsonl").symlink_to(tmp_path / "blobs" / "f")
    assert read_files([inside], Import()).table.num_rows == 1  # as the hub's cache keeps its files


SHARED: dict[str, tuple[str, Callable[[Path], object]]] = {
    "frozen settings": ("run-000.json", lambda folder: read_frozen(folder / "run-000.json")),
    "a stage's file": ("learning_curve.json", lambda folder: read_objects(folder / "learning_curve.json")),
    "a stage's log": (VERDICTS, lambda folder: read_verdicts(folder / VERDICTS)),
    "looks at a gate": ("looks.jsonl", lambda folder: read_looks(folder / "gate.json", "anchors")),
    "a gate": ("gate.json", lambda folder: read_gate(folder / "gate.json")),
    "an adapter": ("adapter_config.json", adapter_config),
    "an adapter's base": ("base.json", stated_base),
    "a head": ("h.safetensors", lambda folder: read_head(folder / "h.safetensors")),
    "directions": ("h.safetensors", lambda folder: read_directions(folder / "h.safetensors")),
    "a decision": ("decision.json", read_decision),
}


@pytest.mark.parametrize("content", [DEEP, b"\xff\xfe{", b"[1]", b"9" * 5000, b'{"a": 1, "a": 2}'])
@pytest.mark.parametrize("reader", SHARED)
def test_a_stages_own_file_that_somebody_shared_is_one_line(reader: str, content: bytes, tmp_path: Path):
    """If it failed: a run, an adapter or a sweep's file from elsewhere would end in a traceback."""
    name, read = SHARED[reader]
    (tmp_path / "gate.json").write_bytes(b"{}")
    (tmp_path / name).write_bytes(content + b"\n")
    with pytest.raises((UserError, ConfigError)) as raised:
        read(tmp_path)
    assert name in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_pattern_that_never_ends_is_given_up(tmp_path: Path):
    """If it failed: an adapter of a kilobyte would be matched with a model's layers until the year's end."""
    name = "base_model.model.model.layers.0.self_attn.q_proj"
    with (
        pytest.raises(UserError, match=r"a\.json: takes more than 0\.1 s to work out"),
        untrusted.interrupted(tmp_path / "a.json", 0.1),
    ):
        re.fullmatch(r"(\w+\.?)+!", name)
    assert not signal.getitimer(signal.ITIMER_REAL)[0]


VECTOR = np.ones(4, np.float32)
WHOLE = {"mean": VECTOR, "scale": VECTOR, "v": VECTOR, "c": VECTOR[:1]}
PLACE = {
    "weights": "w",
    "rendering": "r",
    "shares": [1.0],
    "positions": ["last"],
    "layer": 1,
    "position": "last",
}


@pytest.mark.parametrize(
    ("place", "tensors"),
    [
        ({}, {}),
        ({}, {**WHOLE, "v": VECTOR[:3]}),
        ({}, {**WHOLE, "q": VECTOR[None, :3]}),
        ({}, {**WHOLE, "W": VECTOR[None], "b": VECTOR[:3]}),
        ({"layer": "x"}, WHOLE),
        ({"window": 0}, {**WHOLE, "q": VECTOR[None], "v": VECTOR[None]}),
        ({"more": 1}, WHOLE),
    ],
)
def test_a_head_whose_parts_do_not_fit_is_one_line(
    place: dict[str, object], tensors: dict[str, np.ndarray], tmp_path: Path
):
    """If it failed: a head from elsewhere would end in a traceback once the model is loaded."""
    file = tmp_path / "h.safetensors"
    save_file(WHOLE, file, {"head": json.dumps(PLACE)})
    assert read_head(file).suspicion(VECTOR[None]) > 0
    save_file(tensors, file, {"head": json.dumps({**PLACE, **place})})
    with pytest.raises(UserError, match=r"h\.safetensors: no head as `monitorbench fit` writes it"):
        read_head(file)


@pytest.mark.parametrize(
    "name", ["manifest.json", "table.csv", "learning_curve.json", VERDICTS, "episodes.jsonl"]
)
@pytest.mark.parametrize("fault", ["pipe", "deep"])
def test_a_folder_of_runs_from_elsewhere_is_listed(name: str, fault: str, tmp_path: Path):
    """If it failed: one pipe among the files would hold `view` and `runs list` for ever."""
    for kind in ("evaluate", "train", "pilot"):
        run = tmp_path / kind / "a-0123456789ab"
        run.mkdir(parents=True)
        identity = {"data": "d-0123456789ab", "split": "test", "seed": 0}
        results = {"judge": {"name": "m", "prompt": "direct"}, "name": "all"}
        write_manifest(run, {"status": "running", "identity": identity, "results": results})
        (run / name).unlink(missing_ok=True)
        if fault == "pipe":
            os.mkfifo(run / name)
        else:
            (run / name).write_bytes(DEEP)
        os.mkfifo(run / ".lock")
    states = {listed(run, tmp_path)["state"] for run in runs_in(tmp_path)}
    assert states == ({"damaged"} if name == "manifest.json" else {"stale"})
    assert len(Runs(tmp_path, tmp_path).rows()) == 3


def test_what_is_packed_well_is_read(tmp_path: Path):
    """If it failed: an ordinary file of repeated words would be refused."""
    (tmp_path / "s.csv.gz").write_bytes(gzip.compress(CSV))
    assert len(gzip.compress(CSV)) * 200 < len(CSV)
    assert read_files([tmp_path / "s.csv.gz"], Import()).table.num_rows == 2000
