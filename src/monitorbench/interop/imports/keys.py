"""Sample, step and draw that each row of an import is of, by its columns or by its place.

Promises: rows of one sample share its id, whatever their order; where several rows could be of one sample and
no column says which, the import is refused.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from monitorbench.config.base import UserError
from monitorbench.config.imports import Import
from monitorbench.interop.imports.columns import ImportedColumns
from monitorbench.interop.imports.readers.open import ImportedFiles
from monitorbench.interop.imports.values import refuse, texts, whole_numbers
from monitorbench.metrics.bootstrap import IntArray


@dataclass(frozen=True)
class Keys:
    """Sample, step and draw that each row is of, all [rows]."""

    samples: IntArray
    """Index into `names`."""
    names: pa.Array
    """[samples]: what the file calls them, in the order of their first rows."""
    first: IntArray
    """[samples]: the first row of each."""
    trajectories: pa.Array
    """[rows]: the name without step and draw."""
    steps: IntArray | None
    """[rows]: place in the trajectory, from 0; None where rows have none, or where a step is a sample."""
    draws: IntArray | None
    """[rows]: index of the draw; None where rows have none, or where a draw is a sample."""


def keys_of(
    read: ImportedFiles,
    columns: ImportedColumns,
    settings: Import,
    places: IntArray | None,
    draws: IntArray | None,
) -> Keys:
    """`places` are the steps, and `draws` the draws, of rows that came out of lists."""
    names = _names(read, columns)
    key, steps = names, places
    if "step" in columns.names:
        steps = whole_numbers(read, columns.names["step"])
    if draws is None and "draw" in columns.names:
        drawn = pc.dictionary_encode(pc.fill_null(texts(read, columns.names["draw"]), ""))
        draws = drawn.indices.to_numpy().astype(np.int64)
    if steps is not None and settings.unit == "step":
        key = pc.binary_join_element_wise(key, pc.cast(pa.array(steps), pa.string()), "#")
        steps = None
    elif steps is None and settings.unit == "step":
        raise UserError(
            "import.unit=step: no column says which step a row is; expected import.columns.step=COLUMN or "
            "import.actions=[COLUMN]"
        )
    if draws is not None and settings.draws == "all":
        key = pc.binary_join_element_wise(key, pc.cast(pa.array(draws), pa.string()), "#draw ")
        draws = None
    encoded = pc.dictionary_encode(key)
    samples = encoded.indices.to_numpy().astype(np.int64)
    first = first_rows(samples, np.ones(len(samples), dtype=np.bool_), len(encoded.dictionary))
    if steps is not None:
        steps = _ranks(samples, steps)
    return Keys(samples, encoded.dictionary, first, names, steps, draws)


def _names(read: ImportedFiles, columns: ImportedColumns) -> pa.Array:
    if "sample" not in columns.names:
        if "monitor" in columns.names or "step" in columns.names or "draw" in columns.names:
            raise UserError(
                "import.columns.sample: no column says which sample a row is of, and one has several rows; "
                "expected import.columns.sample=COLUMN"
            )
        return pc.binary_join_element_wise("row ", pc.cast(pa.array(read.rows + 1), pa.string()), "")
    return sample_ids(read, columns.names["sample"])


def sample_ids(read: ImportedFiles, name: str) -> pa.Array:
    """The id in each row of a column; a row without one is refused."""
    ids = texts(read, name)
    if ids.null_count:
        refuse(read, int(np.flatnonzero(pc.is_null(ids))[0]), name, "no sample", "an id in each row")
    return ids


def _ranks(samples: IntArray, steps: IntArray) -> IntArray:
    """The steps of each sample counted from 0, equal ones together."""
    order = np.lexsort((steps, samples))
    of, sorted_steps = samples[order], steps[order]
    is_new = np.r_[True, (of[1:] != of[:-1]) | (sorted_steps[1:] != sorted_steps[:-1])]
    begins = np.r_[True, of[1:] != of[:-1]]
    n = np.cumsum(is_new) - 1
    base = np.maximum.accumulate(np.where(begins, n, 0))
    ranks = np.empty(len(steps), dtype=np.int64)
    ranks[order] = n - base
    return ranks


def first_rows(samples: IntArray, there: NDArray[np.bool_], n: int) -> IntArray:
    """The first row of each of `n` samples that has a value, -1 where none has."""
    first = np.full(n, -1, dtype=np.int64)
    rows = np.flatnonzero(there)[::-1]
    first[samples[rows]] = rows
    return first
