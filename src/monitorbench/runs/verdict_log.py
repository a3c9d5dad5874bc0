"""`verdicts.jsonl`: append-only, one line per sample and judge, resumed by key.

A verdict's key hashes what the model was given and which model it was: token ids, weights,
adapter, decoding, dtype, engine; never a threshold.
"""

import hashlib
import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeAlias

from monitorbench.engines.protocol import Decoding
from monitorbench.records import Verdict
from monitorbench.runs.keyed_log import KeyedLog, open_log, read_log

VerdictLog: TypeAlias = KeyedLog[Verdict]


def verdict_key(
    sample_id: str,
    token_ids: Sequence[int],
    *,
    weights: str,
    adapter: str,
    decoding: Decoding,
    dtype: str,
    engine: str,
    reasoning: Sequence[int] = (),
) -> str:
    """Hash what decides a verdict: 24 hex digits. `reasoning`: what decides how a monitor thinks first."""
    what: list[object] = [sample_id, list(token_ids), weights, adapter, dtype, engine]
    if reasoning:
        what.append(list(reasoning))
    how = [decoding.max_new_tokens, decoding.stop_token_ids, decoding.scored_token_ids]
    return hashlib.sha256(json.dumps([what, how]).encode()).hexdigest()[:24]


def read_verdicts(path: Path) -> list[Verdict]:
    """All whole lines of a log, the last one left out when torn; `UserError` on a foreign line."""
    return read_log(path, Verdict)


def open_verdict_log(path: Path) -> AbstractContextManager[VerdictLog]:
    """Open for appending, alone. Raises what `open_log` raises."""
    return open_log(path, Verdict)
