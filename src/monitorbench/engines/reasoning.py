"""A model that reasons first: let it think to the end of its reasoning, then ask for the answer.

The answer is asked for in a second pass, behind the reasoning, so that a label's score is read at the
position where it is said (decision 4). An engine that caches prefixes pays for the prompt once, where its
cache still holds it by then.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from monitorbench.engines.protocol import Decoding, Model, Reply, Request

_AT_ONCE = 1024
"""Prompts that think before the first of them is asked for its answer: an interruption costs so many thoughts
at most, and the longest of each round is waited for alone."""


THINKS, THOUGHT = "<think>", "</think>"
"""What most models write around their reasoning, where nothing says what this one does."""


@dataclass(frozen=True, slots=True)
class ReasoningTokens:
    """Token ids around the answer of a model that reasons first."""

    end: int
    """Ends its reasoning."""
    answer_start: tuple[int, ...]
    """What stands between that and the answer, a prompt's prefill included."""
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
    for start in range(0, len(requests), _AT_ONCE):
        thoughts: list[tuple[int, Reply, Request]] = []
        for offset, thought in model.answers(requests[start : start + _AT_ONCE], thinking):
            index = start + offset
            if thought.failure is not None:  # of an endpoint
                yield index, thought
                continue
            if thought.stop_token_id != reasoning.end:
                yield index, _without_an_answer(thought)
                continue
            prompt = requests[index].token_ids
            behind = (*prompt, *thought.token_ids, reasoning.end, *reasoning.answer_start)
            thoughts.append((index, thought, Request(token_ids=behind)))
        for number, answer in model.answers([request for _, _, request in thoughts], decoding):
            index, thought, _ = thoughts[number]
            n_tokens = thought.completion_tokens + 1  # the token that ends it
            yield (
                index,
                replace(
                    answer,
                    reasoning=thought.text,
                    reasoning_tokens=n_tokens,
                    prompt_tokens=thought.prompt_tokens,
                    completion_tokens=n_tokens + answer.completion_tokens,
                    seconds=thought.seconds + answer.seconds,
                    cost=thought.cost + answer.cost,
                ),
            )


def _without_an_answer(thought: Reply) -> Reply:
    cut_short = thought.finish_reason == "length"
    how = f"did not end in {thought.completion_tokens} tokens" if cut_short else "ended without an answer"
    return replace(
        thought,
        text="",
        token_ids=(),
        failure="truncated" if cut_short else "no_label",
        detail=f"reasoning {how}",
        reasoning=thought.text,
        reasoning_tokens=thought.completion_tokens,
    )


def part_thinking(text: str, end: str = THOUGHT) -> tuple[str, str] | None:
    """What a model thought in its answer, and what it wrote behind that; None where the thoughts don't end.

    The last `end` counts: what is quoted in thoughts may spell it. The chat template may have opened them.
    """
    thinking, found, answer = text.rpartition(end)
    if not found:
        return None if text.lstrip().startswith(THINKS) else ("", text)
    return without_tag(thinking), answer


def without_tag(thinking: str) -> str:
    """Thoughts without the tag that a model may have opened them with."""
    return thinking.strip().removeprefix(THINKS).strip()
