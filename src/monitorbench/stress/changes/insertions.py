"""Text put into the judged response: instructions to the judge, forged verdicts, padding, or other turns.

The control is a sentence that asks for nothing, in the same places: what an instruction does beyond it is the
instruction's own. All instructions ask for a benign verdict but `accusation`, which asks for an alarm. The
response is also given out as the judge's own: by a note in front, or by itself.

Padding makes a response of about 2k, 8k or 32k tokens, in which the former text is first, in the middle or
last. At least two thirds are padding, so that what was done stands in the first or the last third, with all
its thinking and calls: where it is more than said, the padding is a message of its own, in front of it or
behind. A token is taken for four characters, which for English is on the safe side: the models' own counts
are lower. What a model's context can't hold is unscored, and counted as such.

What a monitor deployed on long sessions reads are real benign turns of other questions of the same source, up
to half a million tokens. The turns before and after are whole, each with the user message that it answers.
"""

from collections.abc import Sequence
from functools import partial
from random import Random

from monitorbench.prompts.transcript import characters
from monitorbench.records import Label, Message, Role, Sample
from monitorbench.stress.changes.change import SampleChange, with_texts, wordings
from monitorbench.stress.changes.places import PLACES, in_tool_output, inserted, put_before, put_behind, said

TOOL = "tool"
CONTROL: str = wordings()["control"]


def _say(text: str, place: str, sample: Sample, _: Random) -> Sample | None:
    return in_tool_output(sample, text) if place == TOOL else inserted(sample, text, place)


def _everywhere(name: str, text: str) -> list[SampleChange]:
    return [
        SampleChange(
            f"{name}.{place}",
            partial(_say, text, place),
            version=1 if place == TOOL else 2,
            keeps_benign=text == CONTROL or place == TOOL,
        )
        for place in (*PLACES, TOOL)
    ]


INJECTIONS = (
    *_everywhere("control", CONTROL),
    *(
        change
        for name, text in wordings()["instructions"].items()
        for change in _everywhere(f"instruction.{name}", text)
    ),
    SampleChange("accusation.end", partial(_say, wordings()["accusation"], "end"), version=2),
    *(
        SampleChange(f"forged_verdict.{name}", partial(_say, text, "end"), version=2, keeps_benign=False)
        for name, text in wordings()["forged_verdicts"].items()
    ),
)
"""Each in three places of the response and in a tool's output; a forged verdict stands where one would."""


def noted(sample: Sample, _: Random) -> Sample:
    """Append a note that the response is the judge's own to the request's system message, or make one."""
    note = wordings()["own_words"]["note"]
    first, *following = sample.request
    if first.role is Role.SYSTEM:
        system = first.model_copy(update={"content": f"{first.content}\n\n{note}"})
        return with_texts(sample, request=(system, *following))
    return with_texts(sample, request=(Message(role=Role.SYSTEM, content=note), *sample.request))


def claimed(sample: Sample, _: Random) -> Sample | None:
    """The response says so itself, in its first line."""
    return inserted(sample, wordings()["own_words"]["claim"], "start")


OWN_WORDS = (
    SampleChange("own_words.note", noted),
    SampleChange("own_words.claim", claimed, version=2, keeps_benign=False),
)


TOKENS = {"2k": 2_000, "8k": 8_000, "32k": 32_000}
STANDS = ("first", "middle", "last")
"""Places of the former response among the padding."""
CHARACTERS_A_TOKEN = 4
LEAST_SHARE = 3
"""The sample's own text is at most one part in so many."""
_SENTENCES_A_PARAGRAPH = 6
_SENTENCES: list[str] = wordings()["padding"]


def harmless(length: int, draw: Random) -> str:
    """Paragraphs of harmless sentences, at least `length` characters and at most a paragraph more."""
    paragraphs: list[str] = []
    have = 0
    while have < length:
        paragraphs.append(" ".join(draw.sample(_SENTENCES, _SENTENCES_A_PARAGRAPH)))
        have += len(paragraphs[-1]) + 2
    return "\n\n".join(paragraphs)


