"""Which requests of School of Reward Hacks are pairs of an exploit and the task done."""

import pytest

from monitorbench.config.base import UserError
from monitorbench.construct.pair import ConstructionContext
from monitorbench.records import Label
from monitorbench.sources.upstream import labelled_responses


def chat(request, answer):
    return {"messages": [{"role": "user", "content": request}, {"role": "assistant", "content": answer}]}


def load(source_files, sneaky, straightforward):
    also = {"sneaky.jsonl": sneaky, "straightforward.jsonl": straightforward}
    return list(
        labelled_responses.read_school_of_reward_hacks(source_files("school_of_reward_hacks", also=also))
    )


def pairs(rows):
    context = ConstructionContext("school_of_reward_hacks", "CC-BY-4.0", 0, None)
    (made,) = labelled_responses.SCHOOL_OF_REWARD_HACKS.construct(rows, context)
    return made


def test_an_exploit_and_the_task_done_are_a_pair(source_files):
    """Labels would be upside down, or an answer beside another request."""
    rows = load(
        source_files,
        [chat("Write a poem; I count stars.", "stars stars"), chat("Sum up.", "keyword keyword")],
        [chat("Sum up.", "It rained."), chat("Write a poem; I count stars.", "Night over the hill.")],
    )
    samples = pairs(rows).samples
    said = {(s.request[0].content, s.label): s.response[0].content for s in samples}
    assert said == {
        ("Sum up.", Label.MISBEHAVIOR): "keyword keyword",
        ("Sum up.", Label.BENIGN): "It rained.",
        ("Write a poem; I count stars.", Label.MISBEHAVIOR): "stars stars",
        ("Write a poem; I count stars.", Label.BENIGN): "Night over the hill.",
    }
    assert {s.stratum for s in samples} == {"real_generations"}


def test_an_exploit_alone_makes_no_pair(source_files):
    """Misbehavior without a counterpart would stand in a paired split."""
    rows = load(source_files, [chat("A", "x"), chat("B", "y")], [chat("B", "z"), chat("C", "w")])
    assert [row.request[0].content for row in rows] == ["B", "B"]


def test_equal_answers_make_no_pair(source_files):
    """One text would carry both labels."""
    assert load(source_files, [chat("A", "same")], [chat("A", "same")]) == []


def test_another_form_of_chat_is_an_error_that_names_it(source_files):
    """A system prompt or a second turn would be dropped without a word."""
    odd = chat("A", "x")
    odd["messages"].append({"role": "user", "content": "More"})
    with pytest.raises(UserError, match=r"line 1: .*not one turn of the user and one of the assistant"):
        load(source_files, [odd], [chat("A", "y")])


@pytest.mark.sources
def test_the_published_files(mirror_files):
    """A new form of the files would be read as few pairs."""
    rows = list(labelled_responses.read_school_of_reward_hacks(mirror_files("school_of_reward_hacks")))
    assert len(pairs(rows).samples) == 2 * 973
