"""Samples still to be labelled, from a file with a row a sample.

A row has the fields of `Sample`; `label`, if it has one, is what annotators are compared with, and
`label_source`, `construction` and `gold_spans` go with it. A bad row is a `UserError` that names it.
"""

from pathlib import Path

from pydantic import ValidationError

from monitorbench.annotation.labels import UnlabelledSample
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
