"""Logs of Inspect AI (and of control-arena, which runs on it) to samples; inspect-ai itself is not needed.

Owns what a logged sample means: the messages up to the model's first own turn are the request, the rest is
the response. Promises: a label is in the file of labels or in the score's listed values, or there is none; a
sample without one is an error or a counted skip, never benign.
Format: https://inspect.aisi.org.uk/eval-logs.html and `inspect_ai.log.EvalSample` (log versions 1 and 2).
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.conversations.read import MessageReader, NoChat, UnknownContent
from monitorbench.records import (
    Construction,
    Label,
    LabelSource,
    Message,
    Role,
    Sample,
)
from monitorbench.sources.files.inspect_archive import MAX_BYTES, Logged, logged_samples
from monitorbench.sources.read import BadRow, SourceFiles
from monitorbench.untrusted import with_compressed
from monitorbench.untrusted_rows import rows

VERSION = 4
"""Raised whenever the same files become other samples."""

_log = logging.getLogger(__name__)

SUFFIXES = (".eval", *with_compressed(".json"))

_ATTACHMENT = "attachment://"


class _Labelled(NamedTuple):
    label: Label
    by: LabelSource


Labeller = Callable[[Logged], _Labelled]


def load(
    files: SourceFiles,
    *,
    labels: Path | None,
    score: str,
    misbehavior_values: Sequence[str],
    benign_values: Sequence[str],
    category: str,
    task: str,
    unknown: UnknownContent = "show",
) -> Iterator[Sample]:
    """The samples of logs (`fetch.local(name, path, SUFFIXES, on_bad_row)`), in the logs' order.

    The label is looked up in the file `labels` (columns id or sample_id, label; epoch and log where needed),
    or it is the value of the scorer `score` (`name`, or `name.key` of a value that is an object): in
    `misbehavior_values` or in `benign_values`. `group_id` is the task and the sample id, so that epochs and
    models of one question stay together; every sample is a pair of its own.

    Raises `UserError` for a log that can't be read, for a bad sample where `on_bad_row` is `error`, where
    not exactly one of `labels` and `score` is given, and where no sample is usable.
    """
    if (labels is None) == (not score):
        raise UserError(
            f"{files.name}: set one of dataset.labels (a file) and dataset.score (a scorer's name)"
        )
    lines: list[_Line] = []
    used: Counter[str] = Counter()
    if labels is not None:
        lines = list(_read_labels(files.name, labels))
        label_of = _from_labels(labels.name, lines, used)
    else:
        label_of = _from_score(files.name, score, misbehavior_values, benign_values)
    count = 0
    for logged in logged_samples(files):
        try:
            if logged.unusable:
                raise BadRow(logged.unusable)
            sample = _sample(logged, label_of(logged), category, task, unknown)
        except (BadRow, NoChat) as error:
            files.bad(logged.where, str(error))
            continue
        if files.unique(logged.where, sample.id):
            count += 1
            yield sample
    if unused := [line for line in lines if line.place not in used]:
        first = ", ".join(f"{line.id} in {line.place}" for line in unused[:5])
        more = ", …" if len(unused) > 5 else ""
        message = "%s: labels that are not used, since no usable sample has their id: %d (%s%s)"
        _log.warning(message, files.name, len(unused), first, more)
    if not count:
        raise UserError(f"{files.name}: no usable sample in {len(files.matching())} log(s)")


def _sample(logged: Logged, labelled: _Labelled, category: str, task: str, unknown: UnknownContent) -> Sample:
    request, own = messages(logged.row, unknown, logged.model)
    if not request or not own:
        raise BadRow("no message before the model's first turn" if own else "the model never took a turn")
    output = logged.row.get("output")
    answered_by = output.get("model") if isinstance(output, Mapping) else ""
    return Sample(
        pair_id=f"{logged.run}-{logged.id}-{logged.epoch}",
        group_id=f"{logged.task}-{logged.id}",
        category=category,
        task=task,
        subcategory=logged.task,
        request=request,
        response=own,
        label=labelled.label,
        label_source=labelled.by,
        construction=Construction.LABELLED,
        subject_model=logged.model or str(answered_by or ""),
        source="inspect_log",
        licence="not stated",
        own_id=str(logged.id),
    )


# --- messages ------------------------------------------------------------------------------------------


def messages(
    row: Mapping[str, Any], unknown: UnknownContent = "show", model: str = ""
) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """Return the messages before the model's first own turn, and those from it on.

    Assistant turns that came with the sample's input (few-shot examples) are no turns of the model, whose
    name in the log is `model`. Raises `NoChat` for what is no list of chat messages, `BadRow` for an
    attachment that is not in the log.
    """
    before: list[Message] = []
    own: list[Message] = []
    for turn in turns(row, unknown, model):
        (own if own or turn.is_own else before).extend(turn.messages)
    return tuple(before), tuple(own)


class Turn(NamedTuple):
    """One logged message, read."""

    messages: tuple[Message, ...]
    is_own: bool
    """Whether the model wrote it in this run."""
    metadata: object
    """Notes beside the message, such as a monitor's score of it."""


