"""The evaluation run of an imported monitor over one split: its verdicts, its manifest, its steps.

Promises: the run appears when it is whole, and reads as a judge's does. One monitor has one identity on both
splits: its name, version, prompt and how its scores were read; never the file, which is in the manifest.
"""

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from monitorbench.config.base import Config
from monitorbench.config.datasets import SplitView
from monitorbench.config.imports import Import
from monitorbench.interop.imports.dataset import Written
from monitorbench.interop.imports.keys import Keys
from monitorbench.interop.imports.monitors import ForeignMonitor
from monitorbench.interop.imports.samples import Samples
from monitorbench.interop.imports.scores import Rows, Scored
from monitorbench.interop.imports.values import hex_digits
from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.metrics.score_facts import MISSING_SUFFIXES, score_facts
from monitorbench.records import Label, Split, UnscoredReason
from monitorbench.runs.files import content_hash
from monitorbench.runs.keyed_log import VERDICTS
from monitorbench.runs.run_folders import evaluation_run

PROMPT = "imported"
"""Stands where other runs have a prompt's name."""
STEPS = "steps.parquet"
VERSION = 4
"""Raised whenever the same file becomes other verdicts."""
_AT_ONCE = 65_536


def write_evaluation(
    config: Config,
    settings: Import,
    runs: Path,
    data: Written,
    split: Split,
    monitor: ForeignMonitor,
    steps: pa.Table | None,
    origin: Mapping[str, Any],
) -> Path:
    """Write, or find, the run; `steps` are those of all splits, `origin` goes into the manifest."""
    found = monitor.scored
    n_missing = int(np.count_nonzero(found.is_missing))
    name = f"{monitor.name}_{MISSING_SUFFIXES[settings.missing]}" if n_missing else monitor.name
    judge = _identity(monitor, settings)
    identity = {
        "data": data.directory.name,
        "split": split.value,
        "view": SplitView().model_dump(mode="json"),
        "judge": judge,
        "files": [file["sha256"] for file in origin["files"]],
        "columns": origin["columns"],
    }
    run = evaluation_run(runs, name, PROMPT, identity)
    if run.done:
        return run.path
    indices, ids = data.rows[split], data.ids[split]
    with run.appearing(config) as (folder, results):
        scores, flagged = found.scores[indices], found.flagged[indices]
        _write_verdicts(folder / VERDICTS, ids, found, indices, content_hash([judge, name])[:8])
        if steps is not None:
            _write_steps(folder, steps, ids, indices)
        unscored = int(np.count_nonzero(np.isnan(flagged)))
        results |= {
            "judge": {**judge, "name": name, "prompt": PROMPT},
            "data": data.directory.name,
            "training": None,
            "n": len(indices),
            "n_unscored": unscored,
            "unscored": {UnscoredReason.NO_LABEL.value: unscored} if unscored else {},
            "n_failed": 0,
            "n_truncated": 0,
            "n_logged": len(indices),
            "scores": score_facts(
                flagged, scores, np.zeros(len(indices), dtype=np.bool_), settings.flag_from
            ),
            "imported": {
                **origin,
                "monitor": monitor.name,
                "monitor_version": monitor.version,
                "prompt_hash": monitor.prompt_hash,
                "missing": settings.missing,
                "flag_from": settings.flag_from,
                "has_answers": found.has_answers,
                "has_scores": found.has_scores,
                "n_missing": int(np.count_nonzero(found.is_missing[indices])),
                "n_unanswered": int(np.count_nonzero(found.lacks_answer[indices])),
                "n_missing_in_all_splits": n_missing,
                "n_without_rows": int(np.count_nonzero(~found.has_rows[indices])),
                "n_parts_missing_in_all_splits": found.n_parts_missing,
                "n_against_in_all_splits": found.n_against,
            },
        }
    return run.path


def _identity(monitor: ForeignMonitor, settings: Import) -> dict[str, Any]:
    """Return everything that decides a verdict, as far as it is known."""
    read_as = settings.model_dump(
        mode="json",
        include={"unit", "trajectory", "draws", "scale", "levels", "flag_from", "missing"}
        | ({"top_k"} if settings.trajectory == "mean_top_k" else set()),
    )
    return {
        "weights": f"imported:{monitor.name}:{monitor.version}",
        "adapter": "",
        "opening": "",
        "engine": "imported",
        "dtype": "",
        "prompt": {"name": PROMPT, "hash": monitor.prompt_hash},
        "read_as": read_as,
        "version": VERSION,
    }


