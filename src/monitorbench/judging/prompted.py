"""A model with a prompt on it: the request for a sample, and the verdict that its reply gives.

One interface to models that are given token ids (`judging.local`) and to those that are sent chat messages
(`judging.endpoint`); `open_prompted` chooses. Judges and language-model agents stand on it.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from monitorbench.config.base import ConfigError
from monitorbench.config.engine import Engine
from monitorbench.config.monitor import Monitor, Prompt
from monitorbench.engines.protocol import Reply, Request
from monitorbench.prompts.parse import Answer, Score
from monitorbench.records import Sample


class Question(NamedTuple):
    """The request to a model about a sample."""

    key: str
    """Names the verdict: the request, and all of the model that decides its answer (decision 9). Empty where
    the model was opened without an identity."""
    sample: Sample
    request: Request
    too_long: bool = False
    """The request does not fit the model's context, and is not sent."""
    truncated_tokens: int = 0
    """By how many tokens it was shortened."""
    detail: str = ""


class Reading(NamedTuple):
    """What a reply says: the monitor's own text, its answer, and the label's score."""

    text: str
    answer: Answer
    score: Score


class PromptedModel(Protocol):
    """A model with a prompt on it, opened by `open_prompted`."""

    @property
    def prompt(self) -> Prompt:
        """The request to the model."""
        ...

    def question(self, sample: Sample, shots: Sequence[Sample] = ()) -> Question:
        """The request about one sample, behind the examples in `shots`."""
        ...

    def prepare(self, first: Question) -> float | None:
        """Load the model; what its adapter changes on a question, None without an adapter.

        Raises `UserError` for an adapter that changes nothing.
        """
        ...

    def replies(self, questions: Sequence[Question]) -> Iterator[tuple[int, Reply]]:
        """Yield (index into `questions`, reply), each index once, as they come in."""
        ...

    def read(self, reply: Reply) -> Reading:
        """The verdict in a reply; what is no answer has its reason."""
        ...

    def word_logprobs(self, reply: Reply) -> Mapping[str, float]:
        """The natural log-probability of each of the `words`, of those that the reply gives one."""
        ...

    def close(self) -> None:
        """Give back memory and child processes, and cancel what is in flight."""
        ...


def open_prompted(
    monitor: Monitor,
    engine: Engine,
    prompt: Prompt,
    models: Path,
    where: str,
    *,
    identity: Mapping[str, Any] | None = None,
    words: Sequence[str] = (),
    spent: float = 0.0,
) -> PromptedModel:
    """The monitor on its engine, with a prompt.

    `models` is the folder that models are kept in; `where` names the setting in an error. `identity` is what
    `judging.identity` says of the model, for the keys of verdicts. With `words` their log-probabilities are
    wanted, and no verdict. `spent` is what earlier processes paid of an endpoint's `max_cost`.

    Raises what `engines.open.open_model` raises, and `ConfigError` where prompt, words or reasoning don't fit
    the tokenizer.
    """
    from monitorbench.engines.open import open_model

    model = open_model(monitor, engine, models, spent=spent)
    if model.tokenizer is None:
        from monitorbench.judging.endpoint import EndpointPrompt

        return EndpointPrompt(model, prompt, monitor.reasoning, identity, words)
    from monitorbench.judging.local import LocalPrompt

    try:
        return LocalPrompt(model, prompt, monitor, identity, words)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error
