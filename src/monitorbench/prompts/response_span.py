"""Which token ids of a rendered prompt are the judged response's."""

from collections.abc import Sequence
from itertools import takewhile

from monitorbench.prompts.render import Renderer
from monitorbench.records import Message, Role, Sample

_OTHERS = ("Q", "\u2e2e")
"""Responses of which none begins or ends, byte by byte, like both."""


def response_span(renderer: Renderer, sample: Sample, ids: Sequence[int]) -> tuple[int, int]:
    """The half-open range of `ids`, which `renderer.render(sample)` gave, that the response decides.

    What the prompt of another response to the same request shares with it at both ends is not the response's,
    wherever the prompt puts it; a token that spells both the response's edge and what touches it counts. At
    least one token. Not for prompts that were shortened or hold examples.
    """
    start, behind = len(ids) - 1, len(ids)
    for text in _OTHERS:
        response = (Message(role=Role.ASSISTANT, content=text),)
        variant = renderer.render(sample.model_copy(update={"response": response}))
        start = min(start, _n_shared(ids, variant))
        behind = min(behind, _n_shared(ids[::-1], variant[::-1]))
    end = max(len(ids) - behind, start + 1)
    return start, end


def _n_shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many ids both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
