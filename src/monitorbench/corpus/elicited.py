"""What a subject model answered, read back: pairs for a corpus, without any model library.

Owns how a directory of `corpus.elicit` is read, and what of it decides a dataset's content.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from monitorbench import strict_json
from monitorbench.config.base import UserError
from monitorbench.construct.cues.questions import SubjectAnswer, Trial, counterfactual_pairs
from monitorbench.construct.pair import Constructed
from monitorbench.runs.answer_log import Elicited, read_answers
from monitorbench.runs.directory import checked_file, read_finished


class ListedTrial(BaseModel):
    """A line of `trials.jsonl`: a trial, and where its question is from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    licence: str
    trial: Trial


def elicited_pairs(elicited: Path | None, name: str) -> Constructed:
    """The pairs of one source in the directory `dataset.elicited`, and why its other trials rejected.

    Empty where the subject was not asked that source's questions. Raises `UserError` where the directory
    is missing, not finished, or has a foreign line.
    """
    if elicited is None:
        return Constructed([], Counter())
    results = read_finished(elicited)["results"]
    lines = [line for line in _trials(checked_file(elicited, "trials.jsonl")) if line.source == name]
    answers = by_request(read_answers(elicited / "answers.jsonl"))
    made = pairs_by_source(lines, answers, results["subject"]["name"], results["resist"])
    return made.get(name, Constructed([], Counter()))


def elicited_identity(elicited: Path | None) -> dict[str, Any]:
    """What of `dataset.elicited` decides its pairs: the content of its files, never its place."""
    if elicited is None:
        return {}
    results = read_finished(elicited)["results"]
    hashes = {
        file: hashlib.sha256((elicited / file).read_bytes()).hexdigest()
        for file in ("trials.jsonl", "answers.jsonl")
    }
    return {"subject": results["subject"]["name"], "resist": results["resist"], **hashes}


def pairs_by_source(
    lines: Iterable[ListedTrial], answers: Mapping[str, SubjectAnswer], subject: str, resist: Sequence[str]
) -> dict[str, Constructed]:
    """The pairs of each source that trials are listed of."""
    by_source: dict[str, list[ListedTrial]] = {}
    for line in lines:
        by_source.setdefault(line.source, []).append(line)
    return {
        source: counterfactual_pairs(
            [line.trial for line in members],
            answers,
            resist,
            subject=subject,
            source=source,
            licence=members[0].licence,
        )
        for source, members in by_source.items()
    }


def by_request(answers: Iterable[Elicited]) -> dict[str, SubjectAnswer]:
    """Answers by the hash of their request; an answer is whole where the model ended its turn."""
    return {answer.request: SubjectAnswer(answer.text, answer.finish_reason == "stop") for answer in answers}


def _trials(path: Path) -> list[ListedTrial]:
    lines = []
    for number, text in enumerate(path.read_bytes().split(b"\n"), 1):
        try:
            if text:
                strict_json.loads(text)
                lines.append(ListedTrial.model_validate_json(text))
        except (ValueError, RecursionError) as error:  # no UTF-8, no JSON, or no trial
            raise UserError(f"{path}:{number}: no trial; remove the directory and elicit again") from error
    return lines
