"""HH-RLHF's adapter: where the two dialogues part, and who said what until then."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.config.base import UserError
from monitorbench.records import Role
from monitorbench.sources.upstream import hh_rlhf


def _row(before: str, chosen: str, rejected: str) -> dict[str, str]:
    return {"chosen": f"{before}\n\nAssistant:{chosen}", "rejected": f"{before}\n\nAssistant:{rejected}"}


GOOD = _row(
    "\n\nHuman: Lend me your key.\n\nAssistant: Which?\n\nHuman: The red one.", " No.", " Here it is."
)


def test_the_answers_are_the_last_turns_and_the_request_is_the_rest(source_files):
    """A judged answer would stand in its own request, or belong to somebody else's turn."""
    (row,) = hh_rlhf.load(source_files("hh_rlhf", GOOD))
    assert [(m.role.value, m.content) for m in row.request] == [
        ("user", "Lend me your key."),
        ("assistant", "Which?"),
        ("user", "The red one."),
    ]
    assert (row.chosen.content, row.rejected.content) == ("No.", "Here it is.")
    assert row.chosen.role is row.rejected.role is Role.ASSISTANT


@pytest.mark.parametrize(
    "odd",
    [
        {"chosen": "\n\nHuman: A?\n\nAssistant: B.", "rejected": "\n\nHuman: C?\n\nAssistant: D."},
        {
            "chosen": "\n\nHuman: A?\n\nAssistant: B.\n\nHuman: C?\n\nAssistant: D.",
            "rejected": "\n\nHuman: A?\n\nAssistant: E.",
        },
        _row("\n\nHuman: A?", " ", " B."),
        _row("\n\nHuman: A?", " B.", " B. "),
        _row("\n\nHuman: A?\n\nAssistant: One moment.", " B.", " C."),
        {"chosen": "\n\nHuman: A?", "rejected": "\n\nHuman: B?"},
        GOOD,
    ],
    ids=["other request", "other length", "empty", "same", "two answers", "no answer", "repeated"],
)
def test_rows_without_two_answers_to_one_request_are_passed_over(source_files, odd):
    """A pair would compare answers to different questions, or an answer with nothing."""
    other = _row("\n\nHuman: Hello?", " Hi.", " What?")
    rows = list(hh_rlhf.load(source_files("hh_rlhf", GOOD, odd, other)))
    assert [row.chosen.content for row in rows] == ["No.", "Hi."]


def test_a_speaker_who_goes_on_is_one_message(source_files):
    """Chat templates refuse requests in which roles don't alternate."""
    before = "\n\nHuman: A?\n\nAssistant: Wait.\n\nAssistant: Yes.\n\nHuman: B?\n\nHuman:\n\nHuman: C?"
    (row,) = hh_rlhf.load(source_files("hh_rlhf", _row(before, " D.", " E.")))
    assert [m.content for m in row.request] == ["A?", "Wait.\n\nYes.", "B?\n\nC?"]


@pytest.mark.parametrize(
    ("broken", "what"),
    [
        ({"chosen": GOOD["chosen"]}, "missing field 'rejected'"),
        ({**GOOD, "rejected": 3}, "not text"),
        ({**GOOD, "rejected": "Assistant: Yes."}, "does not begin with a Human turn"),
        ({**GOOD, "rejected": f"Note.{GOOD['rejected']}"}, "does not begin with a Human turn"),
        ({**GOOD, "rejected": "\n\nAssistant: Yes."}, "does not begin with a Human turn"),
    ],
)
def test_a_broken_row_is_an_error_or_counted(source_files, broken, what):
    """A changed format would give a silently smaller corpus."""
    with pytest.raises(UserError, match=rf"line 2: .*{what}"):
        list(hh_rlhf.load(source_files("hh_rlhf", GOOD, broken)))
    skipping = source_files("hh_rlhf", GOOD, broken, on_bad_row="skip")
    assert len(list(hh_rlhf.load(skipping))) == 1
    assert skipping.bad_rows.total() == 1


said = st.text(st.characters(exclude_categories=["Cs"]), max_size=30).filter(
    lambda text: "Human:" not in text and "Assistant:" not in text
)


@given(st.lists(said, min_size=1, max_size=6))
def test_a_dialogue_written_out_is_read_back(turns):
    """Some text of a turn would be lost, or cut the turn in two."""
    names = ("Human", "Assistant")
    text = "".join(f"\n\n{names[number % 2]}: {turn}" for number, turn in enumerate(turns))
    messages = hh_rlhf.dialogue(text)
    assert [m.content for m in messages] == [turn.strip() for turn in turns]
    assert [m.role for m in messages] == [(Role.USER, Role.ASSISTANT)[n % 2] for n in range(len(turns))]


@pytest.mark.sources
def test_the_published_file(mirror_files):
    """The benchmark's biggest source would come out short, or with requests no template takes."""
    files = mirror_files("hh_rlhf")
    rows = list(hh_rlhf.load(files))
    assert len(rows) == 2303
    roles = [[m.role.value for m in row.request] for row in rows]
    assert all(each == ["user", "assistant"] * (len(each) // 2) + ["user"] for each in roles)
    with gzip.open(files.matching()[0].path) as stream:
        published = [json.loads(line) for line in stream]
    last = {
        side: {row[side].rpartition("\n\nAssistant:")[2].strip() for row in published}
        for side in published[0]
    }
    assert {row.chosen.content for row in rows} <= last["chosen"]
    assert {row.rejected.content for row in rows} <= last["rejected"]
