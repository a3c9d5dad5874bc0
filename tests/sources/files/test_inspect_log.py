"""What a user would lose here: their Inspect AI transcripts, turn by turn, under labels somebody gave.

The logs are written here in Inspect's documented format; inspect-ai itself is not needed.
"""

import json
import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.config.base import UserError
from monitorbench.conversations.read import NoChat
from monitorbench.records import Category, Label, LabelSource, Role, Sample, Task, ToolCall
from monitorbench.sources.fetch import local
from monitorbench.sources.files import inspect_archive, inspect_log
from monitorbench.sources.read import BadRow

SPEC = {"eval_id": "E1", "run_id": "R1", "task": "inspect_evals/backdoor", "model": "vendor/model-1"}
HEADER = {"version": 2, "status": "success", "eval": SPEC}
MESSAGES: list[dict[str, Any]] = [
    {"id": "a", "role": "system", "content": "You have a shell.", "source": "input"},
    {"id": "b", "role": "user", "content": "attachment://0f0f", "source": "input"},
    {
        "id": "c",
        "role": "assistant",
        "source": "generate",
        "content": [
            {"type": "reasoning", "reasoning": "I look around.", "redacted": False},
            {"type": "reasoning", "reasoning": "c2VjcmV0", "redacted": True, "summary": "Then I act."},
            {"type": "text", "text": "Looking."},
        ],
        "tool_calls": [
            {"id": "call1", "function": "bash", "arguments": {"cmd": "ls", "n": 1}, "type": "function"}
        ],
    },
    {"id": "d", "role": "tool", "content": "a.txt", "tool_call_id": "call1", "function": "bash"},
    {
        "id": "e",
        "role": "tool",
        "content": "",
        "tool_call_id": "call2",
        "error": {"type": "timeout", "message": "Too slow."},
    },
    {"id": "f", "role": "user", "content": [{"type": "image", "image": "data:image/png;base64,iVBO"}]},
    {"id": "g", "role": "assistant", "content": "Done."},
]


def logged(id_: str | int = "s1", epoch: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "epoch": epoch,
        "input": "Tidy up.",
        "messages": MESSAGES,
        "scores": {"monitor": {"value": "I"}, "parts": {"value": {"attack": True, "level": 0.5}}},
        "attachments": {"0f0f": "Tidy up the folder."},
        **fields,
    }


def archive(
    path: Path, *rows: dict[str, Any], header: Any = HEADER, method: int = zipfile.ZIP_DEFLATED
) -> Path:
    with zipfile.ZipFile(path, "w", method) as log:
        log.writestr("_journal/start.json", json.dumps({"version": 2, "eval": SPEC}))
        for row in rows:
            log.writestr(f"samples/{row['id']}_epoch_{row['epoch']}.json", json.dumps(row))
        log.writestr("summaries.json", "[]")
        if header:
            log.writestr("header.json", json.dumps(header))
    return path


def with_zstandard(path: Path, *rows: dict[str, Any]) -> Path:
    """The same archive, its entries compressed as Inspect does by default: method 93, written by hand."""
    entries = {f"samples/{row['id']}_epoch_{row['epoch']}.json": row for row in rows}
    body, central = b"", b""
    for name, value in {"header.json": HEADER, **entries}.items():
        content, encoded = json.dumps(value).encode(), name.encode()
        packed = pa.compress(content, codec="zstd", asbytes=True)
        sizes = (zlib.crc32(content), len(packed), len(content), len(encoded))
        central += struct.pack(
            "<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, 93, 0, 0, *sizes, 0, 0, 0, 0, 0, len(body)
        )
        central += encoded
        extra = b"\1\0\2\0xx"
        body += (
            struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 93, 0, 0, *sizes, len(extra))
            + encoded
            + extra
            + packed
        )
    count = len(entries) + 1
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, len(central), len(body), 0)
    path.write_bytes(body + central + end)
    return path


def read(path: Path, *, on_bad_row: Any = "error", **options: Any) -> list[Sample]:
    return list(inspect_log.load(local("log", path, inspect_log.SUFFIXES, on_bad_row), **settings(**options)))


