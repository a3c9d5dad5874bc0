"""Traffic with scores and no labels, read from the logs of one or several monitors.

A file has a line a judged sample, as a guardrail's log or a run's verdicts have it, perhaps with labels
already. Promises: all files have the same samples; a sample that was judged several times counts once, by its
highest score, and is unscored where one of these is. A line that can't be used is a `UserError` that names
it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.labelling import Labelling
from monitorbench.conversations.chats import messages_in
from monitorbench.conversations.read import NoChat
from monitorbench.interop.imports.columns import absent_column
from monitorbench.metrics.bootstrap import FloatArray, IntArray, group_index
from monitorbench.prompts.transcript import transcript
from monitorbench.records import Label
from monitorbench.untrusted_rows import rows, share


@dataclass(frozen=True, eq=False)
class Pool:
    """Samples of a deployment, judged by some monitors."""

    ids: list[str]
    groups: IntArray
    """[samples]"""
    monitors: list[str]
    """Names of the files, without their endings."""
    thresholds: list[float]
    scores: FloatArray
    """[monitors, samples], NaN where unscored."""
    texts: dict[str, tuple[str, str]]
    """Request and response by sample id, where the files have them."""
    labels: dict[str, tuple[str, float]]
    """Labels that the files have by sample id, with the probability of each."""
    n_rows: dict[str, int]
    """Rows that were read of each file of scores."""

    @cached_property
    def rows(self) -> dict[str, int]:
        """The row of each sample by its id."""
        return {name: row for row, name in enumerate(self.ids)}

    @property
    def flagged(self) -> FloatArray:
        """1 above the threshold, else 0; NaN where unscored [monitors, samples]."""
        above = self.scores > np.array(self.thresholds)[:, None]
        return np.where(np.isnan(self.scores), np.nan, above.astype(np.float64))

    @cached_property
    def suspicion(self) -> FloatArray:
        """The mean rank of a sample's scores among each monitor's, in [0, 1]; unscored ranks highest."""
        filled = np.where(np.isnan(self.scores), inf, self.scores)
        ranks = [np.unique(row, return_inverse=True)[1] / max(1, len(row)) for row in filled]
        suspicion: FloatArray = np.mean(ranks, axis=0)
        return suspicion


def read_pool(
    settings: Labelling, *, is_queue: bool = False, upto: Mapping[str, int] = MappingProxyType({})
) -> Pool:
    """Read the files of `label.scores` and, if there is one, of `label.texts`.

    The files of a queue are one monitor's, one behind the other. `upto` are the rows to read of a file that
    has grown since.
    """
    if not settings.scores:
        raise ConfigError("label.scores=[]: no file given; expected JSON lines with sample_id and score")
    sources = [list(settings.scores)] if is_queue else [[file] for file in settings.scores]
    monitors = [files[0].stem for files in sources]
    if len(set(monitors)) < len(monitors):
        raise ConfigError(f"label.scores: {', '.join(monitors)} are monitors' names; expected different ones")
    read = [_Scores(files, upto) for files in sources]
    ids = list(read[0].scores)
    for files, other in zip(sources[1:], read[1:], strict=True):
        if differing := set(ids) ^ set(other.scores):
            raise UserError(
                f"{files[0]}: {len(differing)} samples are in this file or in {settings.scores[0]} alone, "
                f"such as {min(differing)!r}; expected the same samples"
            )
    for files, of in zip(sources, read, strict=True):
        if len(sources) > 1 and all(score is None for score in of.scores.values()):
            raise UserError(
                f"{files[0]}: no sample has a score, so that no label tells it from the other monitors; "
                "expected label.scores without it"
            )
    thresholds = list(settings.thresholds)
    if not thresholds:
        for files, of in zip(sources, read, strict=True):
            if len(of.thresholds) != 1:
                raise UserError(
                    f"{files[0]}: {len(of.thresholds)} thresholds in it; expected label.thresholds, one a "
                    "monitor"
                )
            thresholds += of.thresholds
    if len(thresholds) != len(sources):
        raise ConfigError(f"label.thresholds: {len(thresholds)} given; expected one for each of {monitors}")
    texts = read[0].texts if settings.texts is None else _Scores([settings.texts], {}, only_texts=True).texts
    return Pool(
        ids=ids,
        groups=group_index([read[0].groups.get(name, name) for name in ids]),
        monitors=monitors,
        thresholds=thresholds,
        scores=np.array([[of.scores[name] for name in ids] for of in read], dtype=np.float64),
        texts=texts,
        labels=read[0].labels_with_chances(settings.scores[0]),
        n_rows={file: n for of in read for file, n in of.n_rows.items()},
    )


class _Scores:
    """What files of a monitor say of each sample, in their order."""

    def __init__(self, files: Sequence[Path], upto: Mapping[str, int], *, only_texts: bool = False) -> None:
        self.n_rows = Counter[str]()
        self.scores: dict[str, float | None] = {}
        self.groups: dict[str, str] = {}
        self.texts: dict[str, tuple[str, str]] = {}
        self.thresholds: set[float] = set()
        self._labels: dict[str, tuple[str, float | None]] = {}
        setting = "label.texts" if only_texts else "label.scores"
        given = ((path, row) for path in files for row in islice(rows(path, setting), upto.get(str(path))))
        for file, row in given:
            where, line = f"{file}, {row.place}", row.fields
            self.n_rows[str(file)] += 1
            for needed in ("sample_id",) if only_texts else ("sample_id", "score"):
                if needed not in line:
                    raise UserError(absent_column(f"{where}: {needed}", needed, list(line)))
            name = line.get("sample_id")
            if not isinstance(name, str) or not name:
                raise UserError(f"{where}: sample_id={name!r}; expected a string")
            if line.get("request") is not None and line.get("response") is not None:
                texts = _text(line["request"], where), _text(line["response"], where)
                _refuse_another(self.texts.setdefault(name, texts), texts, f"{where}: {name!r}", "text")
            if only_texts:
                continue
            score = share(line, "score", where)
            before = self.scores.get(name, -inf)
            self.scores[name] = None if score is None or before is None else max(before, score)
            if (group := line.get("group")) not in (None, ""):
                self.groups[name] = str(group)
            if (threshold := share(line, "threshold", where, optional=True)) is not None:
                self.thresholds.add(threshold)
            if (label := line.get("label")) not in (None, ""):
                if label not in list(Label):
                    raise UserError(f"{where}: label={label!r}; expected misbehavior, benign or nothing")
                known = str(label), share(line, "probability", where, optional=True)
                _refuse_another(self._labels.setdefault(name, known), known, f"{where}: {name!r}", "label")

    def labels_with_chances(self, file: Path) -> dict[str, tuple[str, float]]:
        """Return the labels that are there; without probabilities only where every sample has one."""
        chances = {name: chance for name, (_, chance) in self._labels.items() if chance is not None}
        if len(chances) < len(self._labels) < len(self.scores) or 0 in chances.values():
            raise UserError(
                f"{file}: {len(self._labels)} of {len(self.scores)} samples have a label, {len(chances)} of "
                "them a probability; expected for each label the probability with which it was drawn"
            )
        return {name: (label, chances.get(name, 1.0)) for name, (label, _) in self._labels.items()}


def _refuse_another(before: object, now: object, where: str, what: str) -> None:
    """Raise `UserError` where a sample stands there again with another text or label: which is it of?"""
    if before != now:
        raise UserError(f"{where} stood there before with another {what}; expected a sample_id a sample")


def _text(value: Any, where: str) -> str:
    """A request or response as it is read by people: a string as it is, messages as a transcript."""
    if isinstance(value, str):
        return value
    try:
        return transcript(messages_in(value, where))
    except NoChat as error:
        raise UserError(str(error)) from error
