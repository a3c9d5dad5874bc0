"""What a judge's run logs: `verdicts.jsonl`, one line per sample and judge, and `failures.jsonl` beside it.

Both are append-only and resumed by key. A verdict's key hashes what the model was given and which model it
was: token ids, weights, adapter, decoding, dtype, engine; never a threshold. A request that failed on the way
to an endpoint has no verdict: each attempt is a line of `failures.jsonl`, and its question stays pending.

`read_verdict_columns` reads a log as columns, for metrics. It says what `read_verdicts` says of the same
file: where a line is doubtful that reader is asked, which names it. Memory does not grow with the answers'
texts.

A run keeps what an imported file said: a verdict without a score is unscored. What such a one counts as is
named in the manifest (`import.missing`) and decided in `with_missing_counted`, nowhere else: `flag` takes it
for an alarm ranked above all others (a score of 1), `pass` for none ranked below all (0), `leave_out`
leaves it out.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from monitorbench.records import Label, UnscoredReason, Verdict
from monitorbench.runs.files import unsealed_line
from monitorbench.runs.keyed_log import KeyedLog, open_log, read_log

VERDICTS, FAILURES = "verdicts.jsonl", "failures.jsonl"


class Failure(BaseModel):
    """A request that got no answer: what a verdict would say of it (reason, detail, cost); which attempt."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    attempt: Annotated[int, Field(ge=1)]
    """Of the runs of `evaluate.py` that asked this, retries within one left out."""
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
    """By sample id what its last failed request would be as a verdict; empty where there is no such log.

    Raises `UserError` on a foreign line.
    """
    failures = read_log(path, Failure) if path.is_file() else []
    return {failure.verdict.sample_id: failure.verdict for failure in failures}


def read_run(directory: Path) -> dict[str, Verdict]:
    """By sample id a run's verdicts, and of samples without an answer the last failure, which is unscored."""
    verdicts = {verdict.sample_id: verdict for verdict in read_verdicts(directory / VERDICTS)}
    return read_failures(directory / FAILURES) | verdicts


def open_verdict_log(path: Path) -> AbstractContextManager[VerdictLog]:
    """Open for appending, alone. Raises what `open_log` raises."""
    return open_log(path, Verdict)


def open_failure_log(path: Path) -> AbstractContextManager[FailureLog]:
    """Open for appending, alone. Raises what `open_log` raises."""
    return open_log(path, Failure)


_BYTES = 2**24
_LONGEST_LINE = 2**22
"""A longer one is left to the other reader."""
_PLACE = pa.struct([("message", pa.int64())])
_SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("sample_id", pa.string()),
        ("prompt", pa.string()),
        ("answer", pa.string()),
        ("finish_reason", pa.string()),
        ("prompt_tokens", pa.int64()),
        ("completion_tokens", pa.int64()),
        ("seconds", pa.float64()),
        ("label", pa.string()),
        ("unscored", pa.string()),
        ("score", pa.float64()),
        ("score_censored", pa.bool_()),
        ("cost", pa.float64()),
        ("evidence", pa.list_(pa.struct([("place", _PLACE)]))),
    ]
)
_ALWAYS_THERE = _SCHEMA.names[:8]
_LABELS = pa.array([label.value for label in Label])
_REASONS = pa.array([reason.value for reason in UnscoredReason])


class Spent(NamedTuple):
    """What each answer took, one entry a line, all [lines]; NaN where nothing was answered."""

    seconds: NDArray[np.float64]
    prompt_tokens: NDArray[np.float64]
    completion_tokens: NDArray[np.float64]
    cost: NDArray[np.float64]
    """In the currency of the engine's prices; 0 without prices."""

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
    """In [0, 1], NaN where there is none."""
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
    try:
        parts = [_parsed(block) for block in _blocks(path)]
        _refuse_repeated([part.keys for part in parts])
    except (pa.ArrowInvalid, _DoubtfulError):
        parts = [_of_records(path)]
    keys, sample_ids, reasons = (
        pa.concat_arrays([part[i] for part in parts] or [pa.array([], pa.string())]) for i in (0, 1, 7)
    )
    flagged, scores, censored, n_quotes, n_grounded = (
        np.concatenate([np.empty(0, dtype), *(part[i] for part in parts)])
        for i, dtype in enumerate((np.float64, np.float64, np.bool_, np.int64, np.int64), 2)
    )
    spent = Spent(*(np.concatenate([np.empty(0), *(part.spent[i] for part in parts)]) for i in range(4)))
    return VerdictColumns(keys, sample_ids, flagged, scores, censored, n_quotes, n_grounded, reasons, spent)


