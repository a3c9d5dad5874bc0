"""A run's verdicts as columns, for metrics; memory does not grow with the answers' texts.

A run keeps what an imported file said: a verdict without a score is unscored. What such a one counts as is
named in the manifest (`import.missing`) and decided in `with_missing_counted`, nowhere else: `flag` takes it
for an alarm ranked above all others (a score of 1), `pass` for none ranked below all (0), `leave_out`
leaves it out.
"""

from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from monitorbench.records import Label, Verdict
from monitorbench.runs.keyed_log import FAILURES, each_record, read_failures


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


def with_failures(log: VerdictColumns, directory: Path) -> VerdictColumns:
    """The verdicts behind the failed requests, so that a verdict counts wherever there is one."""
    failures = read_failures(directory / FAILURES)
    n = len(failures)
    nothing, none = np.full(n, np.nan), np.zeros(n, dtype=np.int64)
    spent = Spent(*(np.concatenate([nothing, column]) for column in log.spent))
    strings = [
        [failure.key for failure in failures.values()],
        list(failures),
        [str(failure.unscored) for failure in failures.values()],
    ]
    keys, sample_ids, reasons = (pa.array(texts, pa.string()) for texts in strings)
    return VerdictColumns(
        keys=pa.concat_arrays([keys, log.keys]),
        sample_ids=pa.concat_arrays([sample_ids, log.sample_ids]),
        flagged=np.concatenate([nothing, log.flagged]),
        scores=np.concatenate([nothing, log.scores]),
        censored=np.concatenate([np.zeros(n, dtype=np.bool_), log.censored]),
        n_quotes=np.concatenate([none, log.n_quotes]),
        n_grounded=np.concatenate([none, log.n_grounded]),
        reasons=pa.concat_arrays([reasons, log.reasons]),
        spent=spent,
    )