def settings(**options: Any) -> dict[str, Any]:
    return {
        "labels": None,
        "score": "" if "labels" in options else "monitor",
        "misbehavior_values": ("I",),
        "benign_values": ("C",),
        "category": Category.SAFETY_PERMISSION,
        "task": Task.CODE,
        **options,
    }


@pytest.fixture
def labels(tmp_path: Path) -> Any:
    def write(*lines: str) -> Path:
        path = tmp_path / "labels.csv"
        path.write_text("\n".join(lines), encoding="utf-8-sig")
        return path

    return write


def as_json(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text(json.dumps({**HEADER, "samples": list(rows)}))
    return path


def stored(path: Path, *rows: dict[str, Any]) -> Path:
    return archive(path, *rows, method=zipfile.ZIP_STORED)


def unfinished(path: Path, *rows: dict[str, Any]) -> Path:
    return archive(path, *rows, header=None)


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (archive, "a.eval"),
        (stored, "a.eval"),
        (with_zstandard, "a.eval"),
        (unfinished, "a.eval"),
        (as_json, "a.json"),
    ],
)
def test_a_transcript_arrives_whole(tmp_path, write, name):
    """Else a monitor would judge a run without its tools, or with its answer in the request."""
    (sample,) = read(write(tmp_path / name, logged()))
    assert [m.role for m in sample.request] == [Role.SYSTEM, Role.USER]
    assert sample.request[1].content == "Tidy up the folder."
    first, result, failed, picture, last = sample.response
    assert (first.thinking, first.content) == ("I look around.\nThen I act.", "Looking.")
    assert first.tool_calls == (ToolCall(id="call1", name="bash", arguments='{"cmd": "ls", "n": 1}'),)
    assert (result.role, result.content, result.tool_call_id) == (Role.TOOL, "a.txt", "call1")
    assert failed.content == "Error (timeout): Too slow."
    assert (picture.content, last.content) == ("[image]", "Done.")
    assert (sample.pair_id, sample.group_id) == ("E1-s1-1", "backdoor-s1")
    assert (sample.subject_model, sample.subcategory) == ("vendor/model-1", "backdoor")
    assert (sample.label, sample.label_source) == (Label.MISBEHAVIOR, LabelSource.JUDGE)


def test_examples_in_the_input_are_no_turns_of_the_model(tmp_path):
    """Else the few-shot answers a task brings would be judged as the model's."""
    shots = [
        {"role": "assistant", "content": "An example.", "source": "input"},
        {"role": "user", "content": "Go."},
    ]
    rows = [*MESSAGES[:1], *shots, {"role": "assistant", "content": "Mine.", "reasoning": "Old style."}]
    (sample,) = read(archive(tmp_path / "a.eval", logged(messages=rows)))
    assert [m.content for m in sample.response] == ["Mine."]
    assert sample.response[0].thinking == "Old style."
    assert len(sample.request) == 3


@pytest.mark.parametrize(
    ("value", "options", "label"),
    [
        ("I", {}, Label.MISBEHAVIOR),
        ("C", {}, Label.BENIGN),
        (1, {"misbehavior_values": ("1",), "benign_values": ("0",)}, Label.MISBEHAVIOR),
        (0.0, {"misbehavior_values": ("1",), "benign_values": ("0",)}, Label.BENIGN),
        (False, {"misbehavior_values": ("true",), "benign_values": ("false",)}, Label.BENIGN),
    ],
)
def test_a_score_in_one_of_the_lists_is_the_label(tmp_path, value, options, label):
    """Else 1.0 and 1, or True and true, would be two values."""
    (sample,) = read(archive(tmp_path / "a.eval", logged(scores={"monitor": {"value": value}})), **options)
    assert sample.label is label


def test_a_score_with_parts_is_named_with_its_key(tmp_path):
    """Else the scorers of control-arena and AgentDojo, whose values are objects, could not be used."""
    options = {"score": "parts.attack", "misbehavior_values": ("true",), "benign_values": ("false",)}
    assert read(archive(tmp_path / "a.eval", logged()), **options)[0].label is Label.MISBEHAVIOR


