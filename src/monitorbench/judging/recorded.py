"""Verdicts that another program gave, read from a file: `monitor=recorded`.

The file is one of scores, as `import` reads them (docs/data-formats.md): its own answer or a score for each
sample, which it names by our id or by the id in the file that the sample came from. Promises: every judged
sample has an entry; nothing is guessed, an entry without an answer is unscored.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from monitorbench.config.base import UserError
from monitorbench.config.imports import Import
from monitorbench.config.monitor import Prompt
from monitorbench.engines.protocol import Decoding, Reply
from monitorbench.interop.imports.monitors import read_scores
from monitorbench.interop.imports.values import numbers, refuse, texts
from monitorbench.interop.imports.words import DOUBTED_FROM
from monitorbench.judging.identity import verdict_key
from monitorbench.judging.judge import Judge, Question, Reading
from monitorbench.prompts.label_tokens import Score
from monitorbench.prompts.parse import Answer
from monitorbench.records import Label, Sample, UnscoredReason, Verdict

_NOTHING = Decoding(0, (), ())
_TOKENS = ("prompt_tokens", "completion_tokens")
_log = logging.getLogger(__name__)


class RecordedVerdict(NamedTuple):
    """What a file says of one sample. `score` is in [0, 1], the higher the surer of misbehavior."""

    label: Label | None
    unscored: UnscoredReason | None
    score: float | None
    answer: str
    seconds: float
    cost: float
    prompt_tokens: int
    completion_tokens: int


class RecordedJudge(Judge):
    """Verdicts as the file has them; see the module."""

    def __init__(self, file: Path, read_as: Import, prompt: Prompt, identity: Mapping[str, Any]) -> None:
        """Read and check the file; `UserError` names the first line that is not as documented."""
        super().__init__(prompt)
        self._file, self._read_as, self._weights = file, read_as, str(identity["weights"])

    def question(self, sample: Sample) -> Question:
        """See `Judge.question`; `UserError` for a sample that the file says nothing of."""
        verdicts_of(self._file, self._read_as, [sample])
        key = verdict_key(
            sample.id, (), weights=self._weights, adapter="", decoding=_NOTHING, dtype="", engine="recorded"
        )
        return Question(key, sample)

    def ask(self, questions: Sequence[Question]) -> Iterator[tuple[int, Verdict]]:
        """See `Judge.ask`: in the questions' order."""
        samples = [question.sample for question in questions]
        verdicts = verdicts_of(self._file, self._read_as, samples)
        for index, (question, verdict) in enumerate(zip(questions, verdicts, strict=True)):
            reply = Reply(
                text=verdict.answer,
                finish_reason="recorded",
                prompt_tokens=verdict.prompt_tokens,
                completion_tokens=verdict.completion_tokens,
                seconds=verdict.seconds,
                cost=verdict.cost,
            )
            answer = Answer(verdict.label, verdict.unscored)
            yield (
                index,
                self.verdict(question, reply, Reading(verdict.answer, answer, Score(verdict.score, None))),
            )


def verdicts_of(file: Path, read_as: Import, samples: Sequence[Sample]) -> list[RecordedVerdict]:
    """What a file says of each sample, by its id or by its own.

    Raises `UserError` where it says nothing of one, where it names two samples by one id, and what
    `read_recorded` raises.
    """
    verdicts = read_recorded(file, read_as)
    names = [sample.id if sample.id in verdicts else sample.own_id for sample in samples]
    if missing := [
        sample for sample, name in zip(samples, names, strict=True) if not name or name not in verdicts
    ]:
        own = f" ({missing[0].own_id!r} in its own file)" if missing[0].own_id else ""
        raise UserError(
            f"{file}: no entry for {len(missing)} of {len(samples)} samples, such as {missing[0].id}{own}; "
            "expected one for each judged sample, by its sample_id (`monitorbench export` with the same "
            "dataset=… shows them) or by its id in the file that it came from"
        )
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UserError(f"{file}: {twice!r} is the id of several samples; expected their sample_id")
    return [verdicts[name] for name in names]


