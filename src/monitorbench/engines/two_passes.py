"""A model that is asked twice: behind what it wrote first, thoughts, evidence or a list, for its answer.

The answer is asked for in a pass of its own, so that a label's score is read at the position where it is said
(decision 4), and whether the first pass reached a label doesn't matter. An engine that caches prefixes pays
for what both prompts share once, where its cache still holds it by then. A model that reasons first is let
think to the end of its reasoning (`think_first`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from monitorbench.engines.protocol import Decoding, Model, Reply, Request

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
            yield index, joined(begun, answer, counts_second_prompt=counts_second_prompt)


def joined(first: Reply, answer: Reply, *, counts_second_prompt: bool) -> Reply:
    """The answer with what the first reply has in front of it, and what both took."""
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


_AT_ONCE = 1024
"""Prompts that think before the first of them is asked for its answer; the longest is waited for alone."""
THINKS, THOUGHT = "<think>", "</think>"
"""Tags that most models write around their reasoning, where nothing names this model's."""


@dataclass(frozen=True, slots=True)
class ReasoningTokens:
    """Token ids around the answer of a model that reasons first."""

    end: int
    """Ends its reasoning."""
    answer_start: tuple[int, ...]
    """Tokens between the end of reasoning and the answer, a prompt's prefill included."""
    max_tokens: int


def think_first(
    model: Model, requests: Sequence[Request], decoding: Decoding, reasoning: ReasoningTokens
) -> Iterator[tuple[int, Reply]]:
    """Yield (index into `requests`, reply with its reasoning), each index once, in any order.

    `decoding` is that of the answer. A failure where reasoning did not end: it ran out of tokens
    (`truncated`), or the monitor ended its turn without an answer (`no_label`). Token counts and seconds are
    those of both passes.
    """
    # The model may end its turn without ending its reasoning.
    thinking = Decoding(reasoning.max_tokens, (reasoning.end, *decoding.stop_token_ids))

    def go_on(index: int, thought: Reply) -> SecondPass | Reply:
        reply = replace(thought, reasoning=thought.text, reasoning_tokens=thought.completion_tokens)
        if thought.stop_token_id != reasoning.end:
            return without_answer(reply, what="reasoning")
        ids = (*requests[index].token_ids, *thought.token_ids, reasoning.end, *reasoning.answer_start)
        n_tokens = thought.completion_tokens + 1  # the token that ends it
        return SecondPass(
            Request(token_ids=ids), replace(reply, completion_tokens=n_tokens, reasoning_tokens=n_tokens)
        )

    return ask_twice(model.answers, requests, thinking, decoding, go_on, at_once=_AT_ONCE)


def part_thinking(text: str, end: str = THOUGHT) -> tuple[str, str] | None:
    """Thoughts in an answer, and the text behind them; None where the thoughts don't end.

    The last `end` counts: what is quoted in thoughts may spell it. The chat template may have opened them.
    """
    thinking, separator, answer = text.rpartition(end)
    if not separator:
        return None if text.lstrip().startswith(THINKS) else ("", text)
    return without_tag(thinking), answer


def without_tag(thinking: str) -> str:
    """Thoughts without the tag that a model may have opened them with."""
    return thinking.strip().removeprefix(THINKS).strip()