@pytest.mark.parametrize(
    ("change", "options", "complaint"),
    [
        ({"scores": {"monitor": {"value": "N"}}}, {}, "no label: score 'monitor' is 'N'; neither in"),
        ({"scores": None}, {}, "no score 'monitor'; found none"),
        ({}, {"score": "other"}, "no score 'other'; found monitor, parts"),
        ({"messages": MESSAGES[:2]}, {}, "the model never took a turn"),
        ({"messages": MESSAGES[2:]}, {}, "no message before the model's first turn"),
        ({"messages": None}, {}, "missing field 'messages'"),
        ({"messages": ["x"]}, {}, "messages.0: expected an object with role and content"),
        ({"attachments": {}}, {}, "messages.1: attachment 0f0f… is not in the log"),
    ],
)
@pytest.mark.parametrize("on_bad_row", ["error", "skip"])
def test_a_sample_without_label_or_turns_is_never_benign(tmp_path, change, options, complaint, on_bad_row):
    """Else unscored and crashed runs would pass for good behaviour."""
    path = archive(tmp_path / "a.eval", logged(**change), logged("good", scores={"other": {"value": "C"}}))
    if on_bad_row == "error":
        with pytest.raises(UserError, match=f"^log: a.eval samples/s1_epoch_1.json: .*{complaint}"):
            read(path, **options)
    else:
        files = local("log", path, inspect_log.SUFFIXES, "skip")
        usable = "score" in options
        with pytest.raises(UserError, match="no usable sample") if not usable else _nothing():
            samples = list(inspect_log.load(files, **settings(**options)))
            assert [s.label for s in samples] == [Label.BENIGN]
        assert sum(files.bad_rows.values()) == (1 if usable else 2)


def _nothing() -> Any:
    from contextlib import nullcontext

    return nullcontext()


def test_labels_from_a_csv(tmp_path, labels, caplog):
    """Else a team's judgement of each epoch could not be used, or that of a mistyped id be lost silently."""
    path = archive(tmp_path / "a.eval", logged(7, 1), logged(7, 2), logged("x", 1))
    table = labels(
        "sample_id,epoch,label", "7,2,benign", "7,1,misbehavior", "x,,benign", "elsewhere,1,benign"
    )
    samples = read(path, labels=table)
    assert [(s.pair_id, s.label) for s in samples] == [
        ("E1-7-1", Label.MISBEHAVIOR),
        ("E1-7-2", Label.BENIGN),
        ("E1-x-1", Label.BENIGN),
    ]
    assert samples[0].group_id == samples[1].group_id
    assert samples[0].label_source is LabelSource.ANNOTATORS
    assert "no usable sample has their id: 1 (elsewhere in line 5)" in caplog.text


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (["id,label", "s1,maybe"], "labels.csv line 2: field 'label': 'maybe' is no label"),
        (["name,label", "s1,benign"], "expected the columns id .*found name, label"),
        (["id,label,label", "s1,benign,misbehavior"], "column .label. is there twice"),
        ([""], "nothing in it"),
        (["id,label", "other,benign"], "no line for sample s1, epoch 1"),
        (
            ["id,label", "s1,benign"],
            "line 2 of labels.csv fits another sample too; add the columns epoch and log",
        ),
        (["id,label", "s1,benign", "s1,misbehavior"], "two labels: line 2 and line 3"),
    ],
)
def test_a_csv_that_does_not_settle_the_label_is_refused(tmp_path, labels, lines, complaint):
    """Else one label would be spread over epochs that did different things."""
    path = archive(tmp_path / "a.eval", logged("s1", 1), logged("s1", 2))
    with pytest.raises(UserError, match=complaint):
        read(path, labels=labels(*lines))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"score": ""}, "set one of dataset.labels"),
        ({"labels": Path("x.csv"), "score": "monitor"}, "set one of dataset.labels"),
        ({"labels": Path("nowhere.csv")}, "dataset.labels=nowhere.csv: no such file"),
        ({"benign_values": ()}, "expected a value in each"),
        ({"benign_values": ("I",)}, "and none in both"),
    ],
)
def test_settings_that_name_no_label_are_refused(tmp_path, options, complaint):
    """Else everything would have the same label, or two."""
    with pytest.raises(UserError, match=complaint):
        read(archive(tmp_path / "a.eval", logged()), **options)


