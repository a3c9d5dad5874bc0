"""Files of somebody else's scores, and the runs that they become."""

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from monitorbench.runs.directory import read_manifest
from monitorbench.scoring.evaluations import read_evaluation

Import = Callable[..., Path]


def write_csv(file: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Rows with a header; None is empty."""
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return file


def transcripts(n: int, *, seed: int = 0, missing: int = 0) -> list[dict[str, Any]]:
    """Scores from 0 to 10 of `n` transcripts, the first `missing` benign ones without."""
    rng = np.random.default_rng(seed)
    is_attack = rng.random(n) < 0.4
    scores = np.clip(rng.normal(np.where(is_attack, 6.4, 3.6), 1.8), 0, 10).round(2)
    without = set(np.flatnonzero(~is_attack)[:missing].tolist())
    return [
        {
            "transcript": f"t{i:04d}",
            "attack": int(is_attack[i]),
            "suspicion": None if i in without else scores[i],
        }
        for i in range(n)
    ]


def runs_of(folder: Path) -> dict[str, Path]:
    """The evaluation runs in a test's folder, `monitor/split`."""
    found = {}
    for path in sorted((folder / "runs" / "evaluate").iterdir()):
        manifest = read_manifest(path)
        found[f"{manifest['results']['judge']['name']}/{manifest['identity']['split']}"] = path
    return found


def origins(data: Path) -> list[dict[str, str]]:
    """Id, own id, group and split of every sample of a dataset."""
    columns = ["id", "own_id", "group_id", "split"]
    tables = [pq.read_table(shard, columns=columns) for shard in sorted(data.glob("*/part-*.parquet"))]
    return [row for table in tables for row in table.to_pylist()]


def scores_of(folder: Path, run: Path) -> list[float]:
    """The scores of a run in a test's folder, the lowest first."""
    return sorted(read_evaluation(folder / "data", run).judged.scores.tolist())


def by_line(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)
