"""The elicitation stage: a subject model answers real questions, without and with a cue or an incentive.

Writes `data/elicited/<subject>-<hash>/`: `trials.jsonl` (the questions), `answers.jsonl` (what was
answered, append-only, found again by key) and a manifest. Interrupted, it resumes with what is missing;
finished, it is reused. Pairs are made from these files alone, by `corpus.elicited`.
"""

import datetime
import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from monitorbench.config.base import ConfigError
from monitorbench.config.engine import Engine
from monitorbench.config.monitor import Monitor
from monitorbench.config.sources import Cues, Elicit, Source
from monitorbench.config.study import Paths, Reasoning, Study
from monitorbench.construct.counterfactual import (
    CounterfactualTrial,
    SubjectAnswer,
    next_request,
    request_key,
)
from monitorbench.construct.cues.questions import coding_trials, trials, trials_as_published
from monitorbench.corpus.elicited import (
    Elicited,
    ListedTrial,
    answer_key,
    by_request,
    pairs_by_source,
)
from monitorbench.engines.protocol import Decoding, Model, Request
from monitorbench.engines.two_passes import ReasoningTokens, think_first
from monitorbench.prompts.render import templated
from monitorbench.records import Category, Message, Role
from monitorbench.runs.directory import RunDirectory
from monitorbench.runs.files import write_atomically
from monitorbench.runs.keyed_log import KeyedLog, open_log
from monitorbench.runs.progress import progress
from monitorbench.sources import fetch
from monitorbench.sources.all import SOURCES
from monitorbench.sources.declaration import SubjectQuestions
from monitorbench.sources.read import SourceFiles

_log = logging.getLogger(__name__)


class _Question(NamedTuple):
    key: str
    request: str
    token_ids: tuple[int, ...]


