"""A judged conversation as plain text: one tagged block per turn, whole or with its middle left out.

The tags are ours, so a judged text that imitates one is marked with a backslash: it can neither
close the section it stands in, nor pose as another turn, as an example or as something left out.
What counts is how it looks (`lookalikes`), not which characters it is spelled with.
"""

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from monitorbench.config.base import UserError
from monitorbench.config.seen import View
from monitorbench.prompts import lookalikes
from monitorbench.records import Message, QuoteField, Role, Sample

# A line begins wherever `str.splitlines` has one, not after "\n" alone.
_BREAK = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"


class UsedMarks(NamedTuple):
    """Which of our marks a prompt uses besides the sections and turns, and so has to defend.

    Where it uses none, judged text that spells one is nothing to defend, and stays as it is.
    """

    examples: bool = False
    left_out: bool = False
    acts: bool = False


class Block(NamedTuple):
    """A piece of one message under one tag, as it was written."""

    tag: str
    text: str
    field: QuoteField
    call: int = 0
    """Which of the message's tool calls."""


_SECTIONS_AND_TURNS = UsedMarks()
ALL = View()


def transcript(
    messages: Sequence[Message],
    shown: UsedMarks = _SECTIONS_AND_TURNS,
    keep: int | None = None,
    view: View = ALL,
) -> str:
    """Render messages in order; a reasoning trace and tool calls are blocks of their own.

    Only what `view` shows is there. A request of a single user turn, and a response of a single plain
    assistant turn, need no tag.
    `keep` shortens: of all the text's characters so many stay, half of them from the beginning and
    half from the end, and a line of our own says how many were left out.
    """
    pieces = [block for message in messages for block in blocks(message, view)]
    bare = len(pieces) == 1 and pieces[0].tag in (Role.USER, Role.ASSISTANT)
    if keep is None or keep >= characters(messages, view):
        return "\n".join(_lines(pieces, shown, bare=bare))
    cut = sum(len(block.text) for block in pieces) - keep
    head, tail, same = _without_middle(pieces, (keep + 1) // 2, keep // 2)
    lines = _lines(head, shown, bare=bare)
    lines.append(f"[left out: {cut} characters]")
    # The block in which the text goes on has to be named again, unless it is the one that was cut.
    lines += _lines(tail[:1], shown, bare=bare or same) + _lines(tail[1:], shown, bare=False)
    return "\n".join(lines)


def characters(messages: Sequence[Message], view: View = ALL) -> int:
    """How many characters of the messages' own text a transcript shows."""
    return sum(len(block.text) for message in messages for block in blocks(message, view))


def seen_request(messages: Sequence[Message], view: View) -> list[Message]:
    """The messages of a request that a view looks at: without earlier turns, from its last user's on."""
    users = [index for index, message in enumerate(messages) if message.role is Role.USER]
    start = 0 if view.earlier_turns or not users else users[-1]
    return [m for index, m in enumerate(messages) if index >= start or m.role is Role.SYSTEM]


def shows_any(messages: Sequence[Message], view: View) -> bool:
    """Whether a view shows anything of the messages."""
    return any(blocks(message, view) for message in messages)


def shown(samples: Sequence[Sample], view: View) -> list[Sample]:
    """The samples of whose response a view leaves something; an empty one teaches nothing.

    Raises `UserError` where it leaves nothing of any.
    """
    found = [sample for sample in samples if shows_any(sample.response, view)]
    if samples and not found:
        raise UserError(f"prompt.view: it leaves nothing of any response of {len(samples)} samples")
    return found


def blocks(message: Message, view: View = ALL) -> list[Block]:
    """A message's text piece by piece, in the order in which a transcript shows it, where `view` shows it."""
    pieces: list[Block] = []
    if message.thinking:
        pieces.append(Block(f"{message.role}, thinking", message.thinking, QuoteField.THINKING))
    if message.content or not (message.thinking or message.tool_calls):
        pieces.append(Block(message.role, message.content, QuoteField.CONTENT))
    for number in range(len(message.tool_calls)):
        text = message.text(QuoteField.TOOL_CALL, number)
        pieces.append(Block(f"{message.role}, tool call", text, QuoteField.TOOL_CALL, number))
    return [piece for piece in pieces if is_shown(message.role, piece.field, view)]


def is_shown(role: Role, field: QuoteField, view: View) -> bool:
    """Whether a view shows a part of the messages of a role."""
    of_assistant = {
        QuoteField.THINKING: view.reasoning,
        QuoteField.CONTENT: view.text,
        QuoteField.TOOL_CALL: view.actions,
    }
    by_role = {Role.SYSTEM: view.system, Role.USER: True, Role.TOOL: view.tool_output}
    return by_role.get(role, of_assistant[field])


def _without_middle(found: Sequence[Block], head: int, tail: int) -> tuple[list[Block], list[Block], bool]:
    """The first `head` and the last `tail` characters, and whether both end in the same block."""
    last = sum(len(block.text) for block in found) - tail
    before: list[Block] = []
    after: list[Block] = []
    same = False
    offset = 0
    for block in found:
        begin, offset = offset, offset + len(block.text)
        if begin < head:
            before.append(block._replace(text=block.text[: head - begin]))
        if offset > last:
            same = same or (begin < head and not after)
            after.append(block._replace(text=block.text[max(0, last - begin) :]))
    return before, after, same


def _lines(found: Sequence[Block], shown: UsedMarks, *, bare: bool) -> list[str]:
    # Cut first, quoted then: a cut can bring text to the beginning of a line, where it could pose as a tag.
    texts = [(block.tag, _quoted(block.text, shown)) for block in found]
    return [text if bare else f"[{tag}]\n{text}" for tag, text in texts]


def _quoted(text: str, shown: UsedMarks) -> str:
    text = text.strip()
    section, turn = _imitations(shown)
    places = {match.start() for pattern in (section, turn) for match in pattern.finditer(text)}
    looks = "" if lookalikes.is_plain(text) else lookalikes.looks(text)
    if section.search(looks) or turn.search(looks):  # rarely: only then the places are worked out
        folded = lookalikes.fold(text)
        places |= {folded.character(match.start()) for match in section.finditer(folded.text)}
        places |= {folded.first(match.start()) for match in turn.finditer(folded.text)}
    cuts = [0, *sorted(places), len(text)]
    return "\\".join(text[start:end] for start, end in pairwise(cuts)) if places else text


@cache
def _imitations(shown: UsedMarks) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns of a tag that opens or closes a section, and of a line that begins like one of our marks.

    A closing tag counts whatever follows its name, an opening one with attributes or none: the type
    parameters of code (`List<Response, T>`) are no section.
    """
    names = ["request", "response", *(["examples", "example"] if shown.examples else [])]
    names += ["acts"] if shown.acts else []
    sections = "|".join(map(lookalikes.spelled, names))
    closing = rf"/\s*(?:{sections})(?!\w|[-.:]\w)"
    opening = rf"(?:{sections})(?:\s*/?\s*>|[\s/]+[\w:.-]+\s*=)"
    turns = "|".join(map(lookalikes.spelled, ("system", "user", "assistant", "tool")))
    turns += rf"|{lookalikes.spelled('left')}\W*{lookalikes.spelled('out')}" if shown.left_out else ""
    return (
        re.compile(rf"<(?=\s*(?:{closing}|{opening}))", re.IGNORECASE),
        re.compile(rf"(?:\A|(?<=[{_BREAK}]))(?=[^\S{_BREAK}]*\[\s*(?:/\s*)?(?:{turns})\b)", re.IGNORECASE),
    )
