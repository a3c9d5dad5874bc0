"""The usual ways that benchmarks compare with: the same jobs as they are usually written.

Each function is called in a process of its own (`measuring.apart`), and imports what it needs itself.
"""

import hashlib
import json
import os
import time
from collections import defaultdict
from pathlib import Path
from typing import Any


def import_rows(file: str, out: str) -> None:
    """Read, rescale, split by task and write Parquet and JSON lines, without a check of any row."""
    import pandas as pd

    frame = pd.read_csv(file, dtype={"transcript": str, "task_id": str})
    frame["score"] = frame["suspicion"] / 10
    frame["label"] = frame["attack"].map({1: "misbehavior", 0: "benign"})
    frame["answer"] = (frame["score"] >= 0.5).map({True: "misbehavior", False: "benign"})
    frame["id"] = [hashlib.sha256(name.encode()).hexdigest()[:16] for name in frame["transcript"]]
    of_task = {task: hashlib.sha256(task.encode()).digest()[0] % 2 for task in frame["task_id"].unique()}
    frame["split"] = frame["task_id"].map(of_task).map({0: "calibration", 1: "test"})
    for split, rows in frame.groupby("split"):
        folder = Path(out) / str(split)
        folder.mkdir(parents=True, exist_ok=True)
        rows[["id", "transcript", "task_id", "label"]].to_parquet(folder / "samples.parquet")
        answers = rows[["id", "answer", "score"]]
        answers.to_json(folder / "verdicts.jsonl", orient="records", lines=True)


def score(log: str, split: str, draws: int) -> float:
    """Seconds of one bootstrap draw of every part, after rates and AUROC of all of them.

    `json.loads` a line, lists of rows, `roc_auc_score`, and a bootstrap that draws groups and computes
    the AUROC anew. Overall, the categories, their cells, and slices by task and source. All 2,000 draws would
    take a day: `draws` of them are made in each part.
    """
    import numpy as np
    import pyarrow.parquet as pq
    from sklearn.metrics import roc_auc_score

    verdicts: dict[str, Any] = {}
    with Path(log).open() as stream:
        for line in stream:
            verdict = json.loads(line)
            verdicts[verdict["sample_id"]] = verdict
    names = ["id", "group_id", "category", "task", "label", "source"]
    shards = sorted(Path(split).glob("*.parquet"))
    rows = [row for shard in shards for row in pq.read_table(shard, columns=names).to_pylist()]
    parts: defaultdict[str, list[tuple[str, bool, float, str | None]]] = defaultdict(list)
    for row in rows:
        verdict = verdicts[row["id"]]
        judged = (row["group_id"], row["label"] == "misbehavior", verdict["score"], verdict["label"])
        category, task = row["category"], row["task"]
        for name in ("overall", category, f"{category}/{task}", f"task:{task}", f"source:{row['source']}"):
            parts[name].append(judged)
    of_draws = 0.0
    rng = np.random.default_rng(0)
    for part in parts.values():
        answered = [(bad, label) for _, bad, _, label in part if label]
        misses = [label == "benign" for bad, label in answered if bad]
        alarms = [label == "misbehavior" for bad, label in answered if not bad]
        assert 0 < sum(misses) / len(misses) < 1
        assert 0 < sum(alarms) / len(alarms) < 1
        flags, scores = np.array([bad for _, bad, _, _ in part]), np.array([given for _, _, given, _ in part])
        assert 0.5 < roc_auc_score(flags, scores) < 1
        members: defaultdict[str, list[int]] = defaultdict(list)
        for i, (group, *_) in enumerate(part):
            members[group].append(i)
        groups = [np.array(rows_of) for rows_of in members.values()]
        start = time.monotonic()
        for _ in range(draws):
            drawn = np.concatenate([groups[i] for i in rng.integers(len(groups), size=len(groups))])
            roc_auc_score(flags[drawn], scores[drawn])
        of_draws += time.monotonic() - start
    return of_draws / draws


def corpus(folders: list[str], benchmark: str, out: str, quotas: dict[str, int]) -> int:
    """Mix a corpus from candidates; returns how many samples were written.

    Same candidates, same shingles, same threshold and signature length as ours: signatures by `datasets.map`
    on every core, `MinHashLSH` for overlap with the benchmark and within the corpus, quotas, Parquet.
    Candidates of the LSH count as duplicates without a look at the texts, as these scripts do; it costs less.
    """
    import numpy as np
    from datasets import concatenate_datasets, disable_progress_bars, load_dataset
    from datasketch import MinHash, MinHashLSH

    permutations, threshold, shingle, scheme = 128, 0.8, 8, "affine32"  # datasketch's own default scheme
    columns = ["of_request", "of_response", "of_both"]

    def text(messages: list[dict[str, Any]]) -> str:
        parts = [part for m in messages for part in (m["thinking"], m["content"])]
        parts += [f"{call['name']} {call['arguments']}" for m in messages for call in m["tool_calls"] or ()]
        return "\n".join(filter(None, parts))

    def signature(document: str) -> Any:
        data = " ".join(document.casefold().split()).encode()
        minhash = MinHash(num_perm=permutations, seed=1, scheme=scheme)
        minhash.update_batch({data[i : i + shingle] for i in range(max(1, len(data) - shingle + 1))})
        return minhash.hashvalues

    def signed(row: dict[str, Any]) -> dict[str, Any]:
        request, response = text(row["request"]), text(row["response"])
        texts = zip(columns, (request, response, f"{request}\n{response}"), strict=True)
        cell = f"{row['category']}/{row['task']}"
        return {**{column: signature(document) for column, document in texts}, "cell": cell}

    def restored(values: list[int]) -> MinHash:
        return MinHash(permutations, seed=1, hashvalues=np.array(values, dtype=np.uint32), scheme=scheme)

    def loaded(files: list[Path]) -> Any:
        names = sorted(map(str, files))
        table = load_dataset("parquet", data_files=names, split="train", cache_dir=f"{out}/cache")
        return table.map(signed, num_proc=os.cpu_count())

    disable_progress_bars()
    pool = loaded([file for folder in folders for file in Path(folder).glob("*.parquet")])
    splits = ("[!t]*/*.parquet", "test/*.parquet")
    held = loaded([file for pattern in splits for file in Path(benchmark).glob(pattern)])
    indexes = {}
    for column in columns[:2]:
        indexes[column] = MinHashLSH(threshold=threshold, num_perm=permutations)
        for number, values in enumerate(held[column]):
            indexes[column].insert(number, restored(values))
    taken = MinHashLSH(threshold=threshold, num_perm=permutations)
    keep = []
    for number, row in enumerate(pool.select_columns([*columns, "label"])):
        if any(index.query(restored(row[column])) for column, index in indexes.items()):
            continue
        both = restored(row["of_both"])
        if any(key.startswith(row["label"]) for key in taken.query(both)):
            continue
        taken.insert(f"{row['label']}-{number}", both)
        keep.append(number)
    pool = pool.select(keep)
    cells, rng = np.array(pool["cell"]), np.random.default_rng(0)
    drawn = {cell: rng.permutation(np.flatnonzero(cells == cell))[:quota] for cell, quota in quotas.items()}
    mixed = concatenate_datasets([pool.select(rows) for rows in drawn.values()])
    mixed.remove_columns([*columns, "cell"]).to_parquet(f"{out}/train.parquet")
    return len(mixed)
