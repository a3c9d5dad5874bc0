"""Logs of a judge's run: `verdicts.jsonl`, one line per sample and judge, and `failures.jsonl` beside it.

Both are append-only and resumed by key. A verdict's key hashes what the model was given and which model it
was: token ids, weights, adapter, decoding, dtype, engine; never a threshold. A request that failed on the way
to an endpoint has no verdict: each attempt is a line of `failures.jsonl`, and its question stays pending.

`read_verdict_columns` reads a log as columns, for metrics; memory does not grow with the answers' texts.

A run keeps what an imported file said: a verdict without a score is unscored. What such a one counts as is
named in the manifest (`import.missing`) and decided in `with_missing_counted`, nowhere else: `flag` takes it
for an alarm ranked above all others (a score of 1), `pass` for none ranked below all (0), `leave_out`
leaves it out.
"""

from array import array
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from monitorbench.records import Label, Verdict
from monitorbench.runs.keyed_log import KeyedLog, each_record, open_log, read_log

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


class Spent(NamedTuple):
    """Time, tokens and money of each answer, all [lines]; NaN where nothing was answered."""

    seconds: NDArray[np.float64]
    prompt_tokens: NDArray[np.float64]
    completion_tokens: NDArray[np.float64]
    cost: NDArray[np.float64]
    """Price in the currency of the engine's prices; 0 without prices."""

    def taking(self, lines: NDArray[np.int64]) -> "Spent":
        """The entries at `lines`, in that order."""
        return Spent(*(column[lines] for column in self))


class VerdictColumns(NamedTuple):
    """One entry a line, in the log's order, all [lines]."""

    keys: pa.Array
    sample_ids: pa.Array
    flagged: NDArray[np.float64]
    """1 misbehavior, 0 benign, NaN unscored."""
    scores: NDArray[np.float64]
    """Scores in [0, 1], NaN where there is none."""
    censored: NDArray[np.bool_]
    """Whether the score is a bound only."""
    n_quotes: NDArray[np.int64]
    """Quotes of the evidence, and how many of them have a place."""
    n_grounded: NDArray[np.int64]
    reasons: pa.Array
    """Strings: why an answer is no label; null where it is one."""
    spent: Spent


def read_verdict_columns(path: Path) -> VerdictColumns:
    """All whole lines of a log, the last one left out when torn; `UserError` on a foreign line."""
    keys, sample_ids, reasons = list[str](), list[str](), list[str | None]()
    numbers = array("d")
    for verdict in each_record(path, Verdict):
        keys.append(verdict.key)
        sample_ids.append(verdict.sample_id)
        reasons.append(verdict.unscored.value if verdict.unscored else None)
        numbers.extend(_numbers(verdict))
    columns = np.array(numbers).reshape(-1, 9).T
    flagged, scores, censored, n_quotes, n_grounded, *spent = columns
    return VerdictColumns(
        keys=pa.array(keys, pa.string()),
        sample_ids=pa.array(sample_ids, pa.string()),
        flagged=flagged,
        scores=scores,
        censored=censored.astype(np.bool_),
        n_quotes=n_quotes.astype(np.int64),
        n_grounded=n_grounded.astype(np.int64),
        reasons=pa.array(reasons, pa.string()),
        spent=Spent(*spent),
    )


def _numbers(verdict: Verdict) -> tuple[float, ...]:
    """Pick the numbers that metrics need of a verdict, in the columns' order."""
    evidence = verdict.evidence
    return (
        np.nan if verdict.label is None else verdict.label is Label.MISBEHAVIOR,
        np.nan if verdict.score is None else verdict.score,
        verdict.score_censored,
        len(evidence),
        sum([quote.place is not None for quote in evidence]) if evidence else 0,
        verdict.seconds,
        verdict.prompt_tokens,
        verdict.completion_tokens,
        verdict.cost,
    )


MISSING_SUFFIXES = {"flag": "missing_flagged", "pass": "missing_passed", "leave_out": "missing_left_out"}
"""Suffix of a monitor's name in every table where some of its scores are missing, by policy."""
_COUNTS_AS = {"flag": 1.0, "pass": 0.0}


def with_missing_counted(log: VerdictColumns, results: Mapping[str, Any]) -> VerdictColumns:
    """The verdicts of the run with these manifest `results`, missing ones as its import says."""
    imported = results.get("imported")
    value = None if imported is None else _COUNTS_AS.get(imported["missing"])
    if value is None or imported is None:
        return log
    is_missing = np.isnan(log.scores) if imported["has_scores"] else np.isnan(log.flagged)
    scores = np.where(is_missing, value, log.scores) if imported["has_scores"] else log.scores
    return log._replace(flagged=np.where(is_missing, value, log.flagged), scores=scores)
