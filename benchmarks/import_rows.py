"""1,000,000 rows of a foreign CSV imported: seconds and memory, beside pandas doing the same work.

Writes a CSV (id, task, label, score from 0 to 10), then imports it with `eval/import.py`, a process of its
own, to a dataset and two evaluation runs. The usual way reads it with pandas, rescales, splits by task, and
writes Parquet and JSON lines of it, without chats, checksums or a check of any row.
"""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from benchmarks.measuring import Result, apart, over_usual, script

SECONDS, MIB = 60, 1024
"""The seconds and MiB that an import may take on two cores."""
SETTINGS = (
    "import.columns.sample=transcript",
    "import.columns.label=attack",
    "import.columns.score=suspicion",
    "import.scale=[0,10]",
    "import.calibration_share=0.5",
)


def main(work: Path, *, rows: int) -> Result:
    """Write the CSV, import it in both ways, and compare."""
    file, rng = work / "scores.csv", np.random.default_rng(0)
    is_attack = rng.random(rows) < 0.4
    table = pa.table(
        {
            "transcript": [f"transcript-{i:07d}" for i in range(rows)],
            "task_id": [f"task-{i // 4}" for i in range(rows)],
            "attack": is_attack.astype(np.int64),
            "suspicion": np.clip(rng.normal(np.where(is_attack, 6.4, 3.6), 1.8), 0, 10).round(3),
        }
    )
    pa_csv.write_csv(table, file)
    paths = [f"paths.data={work / 'data'}", f"paths.runs={work / 'runs'}"]
    ours = script("eval/import.py", f"from={file}", *SETTINGS, *paths)
    imported = json.loads((Path(ours.output) / "manifest.json").read_text())["results"]["n"]
    if not 0.4 * rows < imported < 0.6 * rows:
        raise SystemExit(f"import_rows: {imported} of {rows} rows in the test split; expected about half")
    usual = apart("usual:import_rows", file, work / "usual")
    measurements = {"monitorbench import": ours.row, "pandas": usual.row}
    return Result(measurements, over_usual(ours, usual, SECONDS, MIB), {"rows": rows})
