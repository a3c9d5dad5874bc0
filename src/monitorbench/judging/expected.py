"""Forecast of an evaluation before its first question: samples, tokens, cost and time.

Prompt tokens are exact for a model that is given token ids; they are estimated by characters for an endpoint,
and where a second prompt will hold the answer to the first. Time and likely cost are there where verdicts of
the same model, engine and prompt are in earlier runs (`measured_pace`); a planner may ask the same before
anything is run.
"""

import platform
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.json as pj
from numpy.typing import NDArray

from monitorbench.config.base import UserError
from monitorbench.config.engine import Engine
from monitorbench.engines.endpoint.limits import cost
from monitorbench.judging.identity import JudgeSpec
from monitorbench.judging.judge import Question
from monitorbench.records import Verdict
from monitorbench.runs.directory import read_manifest
from monitorbench.runs.keyed_log import VERDICTS
from monitorbench.runs.progress import clock_time

_DECIDES_PACE = ("weights", "engine", "dtype", "request", "opening", "reasoning", "prompt", "readout")
"""Parts of a judge's identity that decide how long an answer takes; an adapter doesn't."""
_ENOUGH = 2000
"""Verdicts; older runs are not looked at."""
_MOST_BYTES = 2**25
"""Bytes that are read of one log."""
_SCHEMA = pa.schema(
    [
        ("seconds", pa.float64()),
        ("prompt_tokens", pa.int64()),
        ("completion_tokens", pa.int64()),
        ("cost", pa.float64()),
    ]
)


class Pace(NamedTuple):
    """Mean time, tokens and cost of a judge's verdict, over `n` of earlier runs."""

    n: int
    seconds: float
    """The answer's share of the wall time; of an endpoint its own time, others running beside it."""
    prompt_tokens: float
    completion_tokens: float
    cost: float
    """Cost in the currency of the prices; 0 without prices."""


def measured_pace(runs: Path, judge: Mapping[str, Any]) -> Pace | None:
    """Pace that earlier evaluations in the folder `runs` measured, whatever the adapter; None without any.

    `judge` is its identity (`judge_spec(…).identity`). Newest runs first, until there are 2000 verdicts. Of a
    model of this process only runs on this platform count. A run that can't be read counts for nothing: the
    stage that needs it reports it.
    """
    measured = np.empty((0, len(_SCHEMA)))
    for log in _logs_of(runs, judge):
        try:
            measured = np.concatenate([measured, _measured(log)])
        except (OSError, pa.ArrowInvalid):
            continue
        if len(measured) >= _ENOUGH:
            break
    return Pace(len(measured), *measured.mean(0).tolist()) if len(measured) else None


def _logs_of(runs: Path, judge: Mapping[str, Any]) -> Iterator[Path]:
    """The verdict logs of runs whose judge has the same pace, newest first."""
    logs: list[tuple[str, Path]] = []
    for path in (runs / "evaluate").glob("*/manifest.json"):
        log = path.parent / VERDICTS
        try:
            manifest = read_manifest(path.parent)
        except UserError:
            continue
        run_judge = manifest.get("identity", {}).get("judge", {})
        same = all(run_judge.get(name) == judge.get(name) for name in _DECIDES_PACE)
        here = "request" in judge or manifest.get("machine", {}).get("platform") == platform.platform()
        if same and here and log.is_file():
            logs.append((str(manifest.get("started", "")), log))
    return (log for _, log in sorted(logs, reverse=True))


def _measured(log: Path) -> NDArray[np.float64]:
    """[verdicts that were asked for, fields of `_SCHEMA`]: of a log's first megabytes, whole lines only."""
    with log.open("rb") as stream:
        lines = stream.read(_MOST_BYTES).rpartition(b"\n")[0]
    if not lines:
        return np.empty((0, len(_SCHEMA)))
    options = pj.ParseOptions(explicit_schema=_SCHEMA, unexpected_field_behavior="ignore")
    read = pj.ReadOptions(block_size=2**24)
    table = pj.read_json(pa.BufferReader(lines), read_options=read, parse_options=options)
    # Not in Arrow, which would import pandas to compare with a number.
    measured = np.nan_to_num(np.column_stack([column.to_numpy() for column in table.columns]))
    return np.asarray(measured[measured[:, 0] > 0])  # a prompt that was too long took no seconds


