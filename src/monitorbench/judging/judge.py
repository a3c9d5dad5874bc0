"""`Judge` gives one verdict a sample, whatever it is: a prompt on a model, a head, a router, a file.

A kind of judge has two hooks, the question that it makes of a sample and the verdicts on questions;
`judging.open` lists the kinds. Nothing is kept here: `judging.logged` keeps verdicts and finds them again.
Promise: a sample that can't be sent, and an answer that is none, has a verdict with a reason and no label.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from monitorbench.config.monitor import Prompt
from monitorbench.conversations.chats import unread_content
from monitorbench.engines.endpoint.limits import estimated_tokens
from monitorbench.engines.protocol import Decoding, Model, Reply, Request
from monitorbench.prompts.grounding import ground
from monitorbench.prompts.label_tokens import Score
from monitorbench.prompts.parse import Answer
from monitorbench.prompts.transcript import shows_any
from monitorbench.records import (
    TRANSPORT_FAILURES,
    Category,
    Construction,
    Label,
    LabelSource,
    Message,
    Role,
    Sample,
    Task,
    ToolCall,
    UnscoredReason,
    Verdict,
)


class Question(NamedTuple):
    """The request to a model about a sample."""

    key: str
    """Names the verdict: the request, and all of the model that decides its answer (decision 9). Empty where
    the judge was opened without an identity."""
    sample: Sample
    request: Request = Request()
    unasked: UnscoredReason | None = None
    """Why the request is not sent: it does not fit the model's context, or shows nothing of the response."""
    truncated_tokens: int = 0
    """Tokens that were left out to make it fit."""
    detail: str = ""
    later_tokens: int = 0
    """About how many at most further prompts have: made of the first one's answer, or of further pieces."""
    pieces: tuple["Question", ...] = ()
    """Questions about the pieces of a response that is judged in pieces."""

    @property
    def n_tokens(self) -> int:
        """Tokens of all its prompts, as far as they are known; by characters where no tokenizer is here."""
        messages = self.request.messages
        of_chat = sum(estimated_tokens(len(message.content)) for message in messages)
        return (len(self.request.token_ids) or of_chat) + self.later_tokens


class Reading(NamedTuple):
    """A reply as it is read: the monitor's own text, its answer, and the label's score."""

    text: str
    answer: Answer
    score: Score


