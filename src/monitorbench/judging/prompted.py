"""A model with a prompt on it: the request for a sample, and the verdict that its reply gives.

One interface to models that are given token ids (`judging.local`) and to those that are sent chat messages
(`judging.endpoint`); `judging.open` chooses. Judges and language-model agents stand on it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from monitorbench.config.monitor import Prompt
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
    later_tokens: int = 0
    """About how many at most a second prompt has, which is made of the first one's answer."""


class Reading(NamedTuple):
    """What a reply says: the monitor's own text, its answer, and the label's score."""

    text: str
    answer: Answer
    score: Score


class PromptedModel(Protocol):
    """A model with a prompt on it, opened by `judging.open.open_prompted`."""

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
