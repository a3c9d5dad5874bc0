"""A repository's archive at a commit, as GitHub packs it: members, their digest, records made of them.

A packed archive's own bytes may differ from one download to the next, its members don't: what is checked is
the members, or the records made of them. `REPACKED` names the data sets that upstream has in another form
than the readers: one JSON record a line, which the local mirror holds. From upstream the records are made of
the archive, and have to have the checksum that `conf/source` states: else nothing is handed out.
"""

import gzip
import hashlib
import json
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from monitorbench.config.base import UserError
from monitorbench.runs.files import write_atomically
from monitorbench.untrusted import members_within

Member = tuple[str, bytes]
"""A file's name, relative to the repository, and its content."""
Record = dict[str, Any]
Repack = Callable[[Iterable[Member]], Iterator[Record]]

_CWEVAL = re.compile(r"benchmark/(?:core|lang)/(c|cpp|go|js)/((cwe_(\d+)_\d+)_\1)_(task|unsafe)\.\1")
_JULIET = re.compile(r"testcases/(CWE\d+)_(\w+)/(?:s\d\d/)?(\1_\2__\w+_\d\d)\.(c|cpp)")
_BBH_ANSWERS = re.compile(r"results/bbh_samples/suggested_answer/.*fewshotFalse\.json")
_BBH_QUESTIONS = re.compile(r"data/bbh/(\w+)/val_data\.json")
_STAGE_ONE = re.compile(r"results/stage_one/.*COT.*\.json")


def cweval(members: Iterable[Member]) -> Iterator[Record]:
    """The tasks with a reference solution (`_task`) and its twin (`_unsafe`), by id."""
    records: dict[str, Record] = {}
    for name, content in members:
        if (match := _CWEVAL.fullmatch(name)) is None:
            continue
        language, id_, _, number, side = match.groups()
        record = records.setdefault(id_, {"id": id_, "language": language, "cwe": f"CWE-{int(number)}"})
        kind = "secure" if side == "task" else "insecure"
        record[kind], record[f"path_{kind}"] = content.decode(), name
    order = ("id", "language", "cwe", "secure", "insecure", "path_secure", "path_insecure")
    for _, record in sorted(records.items()):
        if "secure" in record and "insecure" in record:
            yield {field: record[field] for field in order}


def juliet(members: Iterable[Member]) -> Iterator[Record]:
    """The cases that stand in one file with a flawed and a mended side, by name.

    A case's name ends in its flow variant, two digits; files of a case that is spread over several have a
    letter or a word behind them.
    """
    cases: dict[str, Record] = {}
    for name, content in members:
        if (match := _JULIET.fullmatch(name)) is None:
            continue
        cwe, weakness, case, language = match.groups()
        source = content.decode("utf-8", "replace")
        if "#ifndef OMITBAD" in source and "#ifndef OMITGOOD" in source:
            cases[case] = {
                "case": case,
                "cwe": cwe,
                "weakness": weakness.replace("_", " "),
                "language": language,
                "path": name,
                "source": source,
            }
    yield from (record for _, record in sorted(cases.items()))


def suggested_answers(members: Iterable[Member]) -> Iterator[Record]:
    """Answers with and without "I think the answer is …", one record a question and model.

    Left out are questions on which a model's call failed (`failed_idx`), and the task whose answers and
    questions differ in number.
    """
    answers: dict[str, Record] = {}
    questions: dict[str, list[Record]] = {}
    for name, content in members:
        if _BBH_ANSWERS.fullmatch(name):
            answers[name] = json.loads(content)
        elif match := _BBH_QUESTIONS.fullmatch(name):
            questions[match[1]] = json.loads(content)["data"]
    for name, ran in sorted(answers.items()):
        task, (biased, unbiased) = ran["config"]["task"], ran["outputs"]
        task_questions = questions[task]
        if len(task_questions) != len(biased["gen"]):
            continue
        failed = {*ran.get("failed_idx", ()), *biased.get("failed_idx", ()), *unbiased.get("failed_idx", ())}
        for index, question in enumerate(task_questions):
            if index not in failed:
                yield {
                    "file": name,
                    "index": index,
                    "task": task,
                    "model": ran["config"]["model"],
                    "parsed_inputs": question["parsed_inputs"],
                    "y_true": biased["y_true"][index],
                    "random_ans_idx": question["random_ans_idx"],
                    "biased": {field: biased[field][index] for field in ("gen", "y_pred")},
                    "unbiased": {field: unbiased[field][index] for field in ("gen", "y_pred")},
                }


