"""The hidden states of a monitor's prompts, found on disk or extracted: what probes are fitted to.

States are named by weights, dtype, layers, positions, windows and storage (a folder) and by token ids and the
response's place in them (a row), never by a path: every head and every training subset reads the same
extraction.
"""

import datetime
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import lru_cache, partial
from itertools import takewhile
from pathlib import Path
from typing import Any, Self

from monitorbench.config.engine import Engine, states_engine
from monitorbench.config.monitor import Monitor, Prompt
from monitorbench.config.training import Position, Storage
from monitorbench.engines.protocol import Decoding, Model, Reply, Request
from monitorbench.engines.stored.model_folder import load_config, load_tokenizer
from monitorbench.engines.stored.states import StateStore, open_states
from monitorbench.engines.transformers_engine import HiddenStates, layer_numbers
from monitorbench.engines.weights import weights_folder, weights_identity
from monitorbench.prompts.render import Renderer
from monitorbench.records import Message, Role, Sample
from monitorbench.runs.files import content_hash

_VERSION = 1
"""Raised when other numbers come of the same model and prompt."""
_KEPT = 8192
"""Rendered prompts that a process remembers."""
_OTHERS = ("Q", "\u2e2e")
"""Responses of which none begins or ends, byte by byte, like both."""


class StatesRendering:
    """Samples as one model under one prompt reads them; heads in one process ask for the same ones."""

    def __init__(
        self,
        weights: Path,
        prompt: Prompt,
        opening: str,
        date: datetime.date | None,
        *,
        keeps: int = _KEPT,
        finds_response: bool = True,
    ) -> None:
        """The latest `keeps` prompts are remembered; a head on the last token does not need the response."""
        self._renderer = Renderer(prompt, load_tokenizer(weights), opening, date=date)
        self._keeps, self._finds_response = keeps, finds_response
        self._prompts: dict[str, Request] = {}

    def prompt(self, sample: Sample) -> Request:
        """A sample rendered; its states are found by the `key`, this by the hash of the sample's content."""
        cached = self._prompts.get(sample.id)
        if cached is not None:
            return cached
        ids = self._renderer.render(sample)
        last = (len(ids) - 1, len(ids))
        span = response_span(self._renderer, sample, ids) if self._finds_response else last
        key = hashlib.sha256(json.dumps([ids, span]).encode()).hexdigest()[:24]
        rendered = Request(token_ids=ids, key=key, response=span)
        if self._keeps:
            self._prompts[sample.id] = rendered
            if len(self._prompts) > self._keeps:
                del self._prompts[next(iter(self._prompts))]
        return rendered


@lru_cache(maxsize=1)
def _kept_rendering(
    weights: Path, prompt: Prompt, opening: str, date: datetime.date | None
) -> StatesRendering:
    return StatesRendering(weights, prompt, opening, date)


class States(Model):
    """The states of one model under one prompt, as a `Model` that answers with them, stored or extracted.

    A context manager; what it reads is loaded when it has to be.
    """

    def __init__(
        self,
        monitor: Monitor,
        engine: Engine,
        prompt: Prompt,
        models: Path,
        shares: Sequence[float],
        positions: Sequence[Position],
        window: int | None,
        storage: Storage,
    ) -> None:
        """`shares` and what follows are a head's; `models` is the folder that models are kept in.

        Raises `ConfigError` for what has no states here: another engine, a few-shot prompt, an adapter, a
        monitor that reasons first; `ValueError` where prompt and tokenizer don't fit.
        """
        engine = states_engine(monitor, engine, prompt)
        weights = weights_folder(monitor, models)
        config = load_config(weights)
        self.layers = layer_numbers(config.num_hidden_layers, shares)
        self.positions = tuple(positions)
        self.rendering = _kept_rendering(weights, prompt, monitor.opening, monitor.template_date)
        self._shape = (len(self.layers), len(self.positions), config.hidden_size)
        # Of tokens any window can be made.
        window = None if "tokens" in self.positions else window
        identity: dict[str, Any] = {
            "version": _VERSION,
            "weights": weights_identity(monitor),
            "dtype": engine.resolved_dtype,
            "layers": self.layers,
            "positions": self.positions,
        }
        identity |= {} if window is None else {"window": window}
        identity |= {} if storage == "float16" else {"storage": storage}
        self.folder = models / "states" / f"{monitor.name}-{content_hash(identity)}"
        self._open: Callable[[], HiddenStates] = partial(
            HiddenStates, engine, weights, self.layers, self.positions, window
        )
        self._storage = storage
        self._model: HiddenStates | None = None
        self._store: StateStore | None = None
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        """Wait until no other process adds to the same states."""
        self._store = self._closing.enter_context(open_states(self.folder, self._shape, self._storage))
        return self

    def __exit__(self, *raised: object) -> None:
        """Give back the model and the folder."""
        self.close()

    def close(self) -> None:
        """Give back the model and the folder."""
        if self._model is not None:
            self._model.close()
            self._model = None
        self._closing.close()

    @property
    def store(self) -> StateStore:
        """The folder, inside the context."""
        if self._store is None:
            raise ValueError("the states are not open; use them in a with statement")
        return self._store

    def answers(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        """See `Model.answers`: the states of each prompt, in order; nothing is generated."""
        for index in self.extract(requests):
            key, n_tokens = requests[index].key, len(requests[index].token_ids)
            read, seconds = self.store.read(key), self.store.seconds(key)
            yield index, Reply("", "states", prompt_tokens=n_tokens, seconds=seconds, states=read)

    def extract(self, prompts: Sequence[Request]) -> Iterator[int]:
        """Yield every index once, its states being on disk by then; those that are there already at once."""
        for index, prompt in enumerate(prompts):
            if prompt.key not in self.store:
                if self._model is None:
                    self._model = self._open()
                ((_, reply),) = self._model.answers([prompt], Decoding(0))
                assert reply.states is not None
                self.store.append(prompt.key, reply.states, reply.seconds)
            yield index


def rendering(prompt: Prompt, monitor: Monitor) -> str:
    """Name of the way samples become token ids, the tokenizer aside."""
    date = [monitor.template_date.isoformat()] if monitor.template_date else []
    return content_hash([prompt.of_whole_responses.model_dump(mode="json"), monitor.opening, *date])


def response_span(renderer: Renderer, sample: Sample, ids: Sequence[int]) -> tuple[int, int]:
    """The half-open range of `ids`, which `renderer.render(sample)` gave, that the response decides.

    What the prompt of another response to the same request shares with it at both ends is not the response's,
    wherever the prompt puts it; a token that spells both the response's edge and what touches it counts. At
    least one token. Not for prompts that were shortened or hold examples.
    """
    start, behind = len(ids) - 1, len(ids)
    for text in _OTHERS:
        response = (Message(role=Role.ASSISTANT, content=text),)
        variant = renderer.render(sample.model_copy(update={"response": response}))
        start = min(start, _n_shared(ids, variant))
        behind = min(behind, _n_shared(ids[::-1], variant[::-1]))
    end = max(len(ids) - behind, start + 1)
    return start, end


def _n_shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many ids both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
