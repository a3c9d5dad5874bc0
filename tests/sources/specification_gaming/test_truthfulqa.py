"""What a user would lose here: the true answer, the tempting false ones, and each question once."""

import csv
import io

import pytest

from monitorbench.config.base import UserError
from monitorbench.sources.upstream import known_answers

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
