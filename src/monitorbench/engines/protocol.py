"""What an engine is: token ids in, greedy completions and label log-probabilities out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

ADAPTER_GATE = 1e-4
"""An adapter that changes no label token's log-probability by this much is not on the model."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """Greedy decoding of at most `max_new_tokens`, with log-probabilities asked for at the first."""

    max_new_tokens: int
    stop_token_ids: tuple[int, ...]
    scored_token_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Completion:
    """What came back for one prompt.

    `token_ids` and `text` leave out the stop token. `logprobs` maps each scored token id to its
    natural log-probability over the whole vocabulary at the first position. `seconds` is the
    prompt's share of the wall time. `stop_token_id` is the stop token that was met, None
    where the completion ended for its length.
    """

    token_ids: tuple[int, ...]
    text: str
    finish_reason: str
    logprobs: Mapping[int, float]
    seconds: float
    stop_token_id: int | None = None


class Engine(Protocol):
    """A loaded model, with or without an adapter on it."""

    def complete(
        self, prompts: Sequence[Sequence[int]], decoding: Decoding, *, with_adapter: bool = True
    ) -> Iterator[tuple[int, Completion]]:
        """Yield (index into `prompts`, completion), each index once, in any order.

        `with_adapter=False` asks the base model, which decision 5's gate compares with.
        """
        ...

    def close(self) -> None:
        """Give back memory and child processes."""
        ...
