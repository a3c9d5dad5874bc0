"""What `import_rows.py` is compared with: reading and writing with pandas, without a check of any row.

python benchmarks/import_rows_usual.py CSV FOLDER
"""

import hashlib
import sys
from pathlib import Path

import pandas as pd


def main(file: Path, folder: Path) -> None:
    """Read, rescale, split by task, and write a Parquet file and JSON lines a split."""
    frame = pd.read_csv(file, dtype={"transcript": str, "task_id": str})
    frame["score"] = frame["suspicion"] / 10
    frame["label"] = frame["attack"].map({1: "misbehavior", 0: "benign"})
    frame["answer"] = (frame["score"] >= 0.5).map({True: "misbehavior", False: "benign"})
    frame["id"] = [hashlib.sha256(one.encode()).hexdigest()[:16] for one in frame["transcript"]]
    of_task = {one: hashlib.sha256(one.encode()).digest()[0] % 2 for one in frame["task_id"].unique()}
    frame["split"] = frame["task_id"].map(of_task).map({0: "calibration", 1: "test"})
    for split, part in frame.groupby("split"):
        (folder / str(split)).mkdir(parents=True, exist_ok=True)
        part[["id", "transcript", "task_id", "label"]].to_parquet(folder / str(split) / "samples.parquet")
        part[["id", "answer", "score"]].to_json(
            folder / str(split) / "verdicts.jsonl", orient="records", lines=True
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
