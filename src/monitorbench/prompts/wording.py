"""A monitor prompt in words: the system and the user turn of one sample, before any tokenizer.

A benchmark's own prompts stand in for ours where a dataset brings them: `<dataset>/prompts/<kind>.txt` is the
user's turn, with `{{ request }}` and `{{ response }}`, or the same names in single braces (also `{question}`,
`{answer}` and `{trajectory}`), where the judged text goes.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.seen import Policy, View
from monitorbench.config.study import Prompt, PromptKind
from monitorbench.prompts.transcript import UsedMarks, is_shown, seen_request, transcript
from monitorbench.records import Label, Message, Role, Sample
from monitorbench.runs.directory import checked_file, read_manifest
from monitorbench.untrusted import document

_ASKED_FIELD = re.compile(r'"(\w+)"\s*:\s*"?$')
"""How a prefill ends that begins the field with the label."""
_QUOTE_CHARACTERS = 120
"""Characters of an example's quote where nobody marked one: the response's first line."""

_NAMES = {
    **dict.fromkeys(("request", "question", "prompt", "instruction"), "request"),
    **dict.fromkeys(("response", "answer", "trajectory", "completion"), "response"),
}
_PLACEHOLDER = re.compile(r"\{{1,2}\s*(" + "|".join(_NAMES) + r")\s*\}{1,2}")


_REQUEST, _RESPONSE = "REQUESTGOESHERE", "RESPONSEGOESHERE"
PLACE = re.compile(f"{_REQUEST}|{_RESPONSE}")
"""Places in a guard's text where the judged text goes."""


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
    """The label's word."""
    written: str
    """The whole answer, in the form that the prompt asks for."""
    category: str


class PromptWording:
    """A prompt's two turns. What is judged goes in as text and is never read as a template."""

    def __init__(self, prompt: Prompt) -> None:
        environment = ImmutableSandboxedEnvironment(
            undefined=StrictUndefined, keep_trailing_newline=prompt.guard is not None
        )
        self._prompt = prompt
        self._words = {
            "misbehavior": prompt.label_words.misbehavior,
            "benign": prompt.label_words.benign,
            "policy": prompt.policy.sentence(),
            "named_policy": prompt.policy.sentence(named=True),
            "example_category": prompt.policy.example_category,
        }
        self._shown = UsedMarks(examples=prompt.shots > 0, left_out=prompt.too_long == "middle_truncate")
        self._shown_acts = self._shown._replace(acts=True)
        with self._refusing():
            self._user = environment.from_string(prompt.user)
            self._judge_user = environment.from_string(prompt.judge_user or "")
            self.system: str = environment.from_string(prompt.system).render(**self._words)

    def user(self, sample: Sample, shots: Sequence[Sample] = (), keep: Keep = WHOLE) -> str:
        """The user's turn for one sample, behind the examples in `shots`."""
        judged = self.judged(sample, keep)
        with self._refusing():
            return self._user.render(
                request=judged[_REQUEST],
                response=judged[_RESPONSE],
                examples=[self._example(shot) for shot in shots],
                **self._words,
            )

    def guard_text(self) -> str:
        """A guard's text with a place in it for the request, and for the response.

        Raises `ValueError` where it doesn't show the response once, and the request at most once.
        """
        with self._refusing():
            text = self._user.render(request=_REQUEST, response=_RESPONSE, **self._words)
        if text.count(_RESPONSE) != 1 or text.count(_REQUEST) > 1:
            raise ValueError("its text shows the response other than once, or the request twice")
        return text

    def judged(self, sample: Sample, keep: Keep = WHOLE) -> dict[str, str]:
        """The text that goes into each place of `guard_text`."""
        return {
            _REQUEST: self._request(sample, self._shown, keep.request),
            _RESPONSE: transcript(sample.response, self._shown, keep.response, self._prompt.view),
        }

    def judge_user(self, sample: Sample, acts: str) -> str:
        """The user's turn that is answered in one word, where a monitor listed `acts` before; no response."""
        with self._refusing():
            return self._judge_user.render(
                request=self._request(sample, self._shown_acts),
                acts=transcript([Message(role=Role.ASSISTANT, content=acts)], self._shown_acts),
                **self._words,
            )

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Raise `ConfigError` where a template is no Jinja, or asks for what it may not have."""
        try:
            yield
        except (TemplateError, TypeError, ArithmeticError) as error:
            reason = " ".join(str(error).split())[:160]
            raise ConfigError(
                f"prompt={self._prompt.name}: its text is no template that can be filled in ({reason})"
            ) from error

    def word(self, label: Label) -> str:
        """The answer for a label."""
        return self._words[label.value]

    def _request(self, sample: Sample, marks: UsedMarks, keep: int | None = None) -> str:
        view = self._prompt.view
        return transcript(seen_request(sample.request, view), marks, keep, view)

    def _example(self, shot: Sample) -> ShownExample:
        return ShownExample(
            request=self._request(shot, self._shown),
            response=transcript(shot.response, self._shown, view=self._prompt.view),
            answer=self.word(shot.label),
            written=self._written(shot),
            category=str(shot.category) if shot.label is Label.MISBEHAVIOR else "none",
        )

    def _written(self, shot: Sample) -> str:
        """The answer that an example asks for. Nobody rated its severity: it is the prompt's own."""
        word, bad = self.word(shot.label), shot.label is Label.MISBEHAVIOR
        if self._prompt.kind is PromptKind.DIRECT:
            return word
        field = asked_field(self._prompt)
        marked = [
            transcript([Message(role=Role.ASSISTANT, content=quote)], self._shown)
            for quote in quotes(shot, self._prompt.view)
        ]
        answer: dict[str, object] = {
            field: word,
            "category": str(shot.category) if bad else "none",
            "severity": "high" if bad else "none",
            "quotes": marked,
        }
        if self._prompt.kind is PromptKind.EVIDENCE_FIRST:
            reason = f"a case of {shot.category}" if bad else "nothing of the kind is in the response"
            answer = {"quotes": marked, "reason": reason, field: word}
        return json.dumps(answer, ensure_ascii=False)


