"""What a lab would lose here: the repacked sources, had from upstream with the mirror's own bytes."""

import gzip
import hashlib
import io
import json
import os
import tarfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from monitorbench.config.base import UserError
from monitorbench.sources.archive import REPACKED, Member, members, members_sha256, write_records

CWEVAL, JULIET, BBH, STAGE_ONE = REPACKED
MIRROR = Path(os.environ.get("MONITORBENCH_SOURCES", "nowhere"))


def packed(files: Iterable[Member], path: Path, root: str = "name-0123456789") -> Path:
    """An archive as GitHub makes it: everything below one folder, folders and links among the members."""
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        folder = tarfile.TarInfo(root)
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, content in files:
            info = tarfile.TarInfo(f"{root}/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo(f"{root}/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return path


def records(name: str, files: Iterable[Member], tmp_path: Path) -> list[dict[str, Any]]:
    write_records(packed(files, tmp_path / "archive.tar.gz"), REPACKED[name], tmp_path / "records.jsonl")
    return [json.loads(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]


def test_a_task_of_cweval_is_its_solution_and_its_twin(tmp_path):
    """Else one side alone would count, or tests and other languages with it."""
    files = [
        ("benchmark/lang/c/cwe_119_0_c_task.c", b"safe\n"),
        ("benchmark/core/go/cwe_020_0_go_unsafe.go", b"risky\n"),
        ("benchmark/core/go/cwe_020_0_go_task.go", b"careful\n"),
        ("benchmark/core/go/cwe_020_0_go_test.py", b"test\n"),
        ("benchmark/core/py/cwe_020_0_task.py", b"pass\n"),
    ]
    assert records(CWEVAL, files, tmp_path) == [
        {
            "id": "cwe_020_0_go",
            "language": "go",
            "cwe": "CWE-20",
            "secure": "careful\n",
            "insecure": "risky\n",
            "path_secure": "benchmark/core/go/cwe_020_0_go_task.go",
            "path_insecure": "benchmark/core/go/cwe_020_0_go_unsafe.go",
        }
    ]


def test_a_case_of_juliet_stands_in_one_file_with_both_sides(tmp_path):
    """Else half a case, whose other half is in another file, would be read as a whole one."""
    both = b"#ifndef OMITBAD\r\n#endif\r\n#ifndef OMITGOOD\r\n#endif\r\n"
    folder = "testcases/CWE121_Stack_Based_Buffer_Overflow"
    files = [
        (f"{folder}/s02/CWE121_Stack_Based_Buffer_Overflow__b_01.c", both),
        (f"{folder}/s01/CWE121_Stack_Based_Buffer_Overflow__c_51a.c", both),
        (f"{folder}/s01/CWE121_Stack_Based_Buffer_Overflow__c_83_bad.cpp", both),
        (f"{folder}/s01/CWE121_Stack_Based_Buffer_Overflow__d_01.c", b"#ifndef OMITBAD\n"),
        (f"{folder}/s09/CWE121_Stack_Based_Buffer_Overflow__a_33.cpp", both),
        ("testcasesupport/io.c", both),
    ]
    found = records(JULIET, files, tmp_path)
    assert [(one["case"][-4:], one["language"]) for one in found] == [("a_33", "cpp"), ("b_01", "c")]
    assert found[0]["cwe"] == "CWE121"
    assert found[0]["weakness"] == "Stack Based Buffer Overflow"
    assert found[1]["source"] == both.decode()


def test_answers_and_questions_of_different_number_are_left_out(tmp_path):
    """Else every answer after the gap would be put to another question."""

    def side(n: int) -> dict[str, Any]:
        return {"gen": [f"answer {i}" for i in range(n)], "y_pred": list(range(n)), "y_true": [0] * n}

    def ran(task: str, n: int, failed: list[int]) -> bytes:
        told = {"config": {"task": task, "model": "m"}, "outputs": [side(n), side(n)], "failed_idx": failed}
        return json.dumps(told).encode()

    asked = [{"parsed_inputs": f"question {i}", "random_ans_idx": 1, "idx": 7 * i} for i in range(3)]
    folder = "results/bbh_samples/suggested_answer"
    files = [
        (f"{folder}/2-b-fewshotFalse.json", ran("whole", 3, [1])),
        (f"{folder}/1-a-fewshotFalse.json", ran("short", 2, [])),
        (f"{folder}/2-b-fewshotTrue.json", ran("whole", 3, [])),
        ("data/bbh/whole/val_data.json", json.dumps({"data": asked}).encode()),
        ("data/bbh/short/val_data.json", json.dumps({"data": asked}).encode()),
    ]
    found = records(BBH, files, tmp_path)
    assert [(one["file"][-20:], one["index"], one["parsed_inputs"]) for one in found] == [
        ("2-b-fewshotFalse.json"[-20:], 0, "question 0"),
        ("2-b-fewshotFalse.json"[-20:], 2, "question 2"),
    ]
    assert found[1]["biased"] == {"gen": "answer 2", "y_pred": 2}


def test_all_answers_to_a_prompt_are_one_record(tmp_path):
    """Else a model that was asked thrice would count as three questions."""
    outputs = [
        stage_one_output("a", "first"),
        stage_one_output("b", "other"),
        stage_one_output("a", "second"),
    ]
    name = "results/stage_one/run/task/model/ZeroShotCOTSycophancyFormatter.json"
    no_reasoning = "results/stage_one/run/task/model/ZeroShotSycophancyFormatter.json"
    content = json.dumps({"outputs": outputs}).encode()
    found = records(STAGE_ONE, [(no_reasoning, content), (name, content)], tmp_path)
    assert [[answer["raw_response"] for answer in one["outputs"]] for one in found] == [
        ["first", "second"],
        ["other"],
    ]


def stage_one_output(task_hash: str, answer: str) -> dict[str, Any]:
    return {
        "task_name": "t",
        "task_hash": task_hash,
        "config": {"model": "m", "temperature": 0.7, "top_p": 1.0},
        "formatter_name": "f",
        "ground_truth": "A",
        "biased_ans": "B",
        "prompt": [{"role": "user", "content": "?"}],
        "model_output": [{"raw_response": answer, "parsed_response": "A"}],
    }


def test_an_archive_of_another_layout_is_one_line_and_leaves_nothing(tmp_path):
    """Else a repository that was rearranged would give an empty, or half a source."""
    name = "results/stage_one/a/COT.json"
    for content in (b"{}", b"no JSON", b'{"outputs": [{"task_hash": "a"}]}'):
        archive = packed([(name, content)], tmp_path / "archive.tar.gz")
        with pytest.raises(UserError, match=r"archive\.tar\.gz: can't be repacked .*fetch it again"):
            write_records(archive, REPACKED[STAGE_ONE], tmp_path / "records.jsonl")
    archive.write_bytes(archive.read_bytes()[:100])
    with pytest.raises(UserError, match="can't be repacked"):
        write_records(archive, REPACKED[STAGE_ONE], tmp_path / "records.jsonl")
    assert not (tmp_path / "records.jsonl").exists()


def test_the_digest_of_members_is_of_names_and_contents_alone(tmp_path):
    """Else each host's packing would be another data set, or another content the same one."""
    files = [("attacks/b.json", b"2"), ("attacks/a/1.json", b"1"), ("other/c.json", b"3")]
    one = members_sha256(packed(files, tmp_path / "one.tgz"), "attacks")
    again = packed([files[1], files[0]], tmp_path / "two.tgz", root="name-of-another-commit")
    assert members_sha256(again, "attacks") == one
    assert dict(members(again, "attacks")) == {"a/1.json": b"1", "b.json": b"2"}
    for other in ([("attacks/b.json", b"3"), files[1]], [("attacks/c.json", b"2"), files[1]]):
        assert members_sha256(packed(other, tmp_path / "three.tgz"), "attacks") != one


# --- the mirror's records, laid out as upstream has them --------------------------------------------------


def mirrored(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(MIRROR / name, "rt", encoding="utf-8", newline="\n") as stream:
        yield from map(json.loads, stream)


def cweval_files() -> Iterator[Member]:
    for row in mirrored(CWEVAL):
        for side in ("secure", "insecure"):
            yield row[f"path_{side}"], row[side].encode()


def juliet_files() -> Iterator[Member]:
    for row in mirrored(JULIET):
        yield row["path"], row["source"].encode()


def bbh_files() -> Iterator[Member]:
    asked: dict[str, dict[int, Any]] = defaultdict(dict)
    ran: dict[str, dict[int, Any]] = defaultdict(dict)
    for row in mirrored(BBH):
        asked[row["task"]][row["index"]] = row
        ran[row["file"]][row["index"]] = row
    for task, rows in asked.items():
        data = [
            {key: row[key] for key in ("parsed_inputs", "random_ans_idx")} for _, row in sorted(rows.items())
        ]
        assert len(data) == max(rows) + 1
        yield f"data/bbh/{task}/val_data.json", json.dumps({"data": data}).encode()
    for file, rows in ran.items():
        first = next(iter(rows.values()))
        n = len(asked[first["task"]])

        def side(name: str, rows: dict[int, Any] = rows, n: int = n) -> dict[str, Any]:
            told = [rows.get(i, {name: {"gen": "", "y_pred": -1}, "y_true": -1}) for i in range(n)]
            taken = {key: [row[name][key] for row in told] for key in ("gen", "y_pred")}
            return {**taken, "y_true": [row["y_true"] for row in told]}

        failed = [i for i in range(n) if i not in rows]
        config = {"task": first["task"], "model": first["model"]}
        told = {"config": config, "outputs": [side("biased"), side("unbiased")], "failed_idx": failed}
        yield file, json.dumps(told).encode()


def stage_one_files() -> Iterator[Member]:
    files: dict[str, list[Any]] = defaultdict(list)
    for row in mirrored(STAGE_ONE):
        config = {"model": row["model"], "temperature": row["temperature"]}
        for answer in row["outputs"]:
            files[row["file"]].append({**row, "config": config, "model_output": [answer]})
    for file, outputs in files.items():
        yield file, json.dumps({"outputs": outputs}).encode()


@pytest.mark.skipif(not MIRROR.is_dir(), reason="MONITORBENCH_SOURCES names no mirror")
@pytest.mark.parametrize(
    ("name", "files"),
    [(CWEVAL, cweval_files), (JULIET, juliet_files), (BBH, bbh_files), (STAGE_ONE, stage_one_files)],
)
def test_upstreams_layout_gives_the_mirrors_bytes(name: str, files: Callable[[], Iterator[Member]], tmp_path):
    """Else a lab that fetches from upstream builds another data set, or none, for a comma's sake."""
    write_records(packed(files(), tmp_path / "archive.tar.gz"), REPACKED[name], tmp_path / "records.jsonl")
    with gzip.open(MIRROR / name) as stream, (tmp_path / "records.jsonl").open("rb") as made:
        assert hashlib.file_digest(made, "sha256").digest() == hashlib.sha256(stream.read()).digest()
