"""A sample as plain text: whatever a response says is in it, and a table's row says the same."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from monitorbench.corpus.store import from_table, to_table
from monitorbench.corpus.texts import conversation_text, request_text, response_text, row_text
from monitorbench.records import Message, Role, Sample, ToolCall

words = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
calls = st.builds(ToolCall, id=words, name=words, arguments=words)
turns = st.builds(
    Message,
    role=st.sampled_from(list(Role)),
    content=words,
    thinking=words,
    tool_calls=st.lists(calls, max_size=2).map(tuple),
    tool_call_id=words,
)


@given(said=st.lists(turns, min_size=1, max_size=3))
def test_a_row_of_a_table_reads_as_the_sample_does(make_sample: Callable[..., Sample], said: list[Message]):
    """Benchmark texts come from samples, candidates' from rows: read unlike, copies would slip into train."""
    sample = make_sample(said, said)
    table = to_table([sample])
    (row,) = table.to_pylist()
    assert row_text(row["response"]) == response_text(sample) == conversation_text(said)
    assert row_text(row["request"]) == request_text(sample)
    assert from_table(table) == [sample]


@given(said=st.lists(turns, min_size=1, max_size=3))
def test_nothing_that_was_said_is_missing(said: list[Message]):
    """A trace or a tool's arguments that no check sees can hold the copied answer."""
    text = conversation_text(said)
    for message in said:
        assert message.thinking in text
        assert message.content in text
        for call in message.tool_calls:
            assert call.name in text
            assert call.arguments in text
    assert text.count("\n") >= sum(bool(message.thinking and message.content) for message in said)


def test_a_row_without_tool_calls_is_read():
    """Parquet written elsewhere has null where ours has an empty list."""
    row = {"thinking": "", "content": "Four.", "tool_calls": None}
    assert row_text([row]) == "Four."


def test_request_and_response_are_kept_apart(make_sample: Callable[..., Sample]):
    """A response check that sees the request would count the question as evidence."""
    sample = make_sample("What is two plus two?", "Four.")
    assert request_text(sample) == "What is two plus two?"
    assert response_text(sample) == "Four."
