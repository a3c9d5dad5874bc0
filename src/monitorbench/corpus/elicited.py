"""Answers of a subject model, read back: pairs for a corpus, without any model library.

Owns how a directory of `corpus.elicit` is read, and what of it decides a dataset's content. The log
`answers.jsonl` is append-only, one line per request, found by a key that hashes the request's token ids and
the model, engine and decoding that answered.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from monitorbench import strict_json, untrusted
from monitorbench.config.base import UserError
from monitorbench.construct.counterfactual import CounterfactualTrial, SubjectAnswer, counterfactual_pairs
from monitorbench.construct.pair import Constructed
from monitorbench.records import Sample
from monitorbench.runs.directory import checked_file, read_finished
from monitorbench.runs.files import content_hash
from monitorbench.runs.keyed_log import read_log


class ListedTrial(BaseModel):
    """A line of `trials.jsonl`: a trial, and where its question is from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    licence: str
    trial: CounterfactualTrial


class Elicited(BaseModel):
    """One answer. `request` is the hash of its messages, by which construction finds it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    request: str
    text: str
    finish_reason: str
    reasoning: str = ""
    """Reasoning of a subject that reasons first, before `text`."""
    prompt_tokens: Annotated[int, Field(ge=0)]
    completion_tokens: Annotated[int, Field(ge=0)] = 0
    seconds: Annotated[float, Field(ge=0)] = 0.0


def answer_key(token_ids: Sequence[int], subject: Mapping[str, Any]) -> str:
    """Hash what decides an answer: the token ids, and the subject (weights, dtype, engine, decoding)."""
    text = json.dumps([list(token_ids), subject], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def elicited_pairs(elicited: Sequence[Path], name: str) -> Constructed:
    """The pairs of one source in the directories `dataset.elicited`, and why their other trials rejected.

    Empty where no subject was asked that source's questions. Raises `UserError` where a directory is
    missing, not finished, or has a foreign line, or where two hold the same.
    """
    samples: list[Sample] = []
    rejected: Counter[str] = Counter()
    for directory, identity in _distinct(elicited):
        lines = [line for line in _trials(checked_file(directory, "trials.jsonl")) if line.source == name]
        answers = by_request(read_log(directory / "answers.jsonl", Elicited))
        run = content_hash(identity)
        constructed = pairs_by_source(lines, answers, identity["subject"], run, identity["resist"])
        if name in constructed:
            samples += constructed[name].samples
            rejected += constructed[name].rejected
    return Constructed(samples, rejected)


def elicited_identity(elicited: Sequence[Path]) -> list[dict[str, Any]]:
    """Identities of the `dataset.elicited` directories: the files' content, not their place or order."""
    return [identity for _, identity in _distinct(elicited)]


def _distinct(elicited: Sequence[Path]) -> list[tuple[Path, dict[str, Any]]]:
    """The directories with their identities, in the order of these; `UserError` where two are the same."""
    by_hash: dict[str, tuple[Path, dict[str, Any]]] = {}
    for directory in elicited:
        identity = _identity(directory)
        if (first := by_hash.setdefault(content_hash(identity), (directory, identity)))[0] != directory:
            raise UserError(
                f"dataset.elicited: {first[0]} and {directory} hold the same answers; name one of them"
            )
    return [by_hash[key] for key in sorted(by_hash)]


def _identity(directory: Path) -> dict[str, Any]:
    results = read_finished(directory)["results"]
    hashes = {
        file: hashlib.sha256((directory / file).read_bytes()).hexdigest()
        for file in ("trials.jsonl", "answers.jsonl")
    }
    return {"subject": results["subject"]["name"], "resist": results["resist"], **hashes}


def pairs_by_source(
    lines: Iterable[ListedTrial],
    answers: Mapping[str, SubjectAnswer],
    subject: str,
    run: str,
    resist: Sequence[str],
) -> dict[str, Constructed]:
    """The pairs of each source that trials are listed of; `run` tells the pairs of several runs apart."""
    by_source: dict[str, list[ListedTrial]] = {}
    for line in lines:
        by_source.setdefault(line.source, []).append(line)
    return {
        source: counterfactual_pairs(
            [line.trial for line in members],
            answers,
            resist,
            subject=subject,
            run=run,
            source=source,
            licence=members[0].licence,
        )
        for source, members in by_source.items()
    }


def by_request(answers: Iterable[Elicited]) -> dict[str, SubjectAnswer]:
    """Answers by the hash of their request; an answer is whole where the model ended its turn."""
    return {
        answer.request: SubjectAnswer(answer.text, answer.finish_reason == "stop", answer.reasoning)
        for answer in answers
    }


def _trials(path: Path) -> list[ListedTrial]:
    lines = []
    for number, text in untrusted.lines(path):
        try:
            if text.strip():
                strict_json.loads(text)
                lines.append(ListedTrial.model_validate_json(text))
        except ValueError as error:  # no UTF-8, no JSON, or no trial
            raise UserError(f"{path}:{number}: no trial; remove the directory and elicit again") from error
    return lines
