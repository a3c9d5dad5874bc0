"""A monitor that reasons first: let it think to the end of its reasoning, then ask for the label.

The label is asked for in a second pass, behind the reasoning, so that its score is read at the position
where it is said (decision 4). An engine that caches prefixes pays for the prompt once, where its cache still
holds it by then.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from monitorbench.engines.protocol import Completion, Decoding, Engine
from monitorbench.prompts.render import ReasoningTokens

_AT_ONCE = 1024
"""Prompts that think before the first of them is asked for its label: an interruption costs so many thoughts
at most, and the longest of each round is waited for alone."""


@dataclass(frozen=True, slots=True)
class Thought:
    """What a monitor reasoned; `finish_reason` is `stop` at its end, `length` where it ran out of tokens."""

    text: str
    n_tokens: int
    finish_reason: str
    seconds: float


NO_THOUGHT = Thought("", 0, "", 0.0)


def think_first(
    engine: Engine, prompts: Sequence[Sequence[int]], decoding: Decoding, reasoning: ReasoningTokens
) -> Iterator[tuple[int, Thought, Completion | None]]:
    """Yield (index into `prompts`, reasoning, answer), each index once, in any order.

    `decoding` is that of the answer. No answer where reasoning did not end: it ran out of tokens, or the
    monitor ended its turn without one.
    """
    # The model may end its turn without ending its reasoning.
    thinking = Decoding(reasoning.max_tokens, (reasoning.end, *decoding.stop_token_ids), ())
    for start in range(0, len(prompts), _AT_ONCE):
        asked: list[tuple[int, Thought, list[int]]] = []
        for offset, completion in engine.complete(prompts[start : start + _AT_ONCE], thinking):
            index = start + offset
            thought = Thought(
                completion.text, len(completion.token_ids), completion.finish_reason, completion.seconds
            )
            if completion.stop_token_id == reasoning.end:
                thought = replace(thought, n_tokens=thought.n_tokens + 1)
                behind = [*prompts[index], *completion.token_ids, reasoning.end, *reasoning.answer_start]
                asked.append((index, thought, behind))
            else:
                yield index, thought, None
        for number, answer in engine.complete([ids for _, _, ids in asked], decoding):
            index, thought, _ = asked[number]
            yield index, thought, answer
