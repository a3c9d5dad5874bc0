import html
import re

import pytest
from fake_worst import highlight, sample
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.records import Label, Message, Role, ToolCall
from monitorbench.report.samples.marked import shown_conversation
from monitorbench.report.template import templates, visible

TEXTS = st.text("ab<>&\"'/ %é日\x1b\u202e\u200f")
SPANS = st.lists(st.tuples(st.integers(-5, 60), st.integers(-5, 60)))


def shown(text: str, spans: list[tuple[int, int]]) -> list[tuple[str, bool]]:
    """The pieces of one answer with these quotes, and whether each is marked."""
    highlights = [highlight(0, "content", *span) for span in spans]
    (block,) = shown_conversation([Message(role=Role.ASSISTANT, content=text)], highlights).blocks
    return block[1]


@given(TEXTS.filter(bool), SPANS)
def test_exactly_the_quoted_characters_are_marked(text: str, spans: list[tuple[int, int]]) -> None:
    """A mark beside the quote shows evidence that the monitor did not give, or takes judged text away."""
    pieces = shown(text, spans)
    assert "".join(piece for piece, _ in pieces) == visible(text)
    marked = [is_marked for piece, is_marked in pieces for _ in re.findall("⟨.*?⟩|.", piece)]
    assert marked == [any(start <= i < end for start, end in spans) for i in range(len(text))]


@given(TEXTS, SPANS)
def test_the_page_marks_and_escapes(text: str, spans: list[tuple[int, int]]) -> None:
    """A reader who can't trust the page to show the whole judged text can't judge the monitor by it."""
    worst = templates().get_template("sections/worst.html.j2")
    macros = worst.make_module({"worst": [], "worst_missing": []})
    highlights = [highlight(0, "content", *span) for span in spans]
    page = macros.text(shown_conversation([Message(role=Role.ASSISTANT, content=text)], highlights))
    inside = page.partition("</b>")[2].partition("</pre>")[0]
    without = re.sub("</?mark>", "", inside)
    assert "<" not in without
    assert html.unescape(without).replace("\N{NO-BREAK SPACE}%", " %") == visible(text)


@given(st.lists(st.text("ab é<", max_size=30), max_size=4), SPANS, st.integers(0, 60))
def test_what_is_not_shown_is_counted(texts: list[str], spans: list[tuple[int, int]], most: int) -> None:
    """A cut that isn't announced makes a long response look short and harmless."""
    messages = [Message(role=Role.ASSISTANT, content=text, thinking=text[::-1]) for text in texts]
    found = shown_conversation(
        messages, [highlight(i % 5, "content", *span) for i, span in enumerate(spans)], most
    )
    whole = "".join(text[::-1] + text for text in texts)
    seen = "".join(piece for _, pieces in found.blocks for piece, _ in pieces)
    assert whole.startswith(seen)
    assert len(seen) == min(most, len(whole))
    assert found.n_characters == len(whole) == len(seen) + found.n_more


def test_each_field_is_marked_where_it_was_quoted() -> None:
    """A span into the trace drawn into the answer would put words into the model's mouth."""
    one = sample(1, Label.BENIGN, "the answer", thinking="the trace")
    places = [
        highlight(0, "content", 3, 6),
        highlight(0, "thinking", 4, 9),
        highlight(0, "tool_call", 0, 4),
        highlight(0, "tool_call", 0, 4, call=1),
        highlight(7, "content", 0, 4),
        highlight(0, "no such field", 0, 4),
        highlight(0, "content", 500, 600),
        highlight(0, "content", 4, 2),
    ]
    found = shown_conversation(one.response, places)
    marked = {tag: [piece for piece, is_marked in pieces if is_marked] for tag, pieces in found.blocks}
    assert marked == {
        "assistant, thinking": ["trace"],
        "assistant": ["the"],
        "assistant, tool call": ["bash"],
        "tool": [],
    }
    assert found.n_hidden_marks == 5


def test_second_tool_call_has_text_of_its_own() -> None:
    """Spans of the second call marked in the first would accuse the wrong command."""
    calls = (ToolCall(id="1", name="ls", arguments="{}"), ToolCall(id="2", name="rm", arguments="{}"))
    found = shown_conversation(
        [Message(role=Role.ASSISTANT, tool_calls=calls)], [highlight(0, "tool_call", 0, 2, call=1)]
    )
    assert [pieces for _, pieces in found.blocks] == [[("ls {}", False)], [("rm", True), (" {}", False)]]


@pytest.mark.parametrize(
    "hidden",
    [
        "\x00", "\x1b", "\r", "\x9b", "\u202e", "\u2066", "\u200f", "\U000e0041", "\ud800",
        "\u3164", "\u115f", "\u1160", "\uffa0", "\u2800", "\u034f", "\ufe00", "\ufe0f", "\U000e0100",
        "\u200b", "\u200c", "\u200d", "\u2060", "\u2064", "\ufeff", "\xad", "\u17b4", "\ufff9",
        "\u180e", "\U0001d173",
    ],
)  # fmt: skip
def test_unseen_characters_are_named(hidden: str) -> None:
    """Text turned round or hidden shows the reader other words than the monitor was given."""
    assert visible(f"a{hidden}b") == f"a⟨U+{ord(hidden):04X}⟩b"
    assert visible("tab\t line\n café שלום 日本 👩\u200d💻") == "tab\t line\n café שלום 日本 👩\u200d💻"
    joined = "می\u200cخواهم क्\u200dष"
    assert visible(joined) == joined, "scripts that are written with joiners"
