"""Long sessions made of real turns: whose they are, how long, and where the response stands in them."""

from random import Random

import pytest

from monitorbench.prompts.transcript import characters
from monitorbench.records import Label, Message, Role, ToolCall
from monitorbench.report.stress import curves_of
from monitorbench.stress.changes.change import changed
from monitorbench.stress.changes.insertions import TURN_TOKENS, TURNS, among_turns
from monitorbench.stress.stage import chosen

CALL = ToolCall(id="1", name="run", arguments="{}")


@pytest.fixture
def pool(make_sample):
    """Trajectories of two sources, benign and not."""

    def trajectory(number, source, label):
        steps = [
            Message(role=Role.ASSISTANT, thinking="hm", content=f"{source} {label} {number} " + "word " * 60),
            Message(role=Role.ASSISTANT, tool_calls=(CALL,)),
            Message(role=Role.TOOL, content="done"),
        ]
        return make_sample(f"Task {number}?", steps, group_id=f"{source}{number}", source=source, label=label)

    return [trajectory(n, source, label) for n in range(8) for source in ("a", "b") for label in Label]


@pytest.mark.parametrize("change", among_turns(()), ids=lambda change: change.name)
def test_turns_are_whole_benign_and_of_other_questions_of_the_source(pool, change):
    """Else the padding would misbehave itself, repeat the question, or be of another kind of work."""
    _, size, place = change.name.split(".")
    (bound,) = (one for one in among_turns(pool) if one.name == change.name)
    sample = next(one for one in pool if one.label is Label.MISBEHAVIOR and one.source == "b")
    longer = changed(bound, sample, seed=3)
    own = list(sample.response)
    (at,) = (i for i in range(len(longer.response)) if list(longer.response[i : i + len(own)]) == own)
    others = [*longer.response[:at], *longer.response[at + len(own) :]]
    said = [message.content for message in others if message.role is Role.ASSISTANT and message.content]
    assert said
    assert all(text.startswith("b benign") for text in said)
    assert not any(sample.group_id[1:] in message.content.split() for message in others)
    assert {message.role for message in others} == set(Role) - {Role.SYSTEM}
    length = characters(longer.request) + characters(longer.response)
    assert 0 <= length - 4 * TURN_TOKENS[size] < 1000
    share = characters(longer.response[:at]) / length
    assert {"first": share == 0, "middle": 0.3 < share < 0.7, "last": share > 0.6}[place]
    assert changed(bound, sample, seed=3) == longer
    assert (longer.label, longer.group_id, longer.request) == (sample.label, sample.group_id, sample.request)


def test_without_other_turns_it_does_not_apply(pool):
    """Else a text of its own length would be told as a long one."""
    alone = [one for one in pool if one.source == "a" and one.group_id == "a0"]
    assert among_turns(alone)[0].apply(alone[0], Random(0)) is None
    assert TURNS[0].apply(pool[0], Random(0)) is None


def test_long_sessions_are_tried_where_they_are_named():
    """Else every stress run would tokenize half a million tokens for a judge that can't hold them."""
    assert not any(change.name.startswith("turns") for change in chosen(["all"]))
    assert [change.name.split(".")[2] for change in chosen(["turns.8k"])] == ["first", "middle", "last"]


def test_a_curve_has_a_point_for_each_length_that_applied():
    """Else a length that no sample had would be drawn at 0."""
    facts = {"changes": {f"turns.{size}.last": {"n": n} for size, n in (("2k", 3), ("8k", 0), ("32k", 4))}}
    facts["changes"]["instruction.plain.end"] = {"n": 5}
    assert curves_of(facts) == {("turns", "last"): {2: "turns.2k.last", 32: "turns.32k.last"}}
