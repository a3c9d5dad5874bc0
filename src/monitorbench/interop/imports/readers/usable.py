"""The samples that an Inspect log gives up, and the one rule by which they are left out of all that is read.

Promise: a sample that ended in an error, or is marked as invalid, counts nowhere unless a setting takes it,
whatever other files are read beside its log; how many there are is said by who calls.
"""

from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from monitorbench.config.base import UserError
from monitorbench.interop.imports.readers.open import ImportedFiles
from monitorbench.metrics.bootstrap import IntArray

UNUSABLE = "unusable"
"""Column of a log's rows with the reason, null where a sample tells something."""


class UsableRows(NamedTuple):
    """Rows of files without those that their log gives up."""

    read: ImportedFiles
    left_out: IntArray
    """The rows, of the table before, that are left out."""
    first: str
    """Why the first of them is; "" where none is."""


def usable_rows(read: ImportedFiles, remedy: str) -> UsableRows:
    """Leave out the rows of Inspect logs whose sample tells nothing; rows of other files all stay.

    Raises `UserError`, which ends in `remedy`, where none is left.
    """
    logs = [i for i, kind in enumerate(read.formats) if kind == "inspect"]
    if not logs:
        return UsableRows(read, np.arange(0), "")
    reasons = read.table.column(UNUSABLE)
    is_of_log = np.isin(np.searchsorted(read.ends, read.rows, side="right"), logs)
    is_left_out = is_of_log & pc.is_valid(reasons).to_numpy()
    left_out, rows = np.flatnonzero(is_left_out), np.flatnonzero(~is_left_out)
    if not len(left_out):
        return UsableRows(read, left_out, "")
    first = str(reasons[int(left_out[0])].as_py())
    if not len(rows):
        raise UserError(f"{read.where(0)}: {first}, as all {len(left_out)} samples; expected {remedy}")
    return UsableRows(read.taking(read.table.take(rows), rows), left_out, first)