def turns(row: Mapping[str, Any], unknown: UnknownContent = "show", model: str = "") -> Iterator[Turn]:
    """Each message of a logged sample; raises as `messages` does."""
    rows = row.get("messages")
    if not isinstance(rows, list):
        raise BadRow("missing field 'messages'")
    attachments = _Attachments(row.get("attachments"))
    reader = MessageReader(unknown)
    for number, item in enumerate(rows):
        message = attachments.resolved(item, f"messages.{number}")
        notes = None
        if isinstance(message, dict):
            notes = message.pop("metadata", None)  # of the harness and its monitors; no model was shown it
            if model and message.get("model") == model:
                del message["model"]
        read = tuple(reader.messages(message, f"messages.{number}"))
        is_own = read[0].role is Role.ASSISTANT and item.get("source") != "input"
        yield Turn(read, is_own, notes)


class _Attachments:
    """Texts of a sample that stand in its log once, and in its messages by name, however often."""

    def __init__(self, texts: object) -> None:
        self._texts = texts if isinstance(texts, Mapping) else {}
        self._left = MAX_BYTES

    def resolved(self, value: object, where: str) -> Any:
        """Put the texts in the place of their names; `BadRow` where they come to too much."""
        if isinstance(value, str) and value.startswith(_ATTACHMENT):
            name = value.removeprefix(_ATTACHMENT)
            if name not in self._texts:
                raise BadRow(f"{where}: attachment {name[:8]}… is not in the log")
            self._left -= len(str(self._texts[name]))
            if self._left < 0:
                raise BadRow(f"{where}: attachments of more than {MAX_BYTES >> 20} MiB in its messages")
            return self._texts[name]
        if isinstance(value, Mapping):
            return {key: self.resolved(inner, where) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.resolved(inner, where) for inner in value]
        return value


# --- labels --------------------------------------------------------------------------------------------


class _Line(NamedTuple):
    place: str
    id: str
    epoch: str
    log: str
    label: Label

    def fits(self, logged: Logged) -> bool:
        return self.epoch in ("", str(logged.epoch)) and self.log in ("", logged.log)


def _from_labels(file: str, lines: Sequence[_Line], used: Counter[str]) -> Labeller:
    """Look labels up in the lines of a file; `used` counts by place the samples that each was for."""
    by_id: dict[str, list[_Line]] = {}
    for line in lines:
        by_id.setdefault(line.id, []).append(line)

    def label_of(logged: Logged) -> _Labelled:
        fitting = [line for line in by_id.get(str(logged.id), []) if line.fits(logged)]
        if not fitting:
            raise BadRow(f"no label: {file} has no line for sample {logged.id}, epoch {logged.epoch}")
        if len(fitting) > 1:
            places = " and ".join(line.place for line in fitting)
            raise BadRow(f"two labels: {places} of {file} both fit")
        used[fitting[0].place] += 1
        if used[fitting[0].place] > 1:
            raise BadRow(
                f"no label of its own: {fitting[0].place} of {file} fits another sample too; "
                "add the columns epoch and log"
            )
        return _Labelled(fitting[0].label, LabelSource.ANNOTATORS)

    return label_of


def _read_labels(name: str, path: Path) -> Iterator[_Line]:
    for place, row in rows(path, "dataset.labels"):
        id_column = next((column for column in ("id", "sample_id") if column in row), None)
        if id_column is None or "label" not in row:
            raise UserError(
                f"{name}: {path}: expected the columns id (or sample_id), label and where needed epoch and "
                f"log; found {', '.join(row) or 'none'}"
            )
        id_, label, epoch, log = (str(row.get(c, "")).strip() for c in (id_column, "label", "epoch", "log"))
        if label not in set(Label):
            raise UserError(
                f"{name}: {path.name} {place}: field 'label': {label!r} is no label; "
                "expected misbehavior or benign"
            )
        yield _Line(place, id_, epoch, log, Label(label))


def _from_score(name: str, score: str, misbehavior: Sequence[str], benign: Sequence[str]) -> Labeller:
    if not misbehavior or not benign or set(misbehavior) & set(benign):
        raise UserError(
            f"{name}: dataset.misbehavior_values and dataset.benign_values: expected a value in each, "
            "and none in both"
        )

    def label_of(logged: Logged) -> _Labelled:
        value = _shown(_score(logged, score))
        if value in misbehavior:
            return _Labelled(Label.MISBEHAVIOR, LabelSource.JUDGE)
        if value in benign:
            return _Labelled(Label.BENIGN, LabelSource.JUDGE)
        raise BadRow(
            f"no label: score {score!r} is {value!r}; neither in misbehavior_values nor in benign_values"
        )

    return label_of


def _score(logged: Logged, score: str) -> object:
    values = {name: entry.get("value") for name, entry in logged.scores.items()}
    parent, _, key = score.rpartition(".")
    if score in values:
        return values[score]
    if isinstance(parts := values.get(parent), Mapping) and key in parts:
        return parts[key]
    raise BadRow(f"no label: the sample has no score {score!r}; found {', '.join(values) or 'none'}")


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, int | float) else str(value)