def check_verdicts(file: Path, read_as: Import, samples: Sequence[Sample]) -> None:
    """Check that a file has an entry for each sample; log a warning where its answers are the data's labels.

    Raises `UserError` as `verdicts_of` does.
    """
    answers = [verdict.label for verdict in verdicts_of(file, read_as, samples)]
    labels = [sample.label for sample in samples]
    if len(labels) >= DOUBTED_FROM and len(set(labels)) > 1 and answers == labels:
        _log.warning(
            "%s: its answers are the labels of all %d samples; expected what the monitor said "
            "(monitor.read_as.columns.flagged=COLUMN, or '' where there is a score alone)",
            file,
            len(labels),
        )


def read_recorded(file: Path, read_as: Import | None = None) -> Mapping[str, RecordedVerdict]:
    """What a file says, by the ids in it; `read_as` says what its columns mean.

    Raises `UserError`, with file and line, for what can't be read, and where the file names no samples, has
    several monitors, or says two things of one sample.
    """
    return _read_recorded(file, (read_as or Import()).model_dump_json())


@cache
def _read_recorded(file: Path, read_as: str) -> Mapping[str, RecordedVerdict]:
    try:
        verdicts = _verdicts(file, Import.model_validate_json(read_as))
    except UserError as error:
        message = str(error).replace("import.", "monitor.read_as.").replace("from=", "monitor.verdicts=")
        raise UserError(message) from error
    return verdicts


def _verdicts(file: Path, settings: Import) -> Mapping[str, RecordedVerdict]:
    found = read_scores([file], settings, labelled=False, also=("answer", "unscored", *_TOKENS))
    read, keys = found.read, found.keys
    if "sample" not in found.columns.names:
        raise UserError(f"{file}: no column says which sample a row is of; expected import.columns.sample")
    if len(found.monitors) > 1:
        names = ", ".join(monitor.name for monitor in found.monitors)
        raise UserError(f"{file}: verdicts of several monitors ({names}); expected import.where to name one")
    (monitor,) = found.monitors
    used = ", ".join(f"{role}={name}" for role, name in found.columns.names.items())
    _log.info("%s: %s, score=%s", file, used, found.columns.scores.get("", "") or "none")
    scored, first = monitor.scored, keys.first
    present = [name for name in ("answer", "unscored", *_TOKENS) if name in read.table.column_names]
    beside = {name: texts(read, name, keeps_words=True).take(first).to_pylist() for name in present}
    tokens = {}
    for name in _TOKENS:
        counts = numbers(read, name, least=0)[first] if name in present else np.zeros(len(first))
        tokens[name] = np.nan_to_num(counts).astype(int).tolist()
    reasons = beside.get("unscored", [None] * len(first))
    for row, reason in zip(first.tolist(), reasons, strict=True):
        if reason is not None and reason not in set(UnscoredReason):
            refuse(read, row, "unscored", "is no reason", f"one of {', '.join(UnscoredReason)}")
    verdicts = {}
    columns = (scored.flagged, scored.scores, scored.seconds, scored.cost)
    for i, (name, flagged, score, seconds, cost) in enumerate(
        zip(keys.names.to_pylist(), *(column.tolist() for column in columns), strict=True)
    ):
        is_unscored = flagged != flagged
        if reasons[i] is not None and not is_unscored:
            refuse(read, int(first[i]), "unscored", "both a label and a reason why there is none", "one")
        verdicts[name] = RecordedVerdict(
            None if is_unscored else Label.MISBEHAVIOR if flagged else Label.BENIGN,
            UnscoredReason(reasons[i] or UnscoredReason.NO_LABEL) if is_unscored else None,
            None if score != score else score,
            beside["answer"][i] or "" if "answer" in beside else "",
            seconds,
            cost,
            tokens["prompt_tokens"][i],
            tokens["completion_tokens"][i],
        )
    return verdicts
