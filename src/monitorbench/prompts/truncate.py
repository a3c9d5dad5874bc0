"""A prompt too long for the context, shortened in the middle of what is judged.

The response gives first, down to a stated rest, then the request; the examples and the prompt's own
words stay. What is left is the beginning and the end of each, and a line says how much is not there.
"""

from collections.abc import Sequence
from typing import NamedTuple

from monitorbench.prompts.render import Renderer
from monitorbench.prompts.transcript import characters, seen_request
from monitorbench.prompts.wording import Keep
from monitorbench.records import Sample

LEAST_OF_THE_RESPONSE = 1000
"""Characters of a response that stay whatever happens: without them nothing is left to judge."""


class Shortened(NamedTuple):
    """Token ids that fit; `left_out_tokens` (> 0) is by how many they are fewer than the whole prompt's."""

    token_ids: tuple[int, ...]
    left_out_tokens: int
    detail: str


def middle_truncate(
    renderer: Renderer, sample: Sample, limit: int, shots: Sequence[Sample] = ()
) -> Shortened | None:
    """Shorten a prompt of more than `limit` tokens; None where even the least that has to stay is longer.

    Bisection over the number of characters left out, so that about as much stays as fits. Every
    candidate is rendered: that its ids fit is seen, not computed.
    """
    n_tokens = len(renderer.render(sample, shots))
    view = renderer.prompt.view
    n_request = characters(seen_request(sample.request, view), view)
    n_response = characters(sample.response, view)
    spare = max(0, n_response - LEAST_OF_THE_RESPONSE)

    def without(cut: int) -> tuple[int, ...]:
        keep = Keep(n_request - max(0, cut - spare), n_response - min(cut, spare))
        return renderer.render(sample, shots, keep)

    too_little, enough = 0, spare + n_request
    ids = without(enough)
    if len(ids) > limit:
        return None
    while enough - too_little > 1:
        cut = (too_little + enough) // 2
        candidate = without(cut)
        if len(candidate) <= limit:
            enough, ids = cut, candidate
        else:
            too_little = cut
    parts = {"response": min(enough, spare), "request": max(0, enough - spare)}
    removed = " and ".join(f"{n} characters of the {name}" for name, n in parts.items() if n)
    return Shortened(ids, n_tokens - len(ids), f"{removed} left out")
