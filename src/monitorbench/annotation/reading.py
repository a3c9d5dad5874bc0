"""What the stages of annotation read: samples still to be labelled, and what annotators returned.

A candidate is a row of a Parquet or JSONL file with the fields of `Sample`; `label`, if it has one, is what
annotators are compared with, and `label_source`, `construction` and `gold_spans` go with it. Of answers there
is each annotator's to every item, exactly once. Nothing is guessed and nothing dropped: a row that can't be
used, or an item without an answer, is a `UserError` of one line that names file, row and what to do.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from monitorbench.annotation.files import SPREADSHEET_CELL, AnnotationItem, ReturnedRow, read_returned
from monitorbench.annotation.labels import AnnotatorChoice, UnlabelledSample
from monitorbench.config.base import UserError
from monitorbench.records import Split
from monitorbench.untrusted_rows import rows

_OF_THE_LABEL = ("id", "label", "label_source", "construction", "gold_spans")


def read_candidates(path: Path, split: Split) -> list[UnlabelledSample]:
    """All candidates of a file, in its order.

    Raises `UserError` for a row that is no candidate, has an id that is not its content's, is there
    twice, or belongs to another split: labels for `split` must not come from a training sample.
    """
    seen: dict[str, str] = {}
    samples: list[UnlabelledSample] = []
    for place, row in rows(path, "annotation.candidates"):
        where = f"{path}, {place}"
        fields = {name: value for name, value in row.items() if name not in _OF_THE_LABEL}
        try:
            sample = UnlabelledSample.model_validate({"prior": row.get("label"), **fields})
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            # The label is called `prior` in the model alone.
            field = ".".join(map(str, problem["loc"])).replace("prior", "label")
            raise UserError(f"{where}: {field}: {problem['msg']}; fix the field") from error
        if row.get("id") and row["id"] != sample.id:
            raise UserError(f"{where}: id {row['id']!r} is not the hash of the content; leave it out")
        if sample.split not in (None, split):
            raise UserError(
                f"{where}: of split {sample.split}, but annotation.split={split}; expected the same split"
            )
        if sample.id in seen:
            raise UserError(f"{where}: the same content and pair as {seen[sample.id]}; remove one of them")
        seen[sample.id] = where
        samples.append(sample)
    return samples


_log = logging.getLogger(__name__)


class AnnotatorAnswer(NamedTuple):
    """A reader's label of one item, and what they noted."""

    choice: AnnotatorChoice
    note: str


def checked(
    files: Sequence[Path],
    items: Mapping[str, AnnotationItem],
    readers: Sequence[str],
    unknown: str,
    readers_of: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, dict[str, AnnotatorAnswer]]:
    """`answers[reader][item]` from returned files, in any order of files.

    `unknown` says what an item that is not in `items` is; `readers_of` names who was asked for each item,
    without it everyone for all. Raises `UserError` with the first problem;
    the others go to the log, a line each.
    """
    for file in files:
        if files.count(file) > 1:
            raise UserError(f"{file}: given twice; give each annotator's file once")
    rows = [row for file in files for row in read_returned(file)]
    problems: list[str] = []
    first: dict[tuple[str, str], ReturnedRow] = {}
    answers: dict[str, dict[str, AnnotatorAnswer]] = {reader: {} for reader in readers}
    for row in rows:
        if problem := _problem(row, items, readers, unknown):
            problems.append(f"{row.where}: {problem}")
        elif earlier := first.get((row.reader, row.item)):
            problems.append(f"{row.where}: {row.item} is there twice, see {earlier.where}; remove one")
        else:
            label = row.label.strip().casefold()
            if label in list(AnnotatorChoice):
                answers[row.reader][row.item] = AnnotatorAnswer(AnnotatorChoice(label), row.note)
            else:
                mistake = f"{_short(row.label)} is no label" if label else "no label"
                problems.append(f"{row.where}: {mistake} for {row.item}; write misbehavior, benign or unsure")
        first.setdefault((row.reader, row.item), row)
    for reader in readers:
        theirs = sorted({str(row.file) for row in rows if row.reader == reader})
        asked = [item for item in items if readers_of is None or reader in readers_of[item]]
        if not theirs and asked:
            problems.append(
                f"{', '.join(map(str, files))}: nothing of batch {reader!r} in there; add the file that"
                f" {reader} returned"
            )
            continue
        problems += [
            f"{', '.join(theirs)}: {item} of batch {reader!r} is missing; put its row back"
            for item in asked
            if (reader, item) not in first
        ]
    if problems:
        for problem in problems[1:]:
            _log.error("%s", problem)
        raise UserError(problems[0] + (f" (and {len(problems) - 1} more above)" if problems[1:] else ""))
    return answers


def _problem(
    row: ReturnedRow, items: Mapping[str, AnnotationItem], readers: Sequence[str], unknown: str
) -> str | None:
    if row.reader not in readers:
        return f"batch {_short(row.reader)} is none of {', '.join(readers)}; expected a file of this batch"
    if not row.item:
        return "no item id; put it back as it was exported"
    if row.item not in items:
        return f"{_short(row.item)} {unknown}; remove the row, or correct the id"
    item = items[row.item]
    if not (_same_text(row.request, item.request) and _same_text(row.response, item.response)):
        return f"the text is not that of {row.item}; were columns sorted apart? label a fresh copy"
    return None


def _same_text(returned: str | None, asked: str) -> bool:
    """Whether a returned text can be the one asked about: what spreadsheets change doesn't count."""
    if returned is None:
        return True
    cut, original = (re.sub(r"[^A-Za-z0-9]+", "", text[:SPREADSHEET_CELL]) for text in (returned, asked))
    return cut[:200] == original[:200]


def _short(text: str) -> str:
    return repr(" ".join(text.split())[:40])
