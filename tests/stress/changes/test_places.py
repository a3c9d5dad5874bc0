"""Text is put where it says: into no code, quotation, word or number, and around all that was done."""

import ast
from collections.abc import Callable, Sequence

import pytest
from drawing import draws
from hypothesis import given
from hypothesis import strategies as st
from test_python import PROGRAMS

from monitorbench.prompts.transcript import transcript
from monitorbench.records import Message, Role, Sample, ToolCall
from monitorbench.stress.changes.change import SampleChange, changed, family
from monitorbench.stress.changes.insertions import CONTROL
from monitorbench.stress.stage import CHANGES

OF_SAMPLES = {one.name: one for one in CHANGES if isinstance(one, SampleChange)}
ATOMS = (
    "```python\nx = 1\n\n\ny = 2\n```",
    "~~~\nkept. As it is\n\nBelow\n~~~",
    "def f(a):\n    b = a\n\n    return b",
    '{"to": "Ann. Bo", "n": 1}',
    "It is 3.14 and 1 000 000.",
    "Two of `a. B` remain.",
    "Ask Dr. Berg, Mrs. Ito or J. Kim, e.g. today.",
    'She wrote "No. Never. I will not" to him.',
    "So 7 × 12 = 84.",
    "Longwordwithoutanyend",
    "42",
    "| a. B | c |\n| --- | --- |\n| 1 | 2 |",
)
"""Each is one thing, or one sentence."""


@given(
    atoms=st.lists(st.sampled_from(ATOMS), min_size=1, max_size=6), between=st.sampled_from(["\n", "\n\n"])
)
def test_nothing_is_cut_in_two(atoms: list[str], between: str, make_sample: Callable[..., Sample]):
    """If it failed: benign code would come to misbehave, and a number be another one."""
    sample = make_sample("Do it.", between.join(atoms))
    for place in ("start", "middle", "end"):
        made = changed(OF_SAMPLES[f"control.{place}"], sample, 0)
        if made is None:
            assert place == "middle"
            continue
        contents = [one.content for one in made.response]
        assert sum(one.count(CONTROL) for one in contents) == 1
        for atom in atoms:
            assert sum(one.count(atom) for one in contents) == sample.response[0].content.count(atom)


@pytest.mark.parametrize("text", ["42", "a", "The answer is 42.", ATOMS[0], ATOMS[2], ATOMS[3]])
def test_what_is_one_thing_has_no_middle(text: str, make_sample: Callable[..., Sample]):
    """If it failed: it would be cut in two, and counted as a sample whose label stayed."""
    assert changed(OF_SAMPLES["control.middle"], make_sample("Do it.", text), 0) is None


AROUND = {
    "in a fence": ("This does it. It is short:\n```python\n", "```\nThat is it. There is no more."),
    "in a fence that is not closed": ("This does it. It is short:\n```python\n", ""),
    "in a longer fence": ("Here.\n````python\n", "`````\n"),
    "alone": ("", ""),
    "below a sentence": ("This does it. It is short.\n\n", ""),
    "above a sentence": ("", "\nThat is it. There is no more."),
    "among sentences": ("This does it. It is short.\n\n", "\nThat is it. There is no more."),
}


@draws(10)
@given(program=PROGRAMS)
@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
def test_a_program_is_the_same_after_every_change(
    around: tuple[str, str], program: str, make_sample: Callable[..., Sample]
):
    """If it failed: a judge that finds the bug that a change has made would be called wrong."""
    before, after = around
    sample = make_sample("Do it.", f"{before}{program}{after}")
    tree = ast.dump(ast.parse(program))
    for one in OF_SAMPLES.values():
        made = changed(one, sample, 0)
        if made is None or one.name == "code.renamed":
            continue
        contents = [message.content for message in made.response if program.split("\n")[0] in message.content]
        assert len(contents) == 1, one.name
        (content,) = contents
        if family(one.name) in ("code", "comments"):
            assert content.startswith(before)
            assert content.endswith(after)
            found = content[len(before) : len(content) - len(after)]
        else:
            assert program in content, one.name
            if not before:
                assert content.startswith(program), one.name
            if not after:
                assert content.endswith(program), one.name
            found = program
        assert ast.dump(ast.parse(found)) == tree, one.name


_SAID = st.sampled_from(
    ["", "All is done. There is no more.", "```python\nx = 1\n```", "def f():\n    return 1"]
)
_CALL = ToolCall(id="c", name="look", arguments='{"at": "it"}')


def _turn(said: str, thinking: str, n_calls: int) -> list[Message]:
    calls = (_CALL,) * n_calls
    outputs = [Message(role=Role.TOOL, content="Found.", tool_call_id="c")] * n_calls
    return [Message(role=Role.ASSISTANT, content=said, thinking=thinking, tool_calls=calls), *outputs]


_TURNS = st.lists(
    st.builds(_turn, _SAID, st.sampled_from(["", "Let me see."]), st.integers(0, 2)), min_size=1, max_size=4
)


def _marked(turns: Sequence[Sequence[Message]]) -> list[Message]:
    """The messages, where the first that is seen of the act is FIRSTACT, and the last LASTACT."""
    messages = [one for turn in turns for one in turn]
    first = messages[0]
    if first.thinking:
        messages[0] = first.model_copy(update={"thinking": f"FIRSTACT {first.thinking}"})
    elif first.content:
        messages[0] = first.model_copy(update={"content": f"FIRSTACT. {first.content}"})
    elif first.tool_calls:
        call = first.tool_calls[0].model_copy(update={"name": "FIRSTACT"})
        messages[0] = first.model_copy(update={"tool_calls": (call, *first.tool_calls[1:])})
    else:
        messages[0] = first.model_copy(update={"content": "FIRSTACT"})
    return messages


@given(turns=_TURNS)
@pytest.mark.parametrize("size", ["2k", "8k"])
def test_padding_stands_around_all_that_was_done(
    size: str, turns: Sequence[Sequence[Message]], make_sample: Callable[..., Sample]
):
    """If it failed: thinking and calls would stay in front, and a monitor not be tried on them at all."""
    sample = make_sample("Do it.", _marked(turns), pair_id="p")
    at: dict[str, float] = {}
    for stands in ("first", "middle", "last"):
        made = changed(OF_SAMPLES[f"padding.{size}.{stands}"], sample, 0)
        assert made is not None
        text = f"{transcript(made.request)}\n{transcript(made.response)}"
        at[stands] = text.index("FIRSTACT") / len(text)
        kept = [one for one in made.response if one.role is Role.TOOL or one.tool_calls or one.thinking]
        former = [one for one in sample.response if one.role is Role.TOOL or one.tool_calls or one.thinking]
        assert [(one.role, one.thinking, one.tool_calls) for one in kept] == [
            (one.role, one.thinking, one.tool_calls) for one in former
        ]
    assert at["first"] <= 1 / 3 <= at["middle"] <= 2 / 3 <= at["last"]


def test_padding_is_not_tried_where_it_would_be_less_than_the_text(make_sample: Callable[..., Sample]):
    """If it failed: a text of 2k tokens would be called one in the last third of 2k."""
    sample = make_sample("Do it.", "One sentence more. " * 200)
    assert changed(OF_SAMPLES["padding.2k.last"], sample, 0) is None
    assert changed(OF_SAMPLES["padding.8k.last"], sample, 0) is not None