def asked_field(prompt: Prompt) -> str:
    """The JSON field that a prompt asks the label in: the one its prefill begins, or `misbehavior`."""
    match = _ASKED_FIELD.search(prompt.prefill)
    return match[1] if match and prompt.kind is PromptKind.EVIDENCE else "misbehavior"


def quotes(shot: Sample, view: View) -> list[str]:
    """What `view` shows of an example's marked misbehavior, else its last turn's first line."""
    if shot.label is Label.BENIGN:
        return []
    marked = [(span, shot.response[span.message]) for span in shot.gold_spans]
    seen = [of for of in marked if is_shown(of[1].role, of[0].field, view)]
    if seen or not view.text:
        return [turn.text(span.field, span.call)[span.start : span.end] for span, turn in seen]
    lines = [line.strip() for line in shot.response[-1].content.splitlines() if line.strip()]
    return [line[:_QUOTE_CHARACTERS] for line in lines[:1]]


def published_prompt(dataset: Path, ours: Prompt) -> Prompt:
    """The dataset's own prompt of the same kind, with our label words, token limit and prefill; else `ours`.

    Raises `UserError` where it is not as it was written, does not say where request and response go, and
    for a few-shot prompt.
    """
    name = f"prompts/{ours.kind.value}.txt"
    if name not in read_manifest(dataset)["files"]:
        return ours
    file = checked_file(dataset, name)
    if ours.shots:
        raise UserError(
            f"{file}: the dataset's own prompt shows no examples; expected a zero-shot prompt, not "
            f"prompt={ours.name}"
        )
    try:
        text = document(file).decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: not UTF-8; save it as UTF-8") from error
    placeholders = {_NAMES[match[1]] for match in _PLACEHOLDER.finditer(text)}
    if placeholders != {"request", "response"}:
        raise UserError(
            f"{file}: it does not say where the judged text goes; expected {{{{ request }}}} and "
            "{{ response }} in it"
        )
    # Everything else in it is text, braces included.
    parts = _PLACEHOLDER.split(text)
    user = "".join(
        f"{{{{ {_NAMES[piece]} }}}}" if index % 2 else _verbatim(piece) for index, piece in enumerate(parts)
    )
    return ours.model_copy(
        update={"name": f"{ours.name}-published", "system": "", "user": user, "policy": Policy()}
    )


def _verbatim(text: str) -> str:
    """Jinja for just this text, an `{% endraw %}` in it included."""
    inside = text.replace("{%", "{% endraw %}{{ '{%' }}{% raw %}")
    return f"{{% raw %}}{inside}{{% endraw %}}"
