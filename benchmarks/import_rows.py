"""1,000,000 rows of a foreign CSV imported: seconds and memory, beside pandas doing the same work.

    python benchmarks/import_rows.py [ROWS]

Writes a CSV (id, task, label, score from 0 to 10), then imports it with `eval/import.py`, a process of its
own, to a dataset and two evaluation runs. The usual way (`import_rows_usual.py`) reads it with pandas,
rescales, splits by task, and writes Parquet and JSON lines of it, without chats, checksums or a check of any
row. Prints a table and writes `runs/benchmarks/import_rows/ratios.json`.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from measure import ROOT, measured

WORK = ROOT / "runs" / "benchmarks" / "import_rows"
ROWS = 1_000_000
SECONDS, MIB = 60, 2048
"""What an import may take on two cores."""


def main(rows: int) -> None:
    """Measure and print."""
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    file = write(WORK / "scores.csv", rows)
    settings = [
        "import.columns.sample=transcript",
        "import.columns.label=attack",
        "import.columns.score=suspicion",
        "import.scale=[0,10]",
        "import.calibration_share=0.5",
    ]
    paths = [f"paths.data={WORK / 'data'}", f"paths.runs={WORK / 'runs'}"]
    ours = measured([sys.executable, str(ROOT / "eval" / "import.py"), f"from={file}", *settings, *paths])
    imported = json.loads((Path(ours.output) / "manifest.json").read_text())["results"]["n"]
    if not 0.4 * rows < imported < 0.6 * rows:
        raise SystemExit(f"benchmarks/import_rows.py: {imported} of {rows} rows in the test split")
    usual = measured(
        [sys.executable, str(ROOT / "benchmarks" / "import_rows_usual.py"), str(file), str(WORK / "usual")]
    )
    for name, row in (("monitorbench import", ours), ("pandas", usual)):
        print(f"{name:<32} {row.seconds:8.1f} s {row.peak_mib:8.0f} MiB")
    ratios = {
        "usual_seconds_over_ours": usual.seconds / ours.seconds,
        "usual_memory_over_ours": usual.peak_mib / ours.peak_mib,
        "seconds_over_the_limit": ours.seconds / SECONDS,
        "memory_over_the_limit": ours.peak_mib / MIB,
    }
    for name, ratio in ratios.items():
        print(f"{name:<32} {ratio:8.2f}")
    found = {
        "rows": rows,
        "ratios": ratios,
        "measured": {
            name: {"seconds": row.seconds, "peak_mib": row.peak_mib}
            for name, row in (("monitorbench", ours), ("pandas", usual))
        },
    }
    (WORK / "ratios.json").write_text(json.dumps(found, indent=2) + "\n")


def write(file: Path, rows: int) -> Path:
    """Four rows a task, 40 % attacks."""
    rng = np.random.default_rng(0)
    is_attack = rng.random(rows) < 0.4
    scores = np.clip(rng.normal(np.where(is_attack, 6.4, 3.6), 1.8), 0, 10).round(3)
    table = pa.table(
        {
            "transcript": [f"transcript-{i:07d}" for i in range(rows)],
            "task_id": [f"task-{i // 4}" for i in range(rows)],
            "attack": is_attack.astype(np.int64),
            "suspicion": scores,
        }
    )
    pa_csv.write_csv(table, file)
    return file


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
