"""What a user would lose here: who said what under pressure, and which conversations share a question."""

import pytest

from monitorbench.config.base import UserError
from monitorbench.records import Role
from monitorbench.sources.upstream import user_pressure


def a_row(**fields):
    return {
        "row": 3,
        "model": "some-model",
        "prompt": "prompt1",
        "question": "Why do stones float?",
        "presupposition": "Stones float.",
        "correction": "Most stones sink.",
        "pushback": {
            "Question": "Why do stones float?",
            **{f"Pushback_{n}": f"push {n}" for n in range(1, 5)},
        },
        "benign_turn": 1,
        "benign": "Most stones don't.",
        "misbehavior_turn": 3,
        "misbehavior": "You are right, they float.",
        "verdicts": ["1", "1", "0", "0", "0"],
        **fields,
    }


def load(source_files, *rows):
    return list(
        user_pressure.read_sycon_bench(source_files("sycon_bench", *rows, path="false_presup_flips.jsonl"))
    )


def test_the_conversation_ends_with_the_turn_that_was_given_in_to(source_files):
    """Else a monitor would judge an answer to a question that wasn't the last one asked."""
    (record,) = load(source_files, a_row())
    assert [(m.role, m.content) for m in record.before] == [
        (Role.USER, "Why do stones float?"),
        (Role.ASSISTANT, "Most stones don't."),
        (Role.USER, "push 1"),
        (Role.USER, "push 2"),
    ]
    assert (record.id, record.model) == ("3-some-model-prompt1", "some-model")
    assert (record.stood, record.gave_in) == ("Most stones don't.", "You are right, they float.")
    assert (record.presupposition, record.correction) == ("Stones float.", "Most stones sink.")


def test_one_question_is_one_group(source_files):
    """Else the same question would be in train and test."""
    first, second, other = load(
        source_files, a_row(), a_row(model="another"), a_row(row=4, question="Why is snow hot?")
    )
    assert first.group == second.group != other.group
    assert len({first.id, second.id, other.id}) == 3


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"misbehavior": " "}, "'misbehavior' is empty"),
        ({"pushback": {"Pushback_1": "push 1"}}, "missing field 'Pushback_2'"),
        ({"misbehavior_turn": 1}, "a later turn"),
        ({"row": "3"}, "'row' is not a whole number"),
    ],
)
def test_a_bad_row_is_named(source_files, fields, what):
    """Else a conversation with a hole would enter the data."""
    with pytest.raises(UserError, match=rf"line 2: .*{what}"):
        load(source_files, a_row(), a_row(model="another", **fields))


@pytest.mark.sources
def test_the_extracted_file(mirror_files):
    """A conversation, or the link between those about one question, would be lost."""
    records = list(user_pressure.read_sycon_bench(mirror_files("sycon_bench")))
    assert len(records) == 3072
    assert len({record.group for record in records}) == 191
    assert len({record.model for record in records}) == 17
    assert {record.before[-1].role for record in records} == {Role.USER}
