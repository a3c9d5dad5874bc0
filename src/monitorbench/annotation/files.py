"""The files annotators work on: CSV for a spreadsheet, JSON and labelling config for Label Studio.

Promises: judged text is hostile, so no cell can start a formula and no text is read as HTML or as an
address; `restore` undoes what `neutralise` does; the same items give the same bytes. What comes back is
read as spreadsheets save it (commas, semicolons or tabs; empty rows at the end); a file that can't
be read is a `UserError` that names the file, the row and what to do.

Of answers there is each annotator's to every item, exactly once. A candidate is a row of a Parquet or JSONL
file with the fields of `Sample`; `label`, if it has one, is what annotators are compared with, and
`label_source`, `construction` and `gold_spans` go with it. Nothing is guessed and nothing dropped.
"""

import csv
import io
import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

from pydantic import ValidationError

from monitorbench import strict_json
from monitorbench.annotation.labels import AnnotatorChoice, UnlabelledSample
from monitorbench.config.base import UserError
from monitorbench.records import Split
from monitorbench.untrusted import document, no_utf8, text_lines
from monitorbench.untrusted_csv import layout
from monitorbench.untrusted_rows import rows

_log = logging.getLogger(__name__)

SPREADSHEET_CELL = 32_767
"""Characters a cell holds in the common spreadsheet programs; they cut or split a longer text."""

COLUMNS = ("item", "batch", "label", "note", "request", "response")
_REQUIRED = ("item", "batch", "label")
_OPTIONAL = ("note", "request", "response")
# What starts a formula in some program, full-width signs included; the apostrophe so that it can be undone.
_UNSAFE = tuple("=+-@\t\r\n＝＋－＠'")
_BATCH = "batch-"


class AnnotationItem(NamedTuple):
    """Texts of a sample that an annotator sees, and an opaque id."""

    id: str
    request: str
    response: str


class ReturnedRow(NamedTuple):
    """One row or task as it came back; `where` names file and row."""

    file: Path
    where: str
    item: str
    reader: str
    label: str
    note: str
    request: str | None
    response: str | None


def neutralise(text: str) -> str:
    """A cell that no spreadsheet program takes for a formula: an apostrophe before what could start one."""
    return f"'{text}" if text.startswith(_UNSAFE) else text


def restore(cell: str) -> str:
    """The text that was neutralised."""
    return cell.removeprefix("'")


def csv_batch(items: Sequence[AnnotationItem], reader: str) -> bytes:
    """A CSV batch with empty label and note; UTF-8 with a byte order mark, which spreadsheets need."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow(COLUMNS)
    for item in items:
        cells = (item.id, _BATCH + reader, "", "", item.request, item.response)
        writer.writerow([neutralise(cell) for cell in cells])
    return stream.getvalue().encode("utf-8-sig")


def label_studio_tasks(items: Sequence[AnnotationItem], reader: str) -> str:
    """Label Studio tasks of a reader's batch, as JSON."""
    tasks = [
        {
            "data": {
                "item": item.id,
                "batch": _BATCH + reader,
                "request": item.request,
                "response": item.response,
            }
        }
        for item in items
    ]
    return json.dumps(tasks, indent=1, ensure_ascii=False) + "\n"


def label_studio_config(guidelines: str) -> str:
    """The labelling interface. `Text`, unlike `HyperText`, shows markup as it is written."""
    choices = "\n".join(f'    <Choice value="{choice}"/>' for choice in AnnotatorChoice)
    return f"""<View>
  <Style>.htx-text {{ white-space: pre-wrap; }}</Style>
  <Header size="5" value={quoteattr(guidelines.strip())}/>
  <Header size="4" value="Request"/>
  <Text name="request" value="$request" valueType="text"/>
  <Header size="4" value="Response"/>
  <Text name="response" value="$response" valueType="text"/>
  <Choices name="label" toName="response" choice="single" showInline="true" required="true">
{choices}
  </Choices>
  <TextArea name="note" toName="response" placeholder="note" maxSubmissions="1"/>
</View>
"""