def _write_verdicts(file: Path, ids: pa.Array, found: Scored, at: IntArray, judge: str) -> None:
    """`verdicts.jsonl`, as `runs.keyed_log` reads it, without a record for each line."""
    with file.open("wb") as stream:
        for start in range(0, len(at), _AT_ONCE):
            rows = at[start : start + _AT_ONCE]
            lines = _lines(ids.slice(start, _AT_ONCE), found, rows, judge)
            whole = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
            stream.write(pc.binary_join(whole, "")[0].as_buffer())


def _lines(ids: pa.Array, found: Scored, rows: IntArray, judge: str) -> pa.Array:
    labels = (
        f'"{Label.BENIGN}","unscored":null,"detail":""',
        f'"{Label.MISBEHAVIOR}","unscored":null,"detail":""',
        f'null,"unscored":"{UnscoredReason.NO_LABEL}","detail":"no score in the imported file"',
        f'null,"unscored":"{UnscoredReason.NO_LABEL}","detail":"no answer in the imported file"',
        f'null,"unscored":"{UnscoredReason.NO_LABEL}","detail":"no row in the imported file"',
    )
    unscored = np.where(found.has_rows[rows], np.where(found.lacks_answer[rows], 3, 2), 4)
    label = np.where(np.isnan(found.flagged[rows]), unscored, np.nan_to_num(found.flagged[rows]))
    bodies = pc.binary_join_element_wise(
        *('{"key":"', ids, f'{judge}","sample_id":"', ids, f'","prompt":"{PROMPT}","answer":"","label":'),
        *(pa.array(labels).take(pa.array(label.astype(np.int64))), ',"score":', _written(found.scores[rows])),
        ',"label_mass":null,"finish_reason":"imported","prompt_tokens":0,"completion_tokens":0,"seconds":',
        *(_written(found.seconds[rows]), ',"cost":', _written(found.cost[rows])),
        "",
    )
    checks = np.fromiter(map(zlib.crc32, pc.cast(bodies, pa.binary()).to_pylist()), ">u4", len(rows))
    return pc.binary_join_element_wise(bodies, ',"crc32":"', hex_digits(checks.tobytes(), 8), '"}\n', "")


def _written(values: FloatArray) -> pa.Array:
    """Numbers as JSON, each distinct one written once; NaN is null."""
    encoded = pc.dictionary_encode(pa.array(values.view(np.int64)))  # by their bits: -0.0 is not 0.0
    distinct = encoded.dictionary.to_numpy().view(np.float64).tolist()
    return pa.array(["null" if value != value else repr(value) for value in distinct]).take(encoded.indices)


def steps_of(keys: Keys, samples: Samples, found: Rows) -> pa.Table | None:
    """A row a step and draw of one monitor; `sample` numbers the import's samples. None without steps."""
    if keys.steps is None:
        return None
    rows = found.rows
    draws = np.zeros(len(rows), dtype=np.int64) if keys.draws is None else keys.draws[rows]
    order = np.lexsort((draws, keys.steps[rows], keys.samples[rows]))
    rows, draws, scores = rows[order], draws[order], found.scores[order]
    labels = np.full(len(rows), np.nan) if samples.step_labels is None else samples.step_labels[rows]
    return pa.table(
        {
            "sample": keys.samples[rows],
            "step": pa.array(keys.steps[rows].astype(np.int32)),
            "draw": pa.array(draws.astype(np.int32)),
            "score": pa.array(scores, mask=np.isnan(scores)),
            "label": pa.array(labels == 1, mask=np.isnan(labels)),
        }
    )


def _write_steps(folder: Path, steps: pa.Table, ids: pa.Array, at: IntArray) -> None:
    """The steps of the samples at `at`, whose ids these are."""
    here = pc.index_in(steps["sample"], value_set=pa.array(at))
    split_steps = steps.filter(pc.is_valid(here)).drop_columns(["sample"])
    names = ids.take(pc.drop_null(here).combine_chunks())
    pq.write_table(split_steps.add_column(0, "sample_id", names), folder / STEPS, compression="zstd")
