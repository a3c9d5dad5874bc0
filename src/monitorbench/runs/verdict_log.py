"""Logs of a judge's run: `verdicts.jsonl`, one line per sample and judge, and `failures.jsonl` beside it.

Both are append-only and resumed by key. A verdict's key hashes what the model was given and which model it
was: token ids, weights, adapter, decoding, dtype, engine; never a threshold. A request that failed on the way
to an endpoint has no verdict: each attempt is a line of `failures.jsonl`, and its question stays pending.
"""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from monitorbench.records import Verdict
from monitorbench.runs.keyed_log import KeyedLog, open_log, read_log

VERDICTS, FAILURES = "verdicts.jsonl", "failures.jsonl"


class Failure(BaseModel):
    """A request that got no answer: what a verdict would say of it (reason, detail, cost); which attempt."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    attempt: Annotated[int, Field(ge=1)]
    """Which run of `evaluate.py` asked this, from 1; retries within a run count as one."""
    verdict: Verdict

    @property
    def key(self) -> str:
        """The question's key with the attempt."""
        return f"{self.verdict.key}-{self.attempt}"


VerdictLog: TypeAlias = KeyedLog[Verdict]
FailureLog: TypeAlias = KeyedLog[Failure]


def read_verdicts(path: Path) -> list[Verdict]:
    """All whole lines of a log, the last one left out when torn; `UserError` on a foreign line."""
    return read_log(path, Verdict)


def read_failures(path: Path) -> dict[str, Verdict]:
    """Last failed request of each sample, as a verdict, by sample id; empty where there is no such log.

    Raises `UserError` on a foreign line.
    """
    failures = read_log(path, Failure) if path.is_file() else []
    return {failure.verdict.sample_id: failure.verdict for failure in failures}


def read_run(directory: Path) -> dict[str, Verdict]:
    """Verdicts of a run by sample id; a sample without an answer has its last failure, which is unscored."""
    verdicts = {verdict.sample_id: verdict for verdict in read_verdicts(directory / VERDICTS)}
    return read_failures(directory / FAILURES) | verdicts


def open_verdict_log(path: Path) -> AbstractContextManager[VerdictLog]:
    """Open for appending, alone. Raises what `open_log` raises."""
    return open_log(path, Verdict)


def open_failure_log(path: Path) -> AbstractContextManager[FailureLog]:
    """Open for appending, alone. Raises what `open_log` raises."""
    return open_log(path, Failure)
