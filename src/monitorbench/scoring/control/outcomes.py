"""Outcomes recorded of samples beside their label: whether an attack would succeed, and how useful work was.

A file with a row a sample: `sample_id` as in the dataset and in `verdicts.jsonl`, and any of `success`,
`useful`, `trusted_useful`. A row that is wrong is refused with its line and field; samples without a row, or
with an empty field, are as if nobody had asked.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from monitorbench.config.base import UserError
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.untrusted_rows import rows

FIELDS = ("success", "useful", "trusted_useful")
_WORDS = {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}


class Outcomes(NamedTuple):
    """Outcomes by sample id, each in [0, 1]; `success` is 0 or 1."""

    success: Mapping[str, float]
    useful: Mapping[str, float]
    trusted_useful: Mapping[str, float]


def read_outcomes(file: Path) -> Outcomes:
    """The file's rows; raises `UserError` where it can't be read, and for a bad row or a sample twice."""
    outcomes: dict[str, dict[str, float]] = {name: {} for name in FIELDS}
    seen: set[str] = set()
    for place, row in rows(file, "control.outcomes"):
        where, sample = f"{file}, {place}", row.get("sample_id")
        if not isinstance(sample, str) or not sample:
            raise UserError(f"{where}: sample_id is {sample!r}; expected a sample's id")
        if sample in seen:
            raise UserError(f"{where}: {sample} is there twice; expected each sample once")
        if unknown := sorted(set(row) - {"sample_id", *FIELDS}):
            raise UserError(
                f"{where}: unknown field {unknown[0]!r}; expected sample_id and any of {', '.join(FIELDS)}"
            )
        seen.add(sample)
        for name in FIELDS:
            value = _number(row.get(name), f"{where}: {name}", is_binary=name == "success")
            if value is not None:
                outcomes[name][sample] = value
    if not any(outcomes.values()):
        raise UserError(f"{file}: says nothing of any sample; expected any of {', '.join(FIELDS)}")
    return Outcomes(outcomes["success"], outcomes["useful"], outcomes["trusted_useful"])


def values_of(of_sample: Mapping[str, float], sample_ids: pa.Array, otherwise: float) -> FloatArray:
    """[samples], `otherwise` where nothing is said."""
    return np.array(
        [of_sample.get(sample_id, otherwise) for sample_id in sample_ids.to_pylist()], dtype=np.float64
    )


def _number(value: object, where: str, *, is_binary: bool) -> float | None:
    if value is None or value == "":
        return None
    number: float | None = None
    if isinstance(value, bool | int | float):
        number = float(value)
    elif isinstance(value, str):
        number = _WORDS.get(value.strip().lower())
        if number is None and not is_binary:
            try:
                number = float(value)
            except ValueError:
                number = None
    is_good = number is not None and 0 <= number <= 1 and (not is_binary or number in (0, 1))
    if not is_good:
        expected = "true or false" if is_binary else "true, false or a number from 0 to 1"
        raise UserError(f"{where} is {value!r}; expected {expected}")
    return number
