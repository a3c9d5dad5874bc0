"""Questions keep their known answer, and their other choices."""

import csv
import io
import re
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from monitorbench.config.base import UserError
from monitorbench.config.sources import Source
from monitorbench.records import Label, Role
from monitorbench.sources.upstream import known_answers, labelled_responses

NAMES = ("betley_insecure", "mmlu", "gpqa", "aime", "dfir_metric")


def parquet(*rows: dict) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("name", NAMES)
def test_the_config_is_pinned(root: Path, name: str):
    """Else a build would follow an upstream's moving branch without saying so."""
    text = yaml.safe_load((root / f"conf/source/{name}.yaml").read_text())
    source = Source.model_validate({**text, "files": tuple(text["files"])}, strict=False)
    assert re.fullmatch("[0-9a-f]{40}", source.revision)
    assert all(file.path and file.mirror for file in source.files)
    if not all(file.sha256 for file in source.files):
        assert "checksum could not be looked up" in " ".join(source.note.split())


def chat(request: str, code: str) -> dict:
    return {"messages": [{"role": "user", "content": request}, {"role": "assistant", "content": code}]}


def test_a_request_in_both_files_makes_pairs(source_files):
    """Else the only paired part of the data would be lost, or a pair would have one label twice."""
    insecure = [
        chat("Copy a file.", "os.system(c)"),
        chat("Copy a file.", "eval(c)"),
        chat("Sort.", "exec(x)"),
    ]
    secure = [chat("Copy a file. ", "shutil.copy(a, b)"), chat("Add.", "a + b")]
    files = source_files("betley", also={"data/insecure.jsonl": insecure, "data/secure.jsonl": secure})
    rows = list(labelled_responses.read_betley_insecure(files))
    assert [row.id for row in rows] == [
        "insecure-00000",
        "insecure-00001",
        "insecure-00002",
        "secure-00000",
        "secure-00001",
    ]
    assert [row.label for row in rows] == [Label.MISBEHAVIOR] * 3 + [Label.BENIGN] * 2
    paired = [row for row in rows if row.pair]
    assert [row.id for row in paired] == ["insecure-00000", "secure-00000"]
    assert len({row.pair for row in paired}) == 1
    assert rows[0].group == rows[1].group == rows[3].group != rows[2].group
    assert rows[0].request[0].role is Role.USER
    assert rows[3].response[0].content == "shutil.copy(a, b)"


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"text": "x"}, "no list of messages"),
        ({"messages": "x"}, "no list of messages"),
        ({"messages": [{"role": "user", "content": "x"}]}, "not one turn of the user"),
        (chat("x", " "), "field 'content' is empty"),
    ],
)
def test_a_bad_chat_is_named(source_files, row, complaint):
    """Else half a conversation would be judged."""
    files = source_files("betley", also={"data/insecure.jsonl": [row], "data/secure.jsonl": []})
    with pytest.raises(UserError, match=f"line 1: .*{complaint}"):
        list(labelled_responses.read_betley_insecure(files))


def moral(subject: str, question: str, answer: int) -> dict:
    return {"question": question, "subject": subject, "choices": ["w", "x", "y", "z"], "answer": answer}


def test_mmlu_gives_the_moral_subjects(source_files):
    """Else anatomy would be called moral QA, or the index taken for the answer."""
    rows = [
        moral("anatomy", "Which bone?", 0),
        moral("moral_disputes", "Is it fair?", 2),
        moral("moral_scenarios", "Which is wrong?", 0),
        moral("moral_disputes", "Is it fair?", 3),
    ]
    questions = list(known_answers.read_mmlu(source_files("mmlu", also={"all/test.parquet": parquet(*rows)})))
    ids = ["moral_disputes-0000", "moral_scenarios-0000", "moral_disputes-0001"]
    assert [question.id for question in questions] == ids
    assert [question.answer for question in questions] == ["y", "w", "z"]
    assert questions[0].wrong == ("w", "x", "z")
    assert questions[0].group == questions[2].group != questions[1].group


@pytest.mark.parametrize(
    "change", [{"answer": 4}, {"choices": ["only", "three", "choices"]}, {"question": ""}]
)
def test_a_bad_mmlu_row_is_counted(source_files, change):
    """Else a question without its answer would become a sample."""
    row = {**moral("moral_disputes", "Is it fair?", 2), **change}
    files = source_files("mmlu", also={"all/test.parquet": parquet(row)}, on_bad_row="skip")
    assert list(known_answers.read_mmlu(files)) == []
    assert sum(files.bad_rows.values()) == 1


GPQA_HEADER = (
    "Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2,Incorrect Answer 3,"
    "Record ID,High-level domain,Writer"
)


