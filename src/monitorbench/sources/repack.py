"""Upstream repositories in another form than the readers': one JSON record a line is made of their files.

The local mirror holds these records. From upstream they are made of a repository's archive
(`sources.archive`) and have to have the checksum that `conf/source` states: else nothing is handed out.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

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