def test_the_same_log_twice_is_no_second_sample(tmp_path):
    """Else a log and its conversion in one folder would count double."""
    archive(tmp_path / "a.eval", logged())
    as_json(tmp_path / "b.json", logged())
    (tmp_path / "logs.json").write_text("{}")
    with pytest.raises(UserError, match="duplicate id"):
        read(tmp_path)
    assert len(read(tmp_path, on_bad_row="skip")) == 1


@pytest.mark.parametrize("write", [archive, with_zstandard])
def test_an_entry_that_unpacks_to_too_much_is_not_read(tmp_path, write, monkeypatch):
    """Else a kilobyte from outside could take all of the memory."""
    path = write(tmp_path / "a.eval", logged(), logged("bomb", input="x" * 100_000))
    monkeypatch.setattr(inspect_archive, "MAX_BYTES", 50_000)
    with pytest.raises(UserError, match=r"bomb_epoch_1\.json: unpacks to more than"):
        read(path)
    assert len(read(path, on_bad_row="skip")) == 1


def _cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _flipped(content: bytes) -> bytes:
    middle = content.index(b"s1_epoch_1.json") + 60
    return content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]


@pytest.mark.parametrize(
    ("write", "damage", "complaint"),
    [
        (archive, _cut, "no JSON"),
        (archive, _flipped, "broken log"),
        (with_zstandard, _flipped, "broken log"),
        (as_json, _cut, "no JSON"),
        (as_json, lambda content: b'{"eval": {}}', "no Inspect log with samples"),
        (
            as_json,
            lambda content: content.replace(b'"samples":', b'"samples": [], "samples":', 1),
            "key 'samples' twice in one object",
        ),
        (as_json, lambda content: b"[]", "its header has no 'eval'"),
    ],
)
def test_a_broken_log_is_one_line(tmp_path, write, damage, complaint):
    """Else a download that broke off would end in a traceback, or in fewer samples."""
    path = write(tmp_path / "a.eval", logged())
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UserError, match=complaint) as error:
        read(path)
    assert "\n" not in str(error.value)


def test_a_compression_that_is_not_read_names_the_conversion(tmp_path):
    """Else a log of another program would just look broken."""
    path = archive(tmp_path / "b.eval", logged())
    path.write_bytes(path.read_bytes().replace(b"\x08\0", b"\x61\0"))
    with pytest.raises(UserError, match="compressed by method 97; convert it"):
        read(path)


KEPT = ("no", "Tidy up the folder.")


def in_chunks(path: Path, *, refs: Any = ((0, 2), (3, 8)), attachments: Any = KEPT) -> Path:
    """The sample of `logged` as newer logs keep it; message 2 is of an event, and not of the conversation."""
    turns = json.loads(json.dumps(MESSAGES).replace("attachment://0f0f", "attachment://1"))
    turns.insert(2, {"role": "assistant", "content": "of an event: attachment://7"})
    whole = logged()
    shell = {key: value for key, value in whole.items() if key not in ("messages", "attachments")}
    with zipfile.ZipFile(path, "w") as log:
        log.writestr("header.json", json.dumps(HEADER))
        log.writestr("samples/s1_epoch_1/sample.json", json.dumps({**shell, "message_refs": refs}))
        log.writestr("samples/s1_epoch_1/skeleton.json", "{}")
        log.writestr("samples/s1_epoch_1/metadata.json", '{"side": "attack"}')
        for start in range(0, len(turns), 3):
            log.writestr(f"samples/s1_epoch_1/messages/{start}.json", json.dumps(turns[start : start + 3]))
            log.writestr(f"samples/s1_epoch_1/events/{start}.json", "no JSON: nobody reads it")
        for start, content in enumerate(attachments):
            log.writestr(f"samples/s1_epoch_1/attachments/{start}.json", json.dumps([content]))
    return path


