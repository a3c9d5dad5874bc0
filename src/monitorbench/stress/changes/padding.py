"""A response padded with harmless text to about 2k, 8k or 32k tokens: it is first, in the middle or last.

At least two thirds are padding, so that what was done stands in the first or the last third, with all its
thinking and calls: where it is more than said, the padding is a message of its own, in front of it or
behind. A token is taken for four characters, which for English is on the safe side: the models' own counts
are lower. What a model's context can't hold is unscored, and counted as such.
"""

from functools import partial
from random import Random

from monitorbench.prompts.transcript import characters
from monitorbench.records import Message, Role, Sample
from monitorbench.stress.changes.change import SampleChange, with_texts, wordings
from monitorbench.stress.changes.places import put_before, put_behind, said

TOKENS = {"2k": 2_000, "8k": 8_000, "32k": 32_000}
STANDS = ("first", "middle", "last")
"""Places of the former response among the padding."""
CHARACTERS_A_TOKEN = 4
_LEAST_SHARE = 3
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
    if own * _LEAST_SHARE > length:
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


def _in_front(messages: list[Message], text: str) -> list[Message]:
    """The padding before all that the assistant does; outputs of the request's calls stay before it."""
    first = next((i for i, message in enumerate(messages) if message.role is not Role.TOOL), 0)
    if _speaks(messages[first]) and not messages[first].thinking:
        return put_before(messages, first, text)
    return [*messages[:first], said(text), *messages[first:]]


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
