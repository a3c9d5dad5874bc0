"""A model that reasons first: let it think to the end of its reasoning, then ask for the answer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from monitorbench.engines.protocol import Decoding, Model, Reply, Request
from monitorbench.engines.two_passes import SecondPass, ask_twice, without_answer

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