class _DoubtfulError(Exception):
    """A line may be no verdict."""


def _refuse_repeated(keys: list[pa.Array]) -> None:
    if pc.count_distinct(pa.chunked_array(keys, pa.string())).as_py() < sum(map(len, keys)):
        raise _DoubtfulError


def _blocks(path: Path) -> Iterator[bytes]:
    """The whole lines, some megabytes at a time."""
    rest = b""
    with path.open("rb") as stream:
        while read := stream.read(_BYTES):
            block = rest + read
            cut = block.rfind(b"\n") + 1
            rest = block[cut:]
            if cut:
                yield block[:cut]


def _parsed(block: bytes) -> VerdictColumns:
    if any(unsealed_line(line) is None for line in block.split(b"\n")[:-1]):
        raise _DoubtfulError
    table = pj.read_json(
        pa.BufferReader(block),
        read_options=pj.ReadOptions(block_size=_LONGEST_LINE // 2),
        parse_options=pj.ParseOptions(explicit_schema=_SCHEMA, unexpected_field_behavior="ignore"),
    )
    if table.num_rows != block.count(b"\n"):
        raise _DoubtfulError
    return _columns(table.combine_chunks())


def _of_records(path: Path) -> VerdictColumns:
    """By the strict reader, which raises for the first line that is no verdict."""
    rows = [one.model_dump(mode="json", include=set(_SCHEMA.names)) for one in read_verdicts(path)]
    return _columns(pa.Table.from_pylist(rows, schema=_SCHEMA))


def _columns(table: pa.Table) -> VerdictColumns:
    labels, reasons, scores = (table[name] for name in ("label", "unscored", "score"))
    label = pc.index_in(labels, value_set=_LABELS)
    is_known = (
        all(table[name].null_count == 0 for name in _ALWAYS_THERE)
        and label.null_count == labels.null_count
        and pc.index_in(reasons, value_set=_REASONS).null_count == reasons.null_count
        and pc.all(pc.xor(labels.is_valid(), reasons.is_valid()), min_count=0).as_py()
        and pc.all(pc.and_(pc.greater_equal(scores, 0), pc.less_equal(scores, 1)), min_count=0).as_py()
    )
    if not is_known:
        raise _DoubtfulError
    flagged = np.array([1.0 if one is Label.MISBEHAVIOR else 0.0 for one in Label] + [np.nan])
    evidence = _whole(table["evidence"])
    places = pc.struct_field(pc.list_flatten(evidence), "place").is_valid()
    of_line = pc.list_parent_indices(evidence).to_numpy()
    return VerdictColumns(
        keys=_whole(table["key"]),
        sample_ids=_whole(table["sample_id"]),
        flagged=flagged[pc.fill_null(label, len(Label)).to_numpy()],
        scores=pc.fill_null(scores, np.nan).to_numpy(),
        censored=pc.fill_null(table["score_censored"], False).to_numpy(),
        n_quotes=np.bincount(of_line, minlength=table.num_rows),
        n_grounded=np.bincount(of_line[places.to_numpy(zero_copy_only=False)], minlength=table.num_rows),
        reasons=_whole(reasons),
        spent=Spent(
            seconds=table["seconds"].to_numpy(),
            prompt_tokens=table["prompt_tokens"].to_numpy().astype(np.float64),
            completion_tokens=table["completion_tokens"].to_numpy().astype(np.float64),
            cost=pc.fill_null(table["cost"], 0.0).to_numpy(),
        ),
    )


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


MISSING_SUFFIXES = {"flag": "missing_flagged", "pass": "missing_passed", "leave_out": "missing_left_out"}
"""What stands behind a monitor's name in every table where some of its scores are missing."""
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