def read_returned(path: Path) -> list[ReturnedRow]:
    """The rows of a returned file, in its order; `UserError` where it can't be read."""
    match path.suffix.lower():
        case ".csv":
            return list(_csv_rows(path))
        case ".json":
            return list(_label_studio_rows(path))
    raise UserError(f"{path}: expected a .csv file, or Label Studio's export as .json")


def _csv_rows(path: Path) -> Iterator[ReturnedRow]:
    delimiter, n_before = layout(path)
    reader = csv.reader(islice(text_lines(path), n_before, None), delimiter=delimiter, strict=True)
    try:
        names = [name.strip().casefold() for name in next(reader, ())]
        if not set(_REQUIRED) <= set(names):
            raise UserError(
                f"{path}, row {n_before + 1}: expected the columns {', '.join(_REQUIRED)}; "
                "restore the batch's first row"
            )
        if twice := [name for name in (*_REQUIRED, *_OPTIONAL) if names.count(name) > 1]:
            raise UserError(
                f"{path}, row {n_before + 1}: column {twice[0]!r} is there twice; restore the first row"
            )
        for number, cells in enumerate(reader, start=n_before + 2):
            if not any(cell.strip() for cell in cells):
                continue  # spreadsheets leave some at the end; an item that lacks is found as missing
            row = dict(zip(names, cells, strict=False))
            yield ReturnedRow(
                path,
                f"{path}, row {number}",
                row.get("item", "").strip(),
                row.get("batch", "").strip().removeprefix(_BATCH),
                row.get("label", ""),
                row.get("note", "").strip(),
                restore(row["request"]) if "request" in row else None,
                restore(row["response"]) if "response" in row else None,
            )
    except csv.Error as error:
        raise UserError(
            f"{path}, line {n_before + reader.line_num}: {error}; save it from the spreadsheet as CSV again"
        ) from error
    except UnicodeDecodeError as error:
        raise no_utf8(path) from error


def _label_studio_rows(path: Path) -> Iterator[ReturnedRow]:
    try:
        tasks = strict_json.loads(document(path))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: no JSON ({error}); export it from Label Studio again") from error
    if not isinstance(tasks, list):
        raise UserError(f"{path}: expected a list of tasks; export it from Label Studio as 'JSON'")
    for number, task in enumerate(tasks, start=1):
        where = f"{path}, task {number}"
        try:
            data, annotations = task["data"], task["annotations"]
            answered = [annotation for annotation in annotations if not annotation.get("was_cancelled")]
            # A task nobody answered still is a row: one without a label.
            for results in [annotation["result"] for annotation in answered] or [[]]:
                values = [result["value"] for result in results]
                yield ReturnedRow(
                    path,
                    where,
                    _string(data, "item"),
                    _string(data, "batch").removeprefix(_BATCH),
                    ", ".join(choice for value in values for choice in value.get("choices", ())),
                    " ".join(text for value in values for text in _texts(value)),
                    _string(data, "request"),
                    _string(data, "response"),
                )
        except (KeyError, TypeError, AttributeError) as error:
            raise UserError(
                f"{where}: not Label Studio's format ({_reason(error)}); export as 'JSON', not 'JSON-MIN'"
            ) from error


def _string(data: Any, key: str) -> str:
    if not isinstance(value := data[key], str):
        raise TypeError(f"{key!r} is no text")
    return value


def _texts(value: Any) -> list[str]:
    content = value.get("text", [])
    return [content] if isinstance(content, str) else list(content)


def _reason(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


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
    returned = [row for file in files for row in read_returned(file)]
    problems: list[str] = []
    first: dict[tuple[str, str], ReturnedRow] = {}
    answers: dict[str, dict[str, AnnotatorAnswer]] = {reader: {} for reader in readers}
    for row in returned:
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
        theirs = sorted({str(row.file) for row in returned if row.reader == reader})
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
