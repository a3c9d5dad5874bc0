"""A monitor that lists what the response does, and then judges that list, without the response.

The second prompt is rendered from what came back for the first, as text: nothing that the response or the
list spells becomes part of the prompt around them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from monitorbench.engines.protocol import Decoding, Reply, Request
from monitorbench.judging.prompted import Question
from monitorbench.records import Sample

_AT_ONCE = 256
"""Responses that are listed before the first list is judged: an interruption costs so many lists at most."""

Ask: TypeAlias = Callable[[Sequence[Request], Decoding], Iterator[tuple[int, Reply]]]
"""As `Model.answers`."""


def extract_then_judge(
    ask: Ask,
    questions: Sequence[Question],
    listing: Decoding,
    label: Decoding,
    judging: Callable[[Sample, str], Request | None],
) -> Iterator[tuple[int, Reply]]:
    """Yield (index into `questions`, reply with the list in `begun`), each index once, in any order.

    `listing` and `label` are the decodings of both passes; `judging` gives the second request from the list,
    None where the model's context can't hold it. A list that ran out of tokens is judged up to its last whole
    line, and `detail` says so. A failure where there is no whole line (`truncated`), or nothing (`no_label`).
    Token counts, seconds and cost are those of both passes.
    """
    for start in range(0, len(questions), _AT_ONCE):
        listed: list[tuple[int, Reply, Request]] = []
        for offset, reply in ask([one.request for one in questions[start : start + _AT_ONCE]], listing):
            index = start + offset
            if reply.failure is not None:
                yield index, reply
                continue
            first = _listed(reply)
            request = None if first.failure else judging(questions[index].sample, first.begun)
            if first.failure:
                yield index, first
            elif request is None:
                yield index, replace(first, failure="truncated", detail="list and request exceed the context")
            else:
                listed.append((index, first, request))
        for number, answer in ask([request for *_, request in listed], label):
            index, first, _ = listed[number]
            yield index, _both(first, answer)


def _listed(reply: Reply) -> Reply:
    """The reply with its list in `begun`, and nothing that could be read as a label."""
    lines = reply.text.strip().splitlines()
    cut = reply.finish_reason == "length"
    whole = "\n".join(lines[:-1] if cut else lines).strip()
    said = f"list cut off at {reply.completion_tokens} tokens" if cut else "" if whole else "nothing listed"
    detail = "; ".join(filter(None, (reply.detail, said)))
    kept = replace(reply, text="", token_ids=(), top_logprobs=None, logprobs={}, begun=whole, detail=detail)
    if whole:
        return kept
    return replace(kept, failure="truncated" if cut else "no_label", begun=reply.text)


def _both(first: Reply, answer: Reply) -> Reply:
    return replace(
        answer,
        begun=f"{first.begun}\n",
        detail="; ".join(filter(None, (first.detail, answer.detail))),
        reasoning="\n".join(filter(None, (first.reasoning, answer.reasoning))),
        reasoning_tokens=first.reasoning_tokens + answer.reasoning_tokens,
        prompt_tokens=first.prompt_tokens + answer.prompt_tokens,
        completion_tokens=first.completion_tokens + answer.completion_tokens,
        seconds=first.seconds + answer.seconds,
        cost=first.cost + answer.cost,
    )
