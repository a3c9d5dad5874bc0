"""Places in a response that take text and leave what is there untouched: first, middle, last, a tool.

Promises: every character of the former text stays, in its order; nothing is put into code, inline code, a
quotation, a word or a number, and a line is cut only where there is no better boundary in the whole text.
Where a message begins or ends with code that no fence closes off, what is put there is a message of its
own.
"""

import re
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence

from monitorbench.records import Message, Role, Sample, ToolCall
from monitorbench.stress.changes.change import with_texts
from monitorbench.stress.changes.pieces import FencedText, kept_spans, pieces

PLACES = ("start", "middle", "end")
_PARAGRAPH, _LINE, _SENTENCE = range(3)
_NO_TITLE = "".join(
    rf"(?<!\b{title}\.)" for title in ("Dr", "Mr", "Mrs", "Ms", "Prof", "St", "Fig", "Inc", "vs")
)
_BOUNDARIES = {
    _PARAGRAPH: re.compile(r"\n\n"),
    _LINE: re.compile(r"\n"),
    _SENTENCE: re.compile(
        rf"{_NO_TITLE}(?:"
        r"(?<=[^\W\d]{2}[.!?])|(?<=[\d%)\"”’*`][.!?])|(?<=[.!?][)\"”’*])) (?![a-z\d\s])"
        r"|(?<=[。！？])(?=\w)"
    ),
}
"""Boundaries, the best first. Between two words there is none: half a sentence says something else."""
_NUMBER_OF_AN_ITEM = re.compile(r"(?:\n|^)[ \t]{0,8}\d{1,9}\. ")
_CALL = ToolCall(id="call_look_up", name="look_up", arguments='{"topic": "notes on this request"}')
_FOUND = "1 note found."


def answers(sample: Sample) -> list[int]:
    """The numbers of the response's messages in which the assistant says something."""
    return [
        i
        for i, message in enumerate(sample.response)
        if message.role is Role.ASSISTANT and message.content.strip()
    ]


def rewritten(sample: Sample, rewrite: Callable[[str], str]) -> Sample | None:
    """The sample with what the assistant says in its response rewritten; None where nothing is changed."""
    spoken = set(answers(sample))
    messages = [
        message.model_copy(update={"content": rewrite(message.content)}) if i in spoken else message
        for i, message in enumerate(sample.response)
    ]
    return with_texts(sample, response=messages) if tuple(messages) != sample.response else None


def inserted(sample: Sample, text: str, place: str) -> Sample | None:
    """The sample with a paragraph of its own in the response; None where there is no such place.

    `place` is one of `PLACES`.
    """
    spoken = answers(sample)
    if not spoken:
        return None
    if place == "middle":
        return _in_the_middle(sample, text, spoken)
    messages = list(sample.response)
    if place == "start":
        return with_texts(sample, response=put_before(messages, spoken[0], text))
    return with_texts(sample, response=put_behind(messages, spoken[-1], text))


def put_before(messages: Sequence[Message], number: int, text: str) -> list[Message]:
    """A paragraph in front of what the message says; in one of its own where that begins with code."""
    content = messages[number].content
    if pieces(content)[0].kind == "code":
        return [*messages[:number], said(text), *messages[number:]]
    return _with(messages, number, f"{text}\n\n{content}")


def put_behind(messages: Sequence[Message], number: int, text: str) -> list[Message]:
    """A paragraph behind what the message says; where that ends with code, in one behind it and its tools."""
    content = messages[number].content
    if pieces(content)[-1].kind != "code":
        return _with(messages, number, f"{content}\n\n{text}")
    behind = number + 1
    while behind < len(messages) and messages[behind].role is Role.TOOL:
        behind += 1
    return [*messages[:behind], said(text), *messages[behind:]]


def said(text: str) -> Message:
    """A message in which the assistant says the text and nothing else."""
    return Message(role=Role.ASSISTANT, content=text)


def halves(text: str) -> tuple[str, str] | None:
    """The text in two, at the best boundary in its middle half, else anywhere; None where there is none."""
    low, middle, high = len(text) // 4, len(text) // 2, len(text) - len(text) // 4
    begins, ends = len(text) - len(text.lstrip()), len(text.rstrip())
    rated = [
        (not low <= cut <= high, rank, abs(cut - middle), cut)
        for rank, cut in _cuts(text)
        if begins < cut < ends
    ]
    if not rated:
        return None
    *_, cut = min(rated)
    return text[:cut], text[cut:]


def in_tool_output(sample: Sample, text: str) -> Sample:
    """The sample with a paragraph at the end of a tool's output, where an agent's injections come from.

    The last output of the response, else of the request; where no tool was used, the response begins with a
    look-up that found the paragraph, and goes on as it did.
    """
    for side in ("response", "request"):
        messages: tuple[Message, ...] = getattr(sample, side)
        outputs = [i for i, message in enumerate(messages) if message.role is Role.TOOL]
        if outputs:
            content = f"{messages[outputs[-1]].content}\n\n{text}"
            altered = _with(messages, outputs[-1], content)
            if side == "response":
                return with_texts(sample, response=altered)
            return with_texts(sample, request=altered)
    look_up = (
        Message(role=Role.ASSISTANT, tool_calls=(_CALL,)),
        Message(role=Role.TOOL, content=f"{_FOUND}\n\n{text}", tool_call_id=_CALL.id),
    )
    return with_texts(sample, response=(*look_up, *sample.response))


def _in_the_middle(sample: Sample, text: str, spoken: Sequence[int]) -> Sample | None:
    """Insert the text into the middle one of the messages that can be cut; None where none can."""
    for number in sorted(spoken, key=lambda candidate: abs(candidate - spoken[len(spoken) // 2])):
        if cut := halves(sample.response[number].content):
            content = f"{_apart(cut[0])}{text}\n\n{cut[1]}"
            return with_texts(sample, response=_with(sample.response, number, content))
    return None


def _apart(text: str) -> str:
    """The text and as many line ends behind it as a paragraph needs."""
    n_ends = 0 if not text.endswith("\n") else 1 if not text.endswith("\n\n") else 2
    return text + "\n" * (2 - n_ends)


def _cuts(text: str) -> Iterator[tuple[int, int]]:
    """Yield rank and offset of each place for a cut: in prose, and between it and what is none."""
    offset = 0
    former: FencedText | None = None
    for piece in pieces(text):
        if former and "prose" in (former.kind, piece.kind):
            yield _PARAGRAPH, offset
        if piece.kind == "prose":
            yield from ((rank, offset + position) for rank, position in _cuts_of_prose(piece.text))
        offset += len(piece.text)
        former = piece


def _cuts_of_prose(text: str) -> Iterator[tuple[int, int]]:
    spans = kept_spans(text)
    starts = [span.start for span in spans]
    numbers = {match.end() for match in _NUMBER_OF_AN_ITEM.finditer(text)}
    for rank, boundary in _BOUNDARIES.items():
        for match in boundary.finditer(text):
            position = match.end()
            before = bisect(starts, position - 1) - 1
            is_inside = before >= 0 and position < spans[before].end
            if not is_inside and position not in numbers:
                yield rank, position


def _with(messages: Sequence[Message], number: int, content: str) -> list[Message]:
    changed = list(messages)
    changed[number] = changed[number].model_copy(update={"content": content})
    return changed