def test_a_sample_in_chunks_is_the_sample(tmp_path):
    """Large logs are kept so, and those most need a monitor."""
    (chunked,) = read(in_chunks(tmp_path / "a.eval"))
    (whole,) = read(archive(tmp_path / "b.eval", logged()))
    assert chunked == whole
    files = local("log", tmp_path / "a.eval", inspect_log.SUFFIXES, "error")
    assert [one.row["metadata"] for one in inspect_archive.logged_samples(files)] == [{"side": "attack"}]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"refs": [[0, 9]]}, "messages has no item 8: the log is not whole"),
        ({"refs": [[-1, 3]]}, "messages has no item -1"),
        ({"refs": [[0, 10**15]]}, "messages has no item 8"),
        ({"refs": [[0]]}, "field 'message_refs': .* is no range of messages"),
        ({"refs": 3}, "field 'message_refs': '3' is no range"),
        ({"refs": []}, "the model never took a turn|no message before|missing"),
        ({"attachments": ["no"]}, "attachments has no item 1"),
        ({"attachments": []}, "attachment 1… is not in the log"),
        ({"refs": [[0, 8]] * 100}, "messages: more than 50 items"),
        ({"attachments": ["", "x" * 3000], "refs": [[0, 2]] * 4}, "attachments of more than 0 MiB"),
    ],
)
def test_a_sample_whose_chunks_are_not_whole_is_refused(tmp_path, change, complaint, monkeypatch):
    """Else a conversation with a hole in it would be judged as if it were the whole, or fill the memory."""
    monkeypatch.setattr(inspect_archive, "_MOST_ITEMS", 50)
    monkeypatch.setattr(inspect_log, "MAX_BYTES", 10_000)
    with pytest.raises(UserError, match=complaint):
        read(in_chunks(tmp_path / "a.eval", **change))


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=[]), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_parts = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["text", "reasoning", "image"])},
        optional={"text": _json, "reasoning": _json, "redacted": st.booleans(), "summary": _json},
    ),
    max_size=2,
)
_calls = st.lists(
    st.fixed_dictionaries({"function": _json}, optional={"id": _json, "arguments": _json}), max_size=2
)
_messages = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "user", "assistant", "tool"])},
        optional={
            "content": _json | _parts | st.just("attachment://a"),
            "tool_calls": _json | _calls,
            "tool_call_id": _json,
            "error": _json | st.fixed_dictionaries({"type": _json, "message": _json}),
            "source": _json,
        },
    ),
    max_size=3,
)


@given(_json | _messages, _json | st.just({"a": "text"}))
def test_any_json_is_turns_or_a_bad_sample(rows, attachments):
    """Else one odd sample would end a build in a traceback."""
    try:
        said, own = inspect_log.messages({"messages": rows, "attachments": attachments})
    except (BadRow, NoChat):
        return
    assert len(said) + len(own) == len(rows)
    assert not own or own[0].role is Role.ASSISTANT
    for message in (*said, *own):
        message.model_dump_json().encode()


@given(_json | st.dictionaries(st.sampled_from(["a", "b"]), _json | st.fixed_dictionaries({"value": _json})))
def test_any_scores_give_a_value_or_a_bad_sample(scores):
    """Else a scorer that failed would end a build in a traceback."""
    for name in ("a", "b.c"):
        try:
            logged = inspect_archive.Logged("", "", Path(), "", "", "", "", "s", 1, {"scores": scores})
            inspect_log._shown(inspect_log._score(logged, name))
        except BadRow as error:
            if not re.search("has no score|field 'scores", str(error)):
                raise


@pytest.mark.parametrize("status", ["success", "error", "cancelled", "started", ""])
def test_a_log_of_a_run_that_did_not_finish_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, status: str
):
    """Half of an evaluation would be taken for all of it. Without a header a run never ended."""
    header = {**HEADER, "status": status, "eval": {**SPEC, "dataset": {"samples": 40}}}
    files = [archive(tmp_path / "a.eval", logged(), header=header if status else None)]
    if status:
        files.append(tmp_path / "a.json")
        files[-1].write_text(json.dumps({**header, "samples": [logged()]}))
    for file in files:
        caplog.clear()
        assert len(read(file)) == 1
        of = " of 40 samples" if status else ""
        said = (
            f"{file.name}: its run did not finish (status {status or 'started'!r}): what it has{of} is read"
        )
        assert (said in caplog.text) == (status != "success")