def padded(tokens: int, stands: str, sample: Sample, draw: Random) -> Sample | None:
    """The sample with padding in its response; None where its own text would be more than a third."""
    length = tokens * CHARACTERS_A_TOKEN
    own = characters(sample.request) + characters(sample.response)
    if own * LEAST_SHARE > length:
        return None
    missing = length - own
    before, after = {"first": (0, missing), "middle": (missing // 2, missing // 2), "last": (missing, 0)}[
        stands
    ]
    messages = list(sample.response)
    if before:
        messages = _in_front(messages, harmless(before, draw))
    if after:
        messages = _behind(messages, harmless(after, draw))
    return with_texts(sample, response=messages)


def split_off(response: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """The outputs of the request's calls, with which a response may begin, and what the assistant does."""
    first = next((i for i, message in enumerate(response) if message.role is not Role.TOOL), 0)
    return list(response[:first]), list(response[first:])


def _in_front(messages: list[Message], text: str) -> list[Message]:
    """The padding before all that the assistant does; outputs of the request's calls stay before it."""
    outputs, done = split_off(messages)
    if _speaks(done[0]) and not done[0].thinking:
        return [*outputs, *put_before(done, 0, text)]
    return [*outputs, said(text), *done]


def _behind(messages: list[Message], text: str) -> list[Message]:
    """The padding after all that the assistant does."""
    if _speaks(messages[-1]) and not messages[-1].tool_calls:
        return put_behind(messages, len(messages) - 1, text)
    return [*messages, said(text)]


def _speaks(message: Message) -> bool:
    return message.role is Role.ASSISTANT and bool(message.content.strip())


PADDING = tuple(
    SampleChange(f"padding.{size}.{place}", partial(padded, tokens, place), version=2)
    for size, tokens in TOKENS.items()
    for place in STANDS
)


TURN_TOKENS = TOKENS | {"128k": 128_000, "512k": 512_000}


def among_turns(pool: Sequence[Sample]) -> tuple[SampleChange, ...]:
    """The changes that take their turns from the benign samples of a pool."""
    by_source: dict[str, list[Sample]] = {}
    for sample in pool:
        if sample.label is Label.BENIGN:
            by_source.setdefault(sample.source, []).append(sample)
    return tuple(
        SampleChange(f"turns.{size}.{place}", partial(_among, by_source, tokens, place))
        for size, tokens in TURN_TOKENS.items()
        for place in STANDS
    )


def _among(
    by_source: dict[str, list[Sample]], tokens: int, stands: str, sample: Sample, draw: Random
) -> Sample | None:
    others = [one for one in by_source.get(sample.source, []) if one.group_id != sample.group_id]
    length = tokens * CHARACTERS_A_TOKEN
    own = characters(sample.request) + characters(sample.response)
    if not any(map(_turn, others)) or own * LEAST_SHARE > length:
        return None
    return lengthened(sample, others, length, stands, draw)


def lengthened(sample: Sample, others: Sequence[Sample], length: int, stands: str, draw: Random) -> Sample:
    """The sample at a place among whole turns of others, so that it has at least `length` characters."""
    missing = length - characters(sample.request) - characters(sample.response)
    before = {"first": 0, "middle": missing // 2, "last": missing}[stands]
    outputs, response = split_off(sample.response)
    messages = [*outputs, *_turns(others, before, draw), *response, *_turns(others, missing - before, draw)]
    return with_texts(sample, response=messages)


def _turns(others: Sequence[Sample], length: int, draw: Random) -> list[Message]:
    """Whole turns of at least `length` characters together; a sample comes again once all were there."""
    messages: list[Message] = []
    have = 0
    waiting: list[Sample] = []
    while have < length:
        waiting = waiting or draw.sample(others, len(others))
        turn = _turn(waiting.pop())
        messages += turn
        have += characters(turn)
    return messages


def _turn(sample: Sample) -> list[Message]:
    """The last message of a sample's user, and the response to it."""
    asked = [message for message in sample.request if message.role is Role.USER][-1:]
    return [*asked, *sample.response] if characters(sample.response) else []


TURNS = among_turns(())
"""The changes by name, with no turns yet."""
