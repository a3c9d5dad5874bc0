"""A model that is asked twice: behind what it wrote first, thoughts, evidence or a list, for its answer.

The answer is asked for in a pass of its own, so that a label's score is read at the position where it is said
(decision 4), and whether the first pass reached a label doesn't matter. An engine that caches prefixes pays
for what both prompts share once, where its cache still holds it by then.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from monitorbench.engines.protocol import Decoding, Reply, Request

Ask: TypeAlias = Callable[[Sequence[Request], Decoding], Iterator[tuple[int, Reply]]]
"""A function as `Model.answers` is."""


class SecondPass(NamedTuple):
    """The request behind a first reply, and what of that reply goes into the whole one."""

    request: Request
    first: Reply
    """The first reply; `begun`, `reasoning` and `detail` precede those of the answer."""


def ask_twice(
    ask: Ask,
    requests: Sequence[Request],
    first: Decoding,
    second: Decoding,
    go_on: Callable[[int, Reply], SecondPass | Reply],
    *,
    at_once: int,
    counts_second_prompt: bool = False,
) -> Iterator[tuple[int, Reply]]:
    """Yield (index into `requests`, reply of both passes), each index once, in any order.

    `go_on` makes the second request from a first reply, or gives the reply that it comes to without one.
    Replies that failed are yielded as they are. Completion tokens, seconds and cost are those of both passes;
    prompt tokens are the first one's unless the second prompt counts, as it is another one.

    Args:
        ask: the model.
        requests: the first requests.
        first: the decoding of the first pass.
        second: the decoding of the answer.
        go_on: see above; it is given the request's index and the first reply.
        at_once: first passes before the second ones are made: an interruption costs so many at most.
        counts_second_prompt: whether the tokens of the second prompt are counted.

    """
    for start in range(0, len(requests), at_once):
        waiting: list[tuple[int, SecondPass]] = []
        for offset, reply in ask(requests[start : start + at_once], first):
            step = reply if reply.failure is not None else go_on(start + offset, reply)
            if isinstance(step, SecondPass):
                waiting.append((start + offset, step))
            else:
                yield start + offset, step
        for number, answer in ask([step.request for _, step in waiting], second):
            index, (_, begun) = waiting[number]
            yield index, _joined(begun, answer, counts_second_prompt=counts_second_prompt)


def _joined(first: Reply, answer: Reply, *, counts_second_prompt: bool) -> Reply:
    return replace(
        answer,
        begun=first.begun,
        detail="; ".join(filter(None, (first.detail, answer.detail))),
        reasoning="\n".join(filter(None, (first.reasoning, answer.reasoning))),
        reasoning_tokens=first.reasoning_tokens + answer.reasoning_tokens,
        prompt_tokens=first.prompt_tokens + (answer.prompt_tokens if counts_second_prompt else 0),
        completion_tokens=first.completion_tokens + answer.completion_tokens,
        seconds=first.seconds + answer.seconds,
        cost=first.cost + answer.cost,
    )


def without_answer(reply: Reply, *, failure_if_ended: str = "ended without an answer", what: str) -> Reply:
    """A first reply that nothing can be asked behind: cut off (`truncated`), or ended as it should not be."""
    is_cut = reply.finish_reason == "length"
    how = f"did not end in {reply.completion_tokens} tokens" if is_cut else failure_if_ended
    return replace(
        reply,
        text="",
        token_ids=(),
        failure="truncated" if is_cut else "no_label",
        detail=f"{what} {how}",
    )
