"""The interfaces to a model: `Model` is asked by all callers, wherever it runs; `Engine` takes token ids.

A `Model` is an engine of this process with its tokenizer (`engines.open.LocalModel`), or a chat endpoint
(`engines.endpoint.chat`); `engines.open` chooses.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from monitorbench.config.training import Position

Failure: TypeAlias = Literal[
    "refused", "too_long", "timed_out", "http_error", "bad_response", "empty", "truncated", "no_label"
]
"""Why a request has no answer: a value of `records.UnscoredReason`."""


class ChatMessage(NamedTuple):
    """One turn of a prompt."""

    role: Literal["system", "user", "assistant"]
    content: str


class Request(NamedTuple):
    """One prompt: chat messages for an endpoint, the token ids of them for a model of this process."""

    messages: tuple[ChatMessage, ...] = ()
    token_ids: tuple[int, ...] = ()
    key: str = ""
    """Key of the verdict that it is for, which a batch API is sent."""
    response: tuple[int, int] = (0, 0)
    """Half-open, in `token_ids`: where the judged response is, for a model that answers with its states."""

    @property
    def characters(self) -> int:
        """Characters of the messages."""
        return sum(len(message.content) for message in self.messages)


class Tap(NamedTuple):
    """States of one layer that are read beside a pass's answer, as a probe reads them."""

    layer: int
    """Counted from 1."""
    position: Position
    window: int | None
    """A head's: see `Head.window`."""
    spans: tuple[tuple[int, int], ...]
    """Half-open range of the judged response in each prompt, in their order."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """Greedy decoding of at most `max_new_tokens`, with log-probabilities requested at the first.

    The token ids are for a model of this process. An endpoint is told the rest: `structured` is a JSON
    schema, sent in the way its configuration names; `label_after` is how an answer begins before its label,
    white space aside, or with `label_field` what precedes that field's value in the JSON object that has it
    last; `reasoning_end` is what ends reasoning that a model writes into its answer. `tap` changes no answer;
    only `engine=transformers` without an adapter reads it.
    """

    max_new_tokens: int
    stop_token_ids: tuple[int, ...] = ()
    scored_token_ids: tuple[int, ...] = ()
    structured: dict[str, Any] | None = None
    label_after: str = ""
    label_field: str = ""
    reasoning_end: str = ""
    tap: Tap | None = None
    """States that a probe reads of the prompts' pass; for `engine=transformers` alone."""

    def cut(self, ids: tuple[int, ...], *, ended: bool = False) -> tuple[tuple[int, ...], int | None]:
        """The ids in front of the stop token, and that token; None where the completion has none.

        With `ended` the model ended it by itself: its last token then is one that the template doesn't use.
        """
        stop = next((i for i, token in enumerate(ids) if token in self.stop_token_ids), None)
        if stop is None and ended and ids:
            stop = len(ids) - 1
        return (ids, None) if stop is None else (ids[:stop], ids[stop])


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply to one request, or why there is none.

    A model of this process gives `token_ids`, which like `text` leave out the stop token, and `logprobs`:
    of each scored token id its natural log-probability over the whole vocabulary at the first position.
    There `seconds` is the prompt's share of the wall time, and `stop_token_id` the stop token that was
    met, None where the completion ended for its length. An endpoint gives `top_logprobs`: natural
    log-probabilities (≤ 0) by token text at the position of the label; None where it gave none or they can't
    be trusted. Its token counts are its own, estimates where `detail` says so, and 0 where nothing came
    back; `seconds` counts retries and waits; `cost` is in its prices' currency, 0 without prices.
    `detail` is one line that never holds a key. `reasoning` is what is shown of it, apart from `text`,
    and `reasoning_tokens` how many of `completion_tokens` it took, as far as they are counted;
    `reasoning_cut` says that it stood in the text, and was cut off in front of the answer. `served_model`
    is what an endpoint calls the model that answered, empty where it doesn't say. `begun` is what
    precedes `text` in the model's own answer: the evidence that it wrote before its label.
    """

    text: str
    finish_reason: str
    top_logprobs: Mapping[str, float] | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    cost: float = 0.0
    failure: Failure | None = None
    detail: str = ""
    reasoning: str = ""
    reasoning_cut: bool = False
    reasoning_tokens: int = 0
    token_ids: tuple[int, ...] = ()
    logprobs: Mapping[int, float] = field(default_factory=dict)
    stop_token_id: int | None = None
    served_model: str = ""
    begun: str = ""
    states: NDArray[np.float16] | None = None
    """[windows or tokens, hidden], what the decoding's `tap` read; of a model that answers with its states
    [windows or tokens, layers, positions, hidden]."""


class Engine(Protocol):
    """A loaded model, with or without adapters for it."""

    def take(self, adapter: Path | None) -> None:
        """Answer with this one of the adapters that it was opened with from now on; None: with the base."""
        ...

    def complete(
        self, prompts: Sequence[Sequence[int]], decoding: Decoding, *, with_adapter: bool = True
    ) -> Iterator[tuple[int, Reply]]:
        """Yield (index into `prompts`, reply), each index once, in any order.

        `with_adapter=False` asks the base model, which decision 5's gate compares with. What was taken must
        not change before the last is there.
        """
        ...

    def close(self) -> None:
        """Give back memory and child processes."""
        ...


class Model(Protocol):
    """A model that answers requests, in this process or behind an endpoint.

    One that subclasses it has only to answer.
    """

    tokenizer: Any = None
    """Tokenizer of a model that takes token ids; None for one that takes chat messages."""

    def prepare(self, first: Request, decoding: Decoding) -> float | None:
        """Load what there is to load; what an adapter changes on a request (see `LocalModel`), or None.

        Raises `UserError` for an adapter that changes nothing.
        """
        return None

    def answers(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        """Yield (index into `requests`, reply), each index once, in any order.

        Raises `UserError` where the model can't be used at all.
        """
        ...

    def close(self) -> None:
        """Give back memory and child processes, and cancel what is in flight."""
        return
