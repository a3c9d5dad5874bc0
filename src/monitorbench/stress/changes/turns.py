"""A response among real benign turns of other questions of the same source, up to half a million tokens.

What a monitor deployed on long sessions reads: the turns before and after are whole, each with the user
message that it answers, and the response itself is as it was. It stands `first`, in the `middle` or `last`.
Its own text is at most a third. Lengths are in tokens of four characters, as for padding.
"""

from collections.abc import Sequence
from functools import partial
from random import Random

from monitorbench.prompts.transcript import characters
from monitorbench.records import Label, Message, Role, Sample
from monitorbench.stress.changes.change import SampleChange, with_texts
from monitorbench.stress.changes.insertions import CHARACTERS_A_TOKEN, LEAST_SHARE, STANDS, TOKENS, split_off

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
