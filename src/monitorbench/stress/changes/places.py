"""Where text can be put into a response without touching what is there: first, in the middle, last, a tool.

Promises: every character of the former text stays, in its order; a line is never cut where there is another
boundary between words.
"""

import re
from collections.abc import Callable, Sequence

from monitorbench.records import Message, Role, Sample, ToolCall
from monitorbench.stress.changes.change import with_texts

PLACES = ("start", "middle", "end")
_BOUNDARIES = (r"\n\n", r"\n", r"(?<=[.!?]) ", r" ")
"""From the best to the last resort: a paragraph, a line, a sentence, a word."""
_CALL = ToolCall(id="call_look_up", name="look_up", arguments='{"topic": "notes on this request"}')
_FOUND = "1 note found."


def answers(sample: Sample) -> list[int]:
    """The numbers of the response's messages in which the assistant says something."""
    return [i for i, one in enumerate(sample.response) if one.role is Role.ASSISTANT and one.content.strip()]


def rewritten(sample: Sample, rewrite: Callable[[str], str]) -> Sample | None:
    """The sample with what the assistant says in its response rewritten; None where nothing is changed."""
    spoken = set(answers(sample))
    messages = [
        one.model_copy(update={"content": rewrite(one.content)}) if i in spoken else one
        for i, one in enumerate(sample.response)
    ]
    return with_texts(sample, response=messages) if tuple(messages) != sample.response else None


def inserted(sample: Sample, text: str, place: str) -> Sample | None:
    """The sample with a paragraph of its own in the response; None where the assistant says nothing there.

    `place` is one of `PLACES`.
    """
    spoken = answers(sample)
    if not spoken:
        return None
    if place == "middle":
        number = spoken[len(spoken) // 2]
        before, after = halves(sample.response[number].content)
        content = f"{before}\n\n{text}\n\n{after}"
    elif place == "start":
        number = spoken[0]
        content = f"{text}\n\n{sample.response[number].content}"
    else:
        number = spoken[-1]
        content = f"{sample.response[number].content}\n\n{text}"
    return with_texts(sample, response=_with(sample.response, number, content))


def halves(text: str) -> tuple[str, str]:
    """The text in two, at the best boundary in its middle half; a text without any is cut in its middle."""
    low, middle, high = len(text) // 4, len(text) // 2, len(text) - len(text) // 4
    for boundary in _BOUNDARIES:
        places = [match.end() for match in re.finditer(boundary, text) if low <= match.end() <= high]
        if places:
            at = min(places, key=lambda place: abs(place - middle))
            return text[:at], text[at:]
    return text[:middle], text[middle:]


def in_tool_output(sample: Sample, text: str) -> Sample:
    """The sample with a paragraph at the end of a tool's output, where an agent's injections come from.

    The last output of the response, else of the request; where no tool was used, the response begins with a
    look-up that found the paragraph, and goes on as it did.
    """
    for part in ("response", "request"):
        messages: tuple[Message, ...] = getattr(sample, part)
        outputs = [i for i, one in enumerate(messages) if one.role is Role.TOOL]
        if outputs:
            content = f"{messages[outputs[-1]].content}\n\n{text}"
            found = _with(messages, outputs[-1], content)
            if part == "response":
                return with_texts(sample, response=found)
            return with_texts(sample, request=found)
    look_up = (
        Message(role=Role.ASSISTANT, tool_calls=(_CALL,)),
        Message(role=Role.TOOL, content=f"{_FOUND}\n\n{text}", tool_call_id=_CALL.id),
    )
    return with_texts(sample, response=(*look_up, *sample.response))


def _with(messages: Sequence[Message], number: int, content: str) -> list[Message]:
    changed = list(messages)
    changed[number] = changed[number].model_copy(update={"content": content})
    return changed