def elicit(study: Study) -> Path:
    """Ask what has no answer yet; returns the directory.

    Raises `ConfigError` for an unknown cue kind or source, `UserError` where a source or the weights are
    missing, or where another process writes the same answers.
    """
    from monitorbench.engines.weights import weights_identity

    if study.monitor.adapter is not None:
        raise ConfigError(f"monitor.adapter={study.monitor.adapter}: a subject has no adapter; expected null")
    if study.monitor.head is not None:
        raise ConfigError(f"monitor.head={study.monitor.head}: a subject is a model; expected null")
    if not study.engine.takes_token_ids:
        raise ConfigError(
            f"engine={study.engine.kind}: a subject is asked by token ids; expected transformers or vllm"
        )
    lines = list(_lines(study.elicit, study.cue, study.source, study.paths, study.seed))
    subject = {
        "weights": weights_identity(study.monitor),
        "engine": study.engine.kind,
        "dtype": study.engine.precision,
        "context_tokens": study.monitor.context_tokens,
        "opening": study.monitor.opening,
        "max_new_tokens": study.elicit.max_new_tokens,
        **({"reasoning": study.monitor.reasoning.model_dump()} if study.monitor.reasoning else {}),
    }
    listed = "".join(line.model_dump_json() + "\n" for line in lines)
    identity = {
        "subject": subject,
        "trials": hashlib.sha256(listed.encode("utf-8", "surrogatepass")).hexdigest(),
        "resist": study.cue.resist,
    }
    run = RunDirectory(study.paths.data / "elicited", study.monitor.name, identity, is_shared=True)
    if run.done:
        _log.info("elicit: reusing %s", run.path)
        return run.path
    with run.recording(study) as results, open_log(run.path / "answers.jsonl", Elicited) as log:
        write_atomically(run.path / "trials.jsonl", listed)
        model = _subject(
            study.monitor, study.engine, study.paths.models, study.elicit.max_new_tokens, subject
        )
        ask_all([line.trial for line in lines], study.cue.resist, model, log)
        results["subject"] = {"name": study.monitor.name, **subject}
        results["resist"] = study.cue.resist
        results["trials"] = dict(Counter(line.source for line in lines))
        results["answers"] = len(log.entries)
        name = study.monitor.name
        for source, constructed in pairs_by_source(
            lines, by_request(log.entries.values()), name, "", study.cue.resist
        ).items():
            counts = {"pairs": len(constructed.samples) // 2, "rejected": dict(constructed.rejected)}
            results.setdefault("outcome", {})[source] = counts
            _log.info("elicit: %s: %s", source, counts)
    return run.path


def _lines(
    settings: Elicit, cue: Cues, upstream: Mapping[str, Source], paths: Paths, seed: int
) -> Iterator[ListedTrial]:
    """Each source's trials, the first `max_questions` by hash of the id."""
    if unknown := sorted(set(settings.kinds) - set(cue.kinds)):
        raise ConfigError(f"elicit.kinds={unknown[0]}: expected one of {', '.join(sorted(cue.kinds))}")
    for name in settings.sources:
        questions = SOURCES[name].questions if name in SOURCES else None
        if name not in upstream or questions is None:
            expected = ", ".join(sorted(source.name for source in SOURCES.values() if source.questions))
            raise ConfigError(f"elicit.sources={name}: expected sources with known answers: {expected}")
        gaming = cue.category == Category.SPECIFICATION_GAMING.value
        if questions.kind == ("cued" if gaming else "coding"):
            expected = "default" if gaming else "incentive"
            raise ConfigError(f"elicit.sources={name}, cue={cue.name}: asked with cue={expected} only")
        source = upstream[name]
        files = fetch.find(name, source, paths.sources, paths.data / ".sources", "skip")
        all_trials = _asked(questions, files, settings, cue, seed)
        by_hash = sorted({trial.id for trial in all_trials}, key=lambda id_: _hash(f"{name}/{id_}"))
        asked_ids = {id_: number for number, id_ in enumerate(by_hash[: settings.max_questions])}
        selected = [trial for trial in all_trials if trial.id in asked_ids]
        for trial in sorted(selected, key=lambda trial: asked_ids[trial.id]):
            yield ListedTrial(source=name, licence=source.licence, trial=trial)


def _asked(
    asked: SubjectQuestions, files: SourceFiles, elicit: Elicit, cue: Cues, seed: int
) -> list[CounterfactualTrial]:
    rows: Iterable[Any] = asked.load(files)
    match asked.kind:
        case "known":
            return trials(
                rows,
                cue,
                seed=seed,
                task=asked.task,
                kinds=elicit.kinds,
                kinds_per_question=elicit.kinds_per_question,
            )
        case "cued":
            return trials_as_published(rows, task=asked.task)
        case "coding":
            return coding_trials(rows, seed=seed, kinds_per_question=elicit.kinds_per_question)


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


class Subject(NamedTuple):
    """The subject model: how a request becomes token ids, what answers them, and what names both in a key.

    One with `reasoning` thinks first, in a pass of its own.
    """

    identity: Mapping[str, Any]
    token_ids: Callable[[Sequence[Message]], tuple[int, ...]]
    model: Model
    decoding: Decoding
    most_prompt_tokens: int
    reasoning: ReasoningTokens | None = None


def ask_all(
    asked: Sequence[CounterfactualTrial], resist: Sequence[str], subject: Subject, log: KeyedLog[Elicited]
) -> None:
    """Ask in rounds until nothing is pending: Q, then Q' where Q was answered rightly, then to resist.

    A question that has an answer in the log is not repeated. The model is closed at the end, whatever it is.
    """
    answers: dict[str, SubjectAnswer] = {}
    try:
        while True:
            wanted = [next_request(trial, answers, resist) for trial in asked]
            requests = {request_key(request): request for request in wanted if request is not None}
            if not requests:
                return
            all_of_them = [_keyed(name, request, subject) for name, request in requests.items()]
            pending = [item for item in all_of_them if item.key not in log.entries]
            for item in pending:
                if len(item.token_ids) > subject.most_prompt_tokens:
                    log.append(
                        Elicited(
                            key=item.key,
                            request=item.request,
                            text="",
                            finish_reason="too_long",
                            prompt_tokens=len(item.token_ids),
                        )
                    )
            _ask(subject, [item for item in pending if item.key not in log.entries], log)
            answers |= by_request(log.entries[item.key] for item in all_of_them)
    finally:
        subject.model.close()


def _keyed(name: str, request: Sequence[Message], subject: Subject) -> _Question:
    token_ids = subject.token_ids(request)
    return _Question(answer_key(token_ids, subject.identity), name, token_ids)


def _ask(subject: Subject, pending: Sequence[_Question], log: KeyedLog[Elicited]) -> None:
    if not pending:
        return
    requests = [Request(token_ids=item.token_ids) for item in pending]
    with progress("elicit: answers", len(pending)) as ticker:
        replies = (
            subject.model.answers(requests, subject.decoding)
            if subject.reasoning is None
            else think_first(subject.model, requests, subject.decoding, subject.reasoning)
        )
        for index, reply in replies:
            log.append(
                Elicited(
                    key=pending[index].key,
                    request=pending[index].request,
                    text=reply.text,
                    finish_reason=reply.finish_reason,
                    reasoning=reply.reasoning,
                    prompt_tokens=len(requests[index].token_ids),
                    completion_tokens=reply.completion_tokens,
                    seconds=round(reply.seconds, 4),
                )
            )
            ticker.advance()


def _subject(
    monitor: Monitor, engine: Engine, models: Path, max_new_tokens: int, identity: Mapping[str, Any]
) -> Subject:
    from monitorbench.engines.open import open_model

    model = open_model(monitor, engine, models)
    tokenizer: Any = model.tokenizer
    end: int = tokenizer.eos_token_id
    try:
        reasoning = _reasoning_tokens(tokenizer, monitor.reasoning)
    except ConfigError:
        model.close()
        raise
    most_new = max_new_tokens + (reasoning.max_tokens + 1 if reasoning else 0)
    return Subject(
        identity,
        lambda request: chat_ids(tokenizer, request, monitor.opening, monitor.template_date),
        model,
        Decoding(max_new_tokens, (end,), (end,)),
        monitor.context_tokens - most_new,
        reasoning,
    )


def _reasoning_tokens(tokenizer: Any, reasoning: Reasoning | None) -> ReasoningTokens | None:
    """How a subject that reasons first does so; `ConfigError` where its tokenizer has no such token."""
    if reasoning is None:
        return None
    ids: list[int] = tokenizer(reasoning.end, add_special_tokens=False).input_ids
    if len(ids) != 1:
        raise ConfigError(f"monitor.reasoning.end={reasoning.end!r} is {len(ids)} tokens, expected one")
    then = tokenizer(reasoning.then, add_special_tokens=False).input_ids
    return ReasoningTokens(ids[0], tuple(then), reasoning.max_tokens)


def chat_ids(
    tokenizer: Any, request: Sequence[Message], opening: str = "", date: datetime.date | None = None
) -> tuple[int, ...]:
    """A request as the subject's own chat template puts it, up to where its answer starts.

    Where the template has no system turn its text goes before the first user turn.
    """
    from jinja2.exceptions import TemplateError

    turns = [{"role": message.role.value, "content": message.content} for message in request]
    try:
        text = templated(tokenizer, turns, date=date, add_generation_prompt=True)
    except TemplateError:
        if request[0].role is not Role.SYSTEM:
            raise
        merged = {"role": "user", "content": f"{turns[0]['content']}\n\n{turns[1]['content']}"}
        text = templated(tokenizer, [merged, *turns[2:]], date=date, add_generation_prompt=True)
    return tuple(tokenizer(text + opening, add_special_tokens=False).input_ids)