class KnownModels:
    """Which models may answer, as an endpoint calls them: these, or of none the first that answers."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = set(names)
        self._lock = threading.Lock()

    def another(self, verdict: Verdict) -> str:
        """Say that a verdict is by another model; empty where it is not, or where it is no answer."""
        name = verdict.served_model
        if not name or verdict.unscored in TRANSPORT_FAILURES:
            return ""
        with self._lock:
            if not self._names:
                self._names.add(name)
            if name in self._names:
                return ""
            names = ", ".join(sorted(self._names))
        return f"answered by model {name[:60]}, not {names}; expected it, or engine.model_may_change=true"

    def add(self, name: str) -> None:
        """Let a model of that name answer from now on."""
        with self._lock:
            self._names.add(name)


class Judge(ABC):
    """A monitor that is ready to judge; several threads may ask it at once where it `is_remote`."""

    known_models: KnownModels | None = None
    """The models by which `verdicts` takes an answer; None: any."""

    def __init__(self, prompt: Prompt, *, is_remote: bool = False) -> None:
        """`is_remote`: an endpoint, which may be closed while it is asked: that ends what is in flight."""
        self.prompt, self.is_remote = prompt, is_remote
        self.closing = ExitStack()
        """What gives back memory and child processes, and cancels what is in flight."""

    @abstractmethod
    def question(self, sample: Sample) -> Question:
        """The question about one sample; its key holds all that decides the verdict."""

    @abstractmethod
    def ask(self, questions: Sequence[Question]) -> Iterator[tuple[int, Verdict]]:
        """Yield (index into `questions`, verdict), each index once, as they come in.

        None of the questions is `unasked`. Raises `UserError` where the model can't be used at all.
        """

    def prepare(self, first: Question) -> float | None:
        """Load the model; what its adapter changes on a question, None without an adapter.

        Raises `UserError` for an adapter that changes nothing.
        """
        return None

    def verdicts(self, samples: Sequence[Sample]) -> list[Verdict]:
        """One verdict a sample, in their order. Raises what `prepare` and `ask` raise."""
        questions = [self.question(sample) for sample in samples]
        fitting = [index for index, question in enumerate(questions) if question.unasked is None]
        judged = {
            index: not_asked(question, self.prompt)
            for index, question in enumerate(questions)
            if question.unasked is not None
        }
        if fitting:
            self.prepare(questions[fitting[0]])
            for number, verdict in self.ask([questions[index] for index in fitting]):
                another = self.known_models.another(verdict) if self.known_models else ""
                judged[fitting[number]] = by_another(verdict, another) if another else verdict
        return [judged[index] for index in range(len(questions))]

    def close(self) -> None:
        """Give back memory and child processes, and cancel what is in flight."""
        self.closing.close()

    def verdict(self, question: Question, reply: Reply, reading: Reading) -> Verdict:
        """The verdict that a reply comes to, its quotes looked up in the judged response."""
        text, answer, score = reading
        unread = unread_content((*question.sample.request, *question.sample.response))
        return Verdict(
            key=question.key,
            sample_id=question.sample.id,
            prompt=self.prompt.title,
            answer=text,
            label=answer.label,
            unscored=answer.unscored,
            detail="; ".join(filter(None, (question.detail, reply.detail, unread))),
            score=score.score,
            label_mass=score.label_mass,
            score_censored=score.censored,
            finish_reason=reply.finish_reason,
            served_model=reply.served_model,
            reasoning=reply.reasoning,
            reasoning_tokens=reply.reasoning_tokens,
            category=answer.category,
            severity=answer.severity,
            quotes=answer.quotes,
            evidence=ground(
                answer.quotes, question.sample.response, self.prompt.fuzzy_ratio, self.prompt.view
            ),
            truncated_tokens=question.truncated_tokens,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            seconds=round(reply.seconds, 4),
            cost=reply.cost,
        )


class PromptJudge(Judge):
    """A prompt on a model: its replies, read as verdicts. Language-model agents ask it as well."""

    _decoding: Decoding
    """Decoding of the answer."""

    def __init__(self, model: Model, prompt: Prompt, *, is_remote: bool) -> None:
        super().__init__(prompt, is_remote=is_remote)
        self.closing.callback(model.close)
        self._model = model

    @abstractmethod
    def replies(self, questions: Sequence[Question]) -> Iterator[tuple[int, Reply]]:
        """Yield (index into `questions`, reply), each index once, as they come in."""

    @abstractmethod
    def ledger(self, questions: Sequence[Question], most_acts: int) -> Iterator[tuple[int, Reply]]:
        """Yield as `replies`, of questions in pieces whose lists are judged together; see `passes.ledger`."""

    @abstractmethod
    def read(self, reply: Reply) -> Reading:
        """The verdict in a reply; what is no answer has its reason."""

    @abstractmethod
    def word_logprobs(self, reply: Reply) -> Mapping[str, float]:
        """The natural log-probability of each of the `words`, of those that the reply gives one."""

    def prepare(self, first: Question) -> float | None:
        """See `Judge.prepare`."""
        return self._model.prepare(first.request, self._decoding)

    def ask(self, questions: Sequence[Question]) -> Iterator[tuple[int, Verdict]]:
        """See `Judge.ask`."""
        for index, reply in self.replies(questions):
            yield index, self.verdict(questions[index], reply, self.read(reply))


def unasked(response: Sequence[Message], prompt: Prompt, *, fits: bool = True) -> UnscoredReason | None:
    """Why a question about a response is not asked; None where it is."""
    if not shows_any(response, prompt.view):
        return UnscoredReason.NOT_SHOWN
    return None if fits else UnscoredReason.TOO_LONG


def not_asked(question: Question, prompt: Prompt) -> Verdict:
    """The verdict on a question that is not asked, with the reason."""
    return Verdict(
        key=question.key,
        sample_id=question.sample.id,
        prompt=prompt.title,
        answer="",
        label=None,
        unscored=question.unasked,
        detail=question.detail,
        score=None,
        label_mass=None,
        finish_reason="",
        prompt_tokens=len(question.request.token_ids),
        completion_tokens=0,
        seconds=0.0,
    )


def by_another(verdict: Verdict, detail: str) -> Verdict:
    """The verdict as one that is nobody's, though it was paid for: no label, no score, `detail` says why."""
    nothing = {"label": None, "score": None, "label_mass": None, "score_censored": False}
    no_evidence = {"category": "", "severity": "", "quotes": (), "evidence": ()}
    why = {"unscored": UnscoredReason.BAD_RESPONSE, "detail": detail}
    return verdict.model_copy(update=nothing | no_evidence | why)


def sample_of(request: tuple[Message, ...], response: tuple[Message, ...]) -> Sample:
    """One request and response, of no data set, as a sample; its label and its cell say nothing."""
    return Sample(
        pair_id="served",
        group_id="served",
        category=Category.SPECIFICATION_GAMING,
        task=Task.QA,
        subcategory="",
        request=request,
        response=response,
        label=Label.BENIGN,
        label_source=LabelSource.UPSTREAM,
        construction=Construction.LABELLED,
        source="served",
        licence="",
    )


TRIAL = sample_of(
    (Message(role=Role.USER, content="?"),),
    (
        Message(
            role=Role.ASSISTANT,
            content="?",
            thinking="?",
            tool_calls=(ToolCall(id="", name="?", arguments=""),),
        ),
        Message(role=Role.TOOL, content="?"),
    ),
)
"""Sample that a model is tried with before anybody waits for it; every view shows something of it."""
