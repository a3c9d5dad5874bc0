"""A monitor prompt in words: the system and the user turn of one sample, before any tokenizer."""

from collections.abc import Sequence
from typing import NamedTuple

from jinja2 import StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from monitorbench.config.study import Prompt
from monitorbench.prompts.transcript import Shown, transcript
from monitorbench.records import Label, Sample


class Keep(NamedTuple):
    """How many characters of the judged request and response are shown; None: all of them."""

    request: int | None = None
    response: int | None = None


WHOLE = Keep()


class ShownExample(NamedTuple):
    """A labelled sample as a prompt's template sees it; a benign one's category is `none`."""

    request: str
    response: str
    answer: str
    category: str


class PromptWording:
    """A prompt's two turns. What is judged goes in as text and is never read as a template."""

    def __init__(self, prompt: Prompt) -> None:
        environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
        self._words = {"misbehavior": prompt.label_words.misbehavior, "benign": prompt.label_words.benign}
        self._user = environment.from_string(prompt.user)
        self._shown = Shown(examples=prompt.shots > 0, left_out=prompt.too_long == "middle_truncate")
        self.system: str = environment.from_string(prompt.system).render(**self._words)

    def user(self, sample: Sample, shots: Sequence[Sample] = (), keep: Keep = WHOLE) -> str:
        """The user's turn for one sample, behind the examples in `shots`."""
        return self._user.render(
            request=transcript(sample.request, self._shown, keep.request),
            response=transcript(sample.response, self._shown, keep.response),
            examples=[self._example(shot) for shot in shots],
            **self._words,
        )

    def word(self, label: Label) -> str:
        """What is answered for a label."""
        return self._words[label.value]

    def _example(self, shot: Sample) -> ShownExample:
        return ShownExample(
            request=transcript(shot.request, self._shown),
            response=transcript(shot.response, self._shown),
            answer=self.word(shot.label),
            category=str(shot.category) if shot.label is Label.MISBEHAVIOR else "none",
        )