def expected_seconds(pace: Pace, n: int, engine: Engine) -> float:
    """How long `n` samples take: of an endpoint side by side, and within its limits by the minute."""
    tokens = (pace.prompt_tokens + pace.completion_tokens) * n
    return max(
        pace.seconds * n / engine.concurrency,
        60 * n / engine.requests_per_minute if engine.requests_per_minute else 0,
        60 * tokens / engine.tokens_per_minute if engine.tokens_per_minute else 0,
    )


class ExpectedWork(NamedTuple):
    """Tokens and cost of an evaluation's questions."""

    n: int
    prompt_tokens: int
    is_exact: bool
    """False: `prompt_tokens` is estimated, by characters, or where prompts will hold an answer to others."""
    most_completion_tokens: int
    """Reasoning included."""
    most_cost: float | None
    """None without prices. By `prompt_tokens`, so an estimate where these are; retries are not in it."""


def expected(questions: Sequence[Question], judge: JudgeSpec) -> ExpectedWork:
    """Count the work of questions before they are asked; no model is run."""
    is_exact = all(question.request.token_ids and not question.later_tokens for question in questions)
    prompt_tokens = sum(question.n_tokens for question in questions)
    thinks = judge.monitor.reasoning
    each = judge.prompt.most_tokens + (thinks.max_tokens if thinks else 0)
    each = 0 if judge.monitor.head else each  # a probe writes nothing
    n_asked = sum(sum(piece.unasked is None for piece in question.pieces) or 1 for question in questions)
    most, prices = each * n_asked, judge.engine.paid_prices
    most_cost = None if prices is None else cost(prices, prompt_tokens, 0, most)
    return ExpectedWork(len(questions), prompt_tokens, is_exact, most, most_cost)


def forecast_facts(this: ExpectedWork, pace: Pace | None, engine: Engine) -> dict[str, Any] | None:
    """Forecast for the manifest; None where nothing like it was timed before."""
    if pace is None:
        return None
    seconds = round(expected_seconds(pace, this.n, engine), 2)
    return {"n": this.n, "tokens": this.prompt_tokens, "seconds": seconds, "by_verdicts": pace.n}


def measured_facts(verdicts: Sequence[Verdict], engine: Engine) -> dict[str, Any]:
    """Measured work, counted as the forecast counts: answering alone, an endpoint's seconds side by side."""
    return {
        "n": len(verdicts),
        "tokens": sum(verdict.prompt_tokens for verdict in verdicts),
        "completion_tokens": sum(verdict.completion_tokens for verdict in verdicts),
        "seconds": round(sum(verdict.seconds for verdict in verdicts) / engine.concurrency, 2),
    }


def in_words(this: ExpectedWork, of: int, pace: Pace | None, engine: Engine, spent: float = 0.0) -> str:
    """One line: `28 of 40 samples to judge (12 known): 8,456 prompt tokens, at most 28 completion tokens; …`.

    `of` is the number of all samples, `spent` what was paid of `engine.max_cost` before.
    """
    of_samples = f" of {of} samples to judge ({of - this.n} known)" if this.n < of else " samples to judge"
    about = "" if this.is_exact else "about "
    parts = [
        f"{this.n}{of_samples}: {about}{this.prompt_tokens:,} prompt tokens"
        f"{'' if this.is_exact else ' (estimated)'}, at most {this.most_completion_tokens:,} "
        "completion tokens"
    ]
    if this.most_cost is not None:
        likely = f", {_money(pace.cost * this.n)} at the measured pace" if pace and pace.cost else ""
        parts.append(f"cost at most {about}{_money(this.most_cost)}{likely}")
        if engine.max_cost is not None and spent + this.most_cost > engine.max_cost:
            parts.append(f"engine.max_cost={engine.max_cost:g} may end it before ({_money(spent)} spent)")
    if pace is not None:
        seconds = clock_time(expected_seconds(pace, this.n, engine))
        parts.append(f"about {seconds} by {pace.n:,} verdicts of before")
    return "; ".join(parts)


def _money(amount: float) -> str:
    return f"{amount:,.{4 if amount < 1 else 2}f}"
