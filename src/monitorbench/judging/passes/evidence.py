"""A monitor that writes its evidence first: let it write, then ask for the label behind what it wrote.

As behind reasoning the label is asked for in a second pass, so that its score is read at the position where
it is said (decision 4), and whether the first pass reached a label doesn't matter.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from monitorbench import strict_json
from monitorbench.engines.protocol import Decoding, Model, Reply, Request
from monitorbench.prompts.render import Renderer
from monitorbench.prompts.wording import asked_field

_AT_ONCE = 1024
"""Prompts whose evidence is written before the first of them is asked for its label."""


def evidence_first(
    model: Model,
    requests: Sequence[Request],
    evidence: Decoding,
    label: Decoding,
    renderer: Renderer,
    fits: int,
) -> Iterator[tuple[int, Reply]]:
    """Yield (index into `requests`, reply with its evidence in `begun`), each index once, in any order.

    `evidence` and `label` are the decodings of both passes; a second prompt has at most `fits` tokens. A
    failure where the evidence did not end (`truncated`) or is no JSON (`no_label`). Token counts and seconds
    are those of both passes.
    """
    for start in range(0, len(requests), _AT_ONCE):
        wrote: list[tuple[int, Reply, str, Request]] = []
        for offset, reply in model.answers(requests[start : start + _AT_ONCE], evidence):
            index = start + offset
            if reply.failure is not None:  # of an endpoint
                yield index, reply
                continue
            begun = _evidence(renderer, reply)
            ids = renderer.behind_evidence(requests[index].token_ids, begun) if begun else ()
            if not begun or len(ids) > fits:
                yield index, _without_a_label(renderer, reply)
                continue
            wrote.append((index, reply, begun + renderer.label_begun, Request(token_ids=ids)))
        for number, answer in model.answers([request for *_, request in wrote], label):
            index, first, begun, _ = wrote[number]
            yield (
                index,
                replace(
                    answer,
                    begun=begun,
                    prompt_tokens=first.prompt_tokens,
                    completion_tokens=first.completion_tokens + answer.completion_tokens,
                    seconds=first.seconds + answer.seconds,
                    cost=first.cost + answer.cost,
                ),
            )


def _evidence(renderer: Renderer, reply: Reply) -> str:
    """What was written in front of the label, prefill included; empty where that did not end."""
    text = renderer.prompt.prefill + reply.text
    found = strict_json.members_before(text, asked_field(renderer.prompt))
    if found is None or not found.values:
        return ""
    ended = found.field is not None or found.closed or reply.finish_reason != "length"
    return text[: found.end] if ended else ""


def _without_a_label(renderer: Renderer, reply: Reply) -> Reply:
    cut_short = reply.finish_reason == "length"
    n = reply.completion_tokens
    how = f"did not end in {n} tokens" if cut_short else "is no JSON object, or has a field twice"
    return replace(
        reply,
        text="",
        token_ids=(),
        failure="truncated" if cut_short else "no_label",
        detail=f"evidence {how}",
        begun=renderer.prompt.prefill + reply.text,
    )