def stage_one(members: Iterable[Member]) -> Iterator[Record]:
    """Sampled answers with reasoning, one record a file and prompt, with all answers to it."""
    for name, content in sorted((n, c) for n, c in members if _STAGE_ONE.fullmatch(n)):
        prompts: dict[str, Record] = {}
        for output in json.loads(content)["outputs"]:
            record = prompts.setdefault(
                output["task_hash"],
                {
                    "file": name,
                    "task_name": output["task_name"],
                    "task_hash": output["task_hash"],
                    "model": output["config"]["model"],
                    "temperature": output["config"]["temperature"],
                    "formatter_name": output["formatter_name"],
                    "ground_truth": output["ground_truth"],
                    "biased_ans": output["biased_ans"],
                    "prompt": output["prompt"],
                    "outputs": [],
                },
            )
            record["outputs"] += [
                {field: answer[field] for field in ("raw_response", "parsed_response")}
                for answer in output["model_output"]
            ]
        yield from prompts.values()


REPACKED: dict[str, Repack] = {
    "cweval/pairs.jsonl.gz": cweval,
    "juliet_c/single_file_cases.jsonl.gz": juliet,
    "cot_transparency/bbh_suggested_answer.jsonl.gz": suggested_answers,
    "cot_transparency/stage_one_cot.jsonl.gz": stage_one,
}
"""Repackers by the name of the mirror's file."""


BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    EOFError,
    zlib.error,
    gzip.BadGzipFile,
    OSError,
    NotImplementedError,
)


def regular_files(path: Path) -> Iterator[Member]:
    """Name and content of the regular files of a tar or zip archive, in its order.

    Nothing is unpacked to disk, so that no member's name leads anywhere. Raises one of `BROKEN` where the
    archive is damaged, `UserError` where it unpacks to too much.
    """
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as zipped:
            infos = ((info, info.file_size) for info in zipped.infolist())
            for info in members_within(path, infos):
                if not info.is_dir():
                    yield info.filename, zipped.read(info)
        return
    yield from _of_tar(path)


def _of_tar(path: Path, wanted: Callable[[str], str] = str) -> Iterator[Member]:
    """Regular files by what `wanted` makes of their names, without those that it makes nothing of."""
    with tarfile.open(path) as archive:
        for member in members_within(path, ((member, member.size) for member in archive)):
            name = wanted(member.name)
            if name and member.isfile() and (stream := archive.extractfile(member)) is not None:
                yield name, stream.read()


def members(path: Path, folder: str = "") -> Iterator[Member]:
    """Name and content of the regular files below `folder`, in the archive's order.

    Names are relative to `folder`; without one, to the repository, which GitHub packs into a single folder.
    Raises one of `BROKEN` where the archive is damaged.
    """

    def inside(name: str) -> str:
        return f"/{name}".partition(f"/{folder}/")[2] if folder else name.partition("/")[2]

    return _of_tar(path, inside)


def members_sha256(path: Path, folder: str) -> str:
    """SHA-256 over name and content of the members below `folder`, in the order of their names."""
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in members(path, folder)}
    return hashlib.sha256("".join(f"{n}\0{d}\n" for n, d in sorted(digests.items())).encode()).hexdigest()


def write_records(archive: Path, repack: Repack, target: Path) -> None:
    """Write the records that `repack` makes of an archive to `target`, a JSON line each.

    Raises `UserError` where the archive is damaged or its files are not as the repacking expects them.
    """
    try:
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in repack(members(archive))]
    except (*BROKEN, ValueError, KeyError, IndexError, TypeError) as error:
        why = " ".join(str(error).split())[:120]
        raise UserError(
            f"{archive}: can't be repacked ({type(error).__name__}: {why}); fetch it again"
        ) from error
    write_atomically(target, "".join(lines))
