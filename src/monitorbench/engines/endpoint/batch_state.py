"""Which batches a run has handed in, in a file of its directory: none is handed in twice.

A batch is written down before it is handed in, and again with its name there. A process that was killed in
between leaves one without a name, which the next one looks for at the provider before it hands in anything.
"""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ValidationError

from monitorbench.config.base import UserError
from monitorbench.runs.files import write_atomically

FILE = "batches.json"


class BatchRecord(BaseModel):
    """One batch: `submitting` until its `id` is known, `open` until all that it answered is in the log.

    `foreign` is one of somebody else that was taken for ours.
    """

    nonce: str
    """Names it at the provider, where one can be given."""
    keys: list[str]
    """The keys of its requests."""
    submitted: float
    """UNIX time, in seconds."""
    most_cost: float
    """The most that the batch may cost."""
    id: str | None = None
    state: Literal["submitting", "open", "collected", "foreign"] = "submitting"


class _File(BaseModel):
    batches: list[BatchRecord] = []


class BatchState:
    """The batches of a run, written as they change. Raises `UserError` for a file that can't be read."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.batches: list[BatchRecord] = []
        if self.path.exists():
            try:
                self.batches = _File.model_validate_json(self.path.read_bytes()).batches
            except (OSError, ValidationError) as error:
                raise UserError(
                    f"{self.path}: can't be read ({type(error).__name__}); it names batches that are "
                    "paid for: mend it, or remove it and pay again"
                ) from error

    def save(self) -> None:
        """Write the file, whole or not at all."""
        write_atomically(self.path, _File(batches=self.batches).model_dump_json(indent=1) + "\n")

    def those(self, state: str) -> list[BatchRecord]:
        """The batches in that state."""
        return [batch for batch in self.batches if batch.state == state]

    @property
    def reserved(self) -> float:
        """The most that may still have to be paid for batches that are handed in."""
        return sum(batch.most_cost for batch in self.batches if batch.state in ("submitting", "open"))