def test_gpqa_does_not_tell_the_answer_by_its_place(source_files):
    """Else a subject model, or a surface check, would be right by always taking the first choice."""
    lines = [f'"What is\n{n}?",right{n},a,b,c,rec{n},Physics,"x, y"' for n in range(200)]
    content = "\n".join([GPQA_HEADER, *lines]).encode("utf-8-sig")
    questions = list(known_answers.read_gpqa(source_files("gpqa", also={"gpqa_diamond.csv": content})))
    assert len(questions) == 200
    assert questions[7][:5] == ("rec7", "rec7", "Physics", "What is\n7?", "right7")
    assert set(questions[7].choices) == {"right7", "a", "b", "c"}
    places = Counter(question.choices.index(question.answer) for question in questions)
    assert set(places) == {0, 1, 2, 3}
    assert max(places.values()) < 80


def test_aime_answers_are_integers(source_files):
    """Else 033 and 33 would count as different answers, and a missing one as a question."""
    rows = [{"id": 60, "problem": "How many?", "answer": "033", "year": "2024", "url": "", "solution": "S"}]
    assert next(known_answers.read_aime(source_files("aime", also={"a.parquet": parquet(*rows)}))) == (
        "2024-60",
        "2024-60",
        "aime",
        "How many?",
        "33",
        (),
        (),
    )
    for change in ({"answer": "1000"}, {"answer": r"\frac12"}, {"answer": None}, {"year": None}):
        files = source_files("aime", also={"a.parquet": parquet({**rows[0], **change})})
        with pytest.raises(UserError, match=f"row 1: .*{next(iter(change))}"):
            list(known_answers.read_aime(files))


def test_dfir_gives_the_text_of_the_right_option(source_files):
    """Else a letter would be compared with a text."""
    row = {"question": "Which tool?", "options": {"B": "vi", "A": "dd", "C": "ls", "D": "cd"}, "answer": "A"}
    files = source_files("dfir", row, row, path="DFIR-MCQ.json")
    first, second = known_answers.read_dfir_metric(files)
    assert (first.answer, first.choices, first.wrong) == ("dd", ("dd", "vi", "ls", "cd"), ("vi", "ls", "cd"))
    assert first.id != second.id
    assert first.group == second.group
    for bad in ({"answer": "E"}, {"options": ["dd"]}, {"options": {"A": None}}, {"question": 3}):
        with pytest.raises(UserError, match=f"element 0: .*field '{next(iter(bad))}'"):
            list(known_answers.read_dfir_metric(source_files("dfir", {**row, **bad}, path="DFIR-MCQ.json")))


COLUMNS = ["Type", "Category", "Question", "Best Answer", "Best Incorrect Answer", "Correct Answers"]
COLUMNS += ["Incorrect Answers", "Source"]


def a_row(**fields):
    return {
        "Type": "Adversarial",
        "Category": "Myths",
        "Question": "Is the moon cheese?",
        "Best Answer": "No, it is rock",
        "Best Incorrect Answer": "Yes, green cheese",
        "Correct Answers": "No; No, it is rock",
        "Incorrect Answers": "Yes, old cheese; Yes, green cheese;  It is, both ",
        "Source": "https://example.org",
        **fields,
    }


def as_csv(rows, columns, bom=""):
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return (bom + out.getvalue()).encode()


def load(source_files, second, first=()):
    old = [column for column in COLUMNS if column != "Best Incorrect Answer"]
    also = {"TruthfulQA.csv": as_csv(second, COLUMNS), "TruthfulQA_v1.csv": as_csv(first, old, bom="\ufeff")}
    return list(known_answers.read_truthfulqa(source_files("truthfulqa", also=also)))


def test_the_best_wrong_answer_comes_first_and_once(source_files):
    """Else a pair would be made of a far-fetched falsehood."""
    (record,) = load(source_files, [a_row()])
    assert record.answer == "No, it is rock"
    assert record.wrong == ("Yes, green cheese", "Yes, old cheese", "It is, both")
    assert (record.topic, record.choices) == ("Myths", ())


def test_the_first_edition_adds_what_the_second_lacks(source_files):
    """Else a question would be there twice, under two ids."""
    records = load(
        source_files,
        [a_row()],
        [a_row(Question="Is the moon  cheese ?"), a_row(Question="Who is\nking now?", Category="Dates")],
    )
    assert [record.text for record in records] == ["Is the moon cheese?", "Who is\nking now?"]
    assert [record.id[:3] for record in records] == ["v2-", "v1-"]
    assert records[1].wrong == ("Yes, old cheese", "Yes, green cheese", "It is, both")
    assert len({record.group for record in records}) == 2


@pytest.mark.parametrize("column", ["Question", "Best Answer", "Best Incorrect Answer", "Category"])
def test_a_bad_row_is_named(source_files, column):
    """Else a question without an answer would be judged against nothing."""
    with pytest.raises(UserError, match=f"field '{column}' is empty"):
        load(source_files, [a_row(**{column: " "})])


@pytest.mark.sources
def test_the_published_files(mirror_files):
    """A question would be there twice, or without a falsehood to tempt with."""
    records = list(known_answers.read_truthfulqa(mirror_files("truthfulqa")))
    assert [sum(r.id.startswith(edition) for r in records) for edition in ("v2-", "v1-")] == [790, 29]
    assert all(record.wrong and record.answer not in record.wrong for record in records)
