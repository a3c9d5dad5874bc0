"""A probe beside its model: the head reads the states that the model's pass has anyway."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from monitorbench.engines.protocol import Decoding, Model, Reply, Request, Tap
from monitorbench.engines.stored.head import FittedHead
from monitorbench.engines.stored.states import as_stored

Ids = tuple[int, ...]
Span = tuple[int, int]


class HeadReading(NamedTuple):
    """What the probe says of a prompt."""

    ids: Ids
    score: float
    """P(misbehavior), in (0, 1): the head's judged alone, but for the rounding of a padded batch."""
    seconds: float
    """The prompt's share of the model's pass, through the layer's depth: what the probe alone would take."""


class HeadBesideModel:
    """A `Model` that says what a head makes of each prompt, right before it gives the model's own reply."""

    def __init__(
        self,
        model: Model,
        head: FittedHead,
        depth: int,
        span_of: Callable[[Ids], Span],
        note: Callable[[HeadReading], None],
    ) -> None:
        """`depth` is how many layers the model has; `span_of` knows where the response is in a prompt."""
        self._model, self._head, self._depth = model, head, depth
        self._span_of, self._note = span_of, note

    @property
    def tokenizer(self) -> Any | None:
        """The model's."""
        return self._model.tokenizer

    def prepare(self, first: Request, decoding: Decoding) -> float | None:
        """See `Model.prepare`."""
        return self._model.prepare(first, decoding)

    def answers(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        """See `Model.answers`."""
        reads = self._head.read_from
        spans = tuple(self._span_of(request.token_ids) for request in requests)
        tapped = replace(decoding, tap=Tap(reads.layer, reads.position, reads.window, spans))
        for index, reply in self._model.answers(requests, tapped):
            assert reply.states is not None
            score = self._head.suspicion(as_stored(reply.states, reads.storage))
            share = reads.layer / self._depth
            self._note(HeadReading(requests[index].token_ids, score, reply.seconds * share))
            yield index, reply

    def close(self) -> None:
        """Give back the model."""
        self._model.close()
