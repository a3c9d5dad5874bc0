"""Samples still to be labelled, from a Parquet or JSONL file.

A row has the fields of `Sample`; `label`, if it has one, is what annotators are compared with, and
`label_source`, `construction` and `gold_spans` go with it. A bad row is a `UserError` that names it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from monitorbench import strict_json
from monitorbench.annotation.labels import UnlabelledSample
from monitorbench.config.base import UserError
from monitorbench.records import Split

_OF_THE_LABEL = ("id", "label", "label_source", "construction", "gold_spans")


def read_candidates(path: Path, split: Split) -> list[UnlabelledSample]:
    """All candidates of a file, in its order.

    Raises `UserError` for a row that is no candidate, has an id that is not its content's, is there
    twice, or belongs to another split: labels for `split` must not come from a training sample.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file; give candidates as .parquet or .jsonl")
    seen: dict[str, str] = {}
    samples: list[UnlabelledSample] = []
    for where, row in _rows(path):
        if not isinstance(row, dict):
            raise UserError(f"{where}: expected an object with a sample's fields")
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
    if not samples:
        raise UserError(f"{path}: no sample in it; expected a row a sample")
    return samples


def _rows(path: Path) -> Iterator[tuple[str, Any]]:
    match path.suffix.lower():
        case ".parquet":
            try:
                rows = pq.read_table(path).to_pylist()
            except (pa.ArrowException, OSError, ValueError) as error:
                raise UserError(
                    f"{path}: no Parquet ({' '.join(str(error).split())}); write it again"
                ) from error
            for number, row in enumerate(rows, start=1):
                yield f"{path}, row {number}", row
        case ".jsonl":
            for number, line in enumerate(path.read_bytes().splitlines(), start=1):
                if not line.strip():
                    continue
                where = f"{path}, line {number}"
                try:
                    row = strict_json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise UserError(f"{where}: no JSON ({error}); fix the line") from error
                yield where, row
        case _:
            raise UserError(f"{path}: expected a .parquet or .jsonl file")
