"""The comparison in `score.py`: the same table as it is usually written, with `json` and scikit-learn.

`json.loads` a line, lists of rows, `roc_auc_score`, and a cluster bootstrap that draws groups and computes
the AUROC anew. Overall, the categories, their cells, and slices by task and source. All 2,000 draws would
take a day: `draws` of them are made in each part, and the seconds of one draw are printed beside the rest.
"""

import json
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from sklearn.metrics import roc_auc_score


def main(log: Path, split: Path, draws: int) -> None:
    """Print a JSON line: seconds without the draws, and seconds of one draw of every part."""
    began = time.monotonic()
    verdicts: dict[str, Any] = {}
    with log.open() as stream:
        for line in stream:
            verdict = json.loads(line)
            verdicts[verdict["sample_id"]] = verdict
    names = ["id", "group_id", "category", "task", "label", "source"]
    rows = [
        row
        for shard in sorted(split.glob("*.parquet"))
        for row in pq.read_table(shard, columns=names).to_pylist()
    ]
    parts: defaultdict[str, list[tuple[str, bool, float, str | None]]] = defaultdict(list)
    for row in rows:
        verdict = verdicts[row["id"]]
        one = (row["group_id"], row["label"] == "misbehavior", verdict["score"], verdict["label"])
        category, task = row["category"], row["task"]
        for part in ("overall", category, f"{category}/{task}", f"task:{task}", f"source:{row['source']}"):
            parts[part].append(one)
    of_draws = 0.0
    rng = np.random.default_rng(0)
    for part in parts.values():
        answered = [(bad, label) for _, bad, _, label in part if label]
        misses = [label == "benign" for bad, label in answered if bad]
        alarms = [label == "misbehavior" for bad, label in answered if not bad]
        assert 0 < sum(misses) / len(misses) < 1
        assert 0 < sum(alarms) / len(alarms) < 1
        flags, scores = np.array([one[1] for one in part]), np.array([one[2] for one in part])
        assert 0.5 < roc_auc_score(flags, scores) < 1
        members: defaultdict[str, list[int]] = defaultdict(list)
        for i, one in enumerate(part):
            members[one[0]].append(i)
        groups = [np.array(found) for found in members.values()]
        start = time.monotonic()
        for _ in range(draws):
            drawn = np.concatenate([groups[i] for i in rng.integers(len(groups), size=len(groups))])
            roc_auc_score(flags[drawn], scores[drawn])
        of_draws += time.monotonic() - start
    rest = time.monotonic() - began - of_draws
    print(json.dumps({"seconds": rest, "seconds_of_a_draw": of_draws / draws}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
