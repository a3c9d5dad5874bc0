"""The comparison in `corpus.py`: the mixing job as it is usually written, with `datasets` and `datasketch`.

Same candidates, same shingles, same threshold and signature length: signatures by `datasets.map` on every
core, `MinHashLSH` for overlap with the benchmark and within the corpus, quotas, Parquet. Candidates of the
LSH count as duplicates without a look at the texts, which is what these scripts do, and costs less.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from datasets import concatenate_datasets, disable_progress_bars, load_dataset
from datasketch import MinHash, MinHashLSH

PERMUTATIONS, THRESHOLD, SHINGLE = 128, 0.8, 8
SCHEME = "affine32"
"""datasketch's own default."""


def text(messages: list[dict[str, Any]]) -> str:
    """All text of some messages."""
    parts = [part for m in messages for part in (m["thinking"], m["content"])]
    parts += [f"{call['name']} {call['arguments']}" for m in messages for call in m["tool_calls"] or ()]
    return "\n".join(filter(None, parts))


def signature(document: str) -> MinHash:
    """MinHash of the 8-byte shingles of the normalised text."""
    data = " ".join(document.casefold().split()).encode()
    minhash = MinHash(num_perm=PERMUTATIONS, seed=1, scheme=SCHEME)
    minhash.update_batch({data[i : i + SHINGLE] for i in range(max(1, len(data) - SHINGLE + 1))})
    return minhash


def signed(row: dict[str, Any]) -> dict[str, Any]:
    """Three signatures of a sample."""
    request, response = text(row["request"]), text(row["response"])
    return {
        "of_request": signature(request).hashvalues,
        "of_response": signature(response).hashvalues,
        "of_both": signature(f"{request}\n{response}").hashvalues,
        "cell": f"{row['category']}/{row['task']}",
    }


def restored(values: list[int]) -> MinHash:
    """A signature out of a table."""
    return MinHash(PERMUTATIONS, seed=1, hashvalues=np.array(values, dtype=np.uint32), scheme=SCHEME)


def main(folders: list[str], benchmark: Path, out: Path, quotas: dict[str, int]) -> int:
    """Do the job; returns how many samples were written."""
    disable_progress_bars()
    cores = os.cpu_count()
    files = sorted(str(file) for folder in folders for file in Path(folder).glob("*.parquet"))
    pool = load_dataset("parquet", data_files=files, split="train").map(signed, num_proc=cores)
    held = load_dataset(
        "parquet",
        data_files=[str(f) for f in benchmark.glob("[!t]*/*.parquet")]
        + [str(f) for f in benchmark.glob("test/*.parquet")],
        split="train",
    )
    held = held.map(signed, num_proc=cores)
    indexes = {}
    for column in ("of_request", "of_response"):
        indexes[column] = MinHashLSH(threshold=THRESHOLD, num_perm=PERMUTATIONS)
        for number, values in enumerate(held[column]):
            indexes[column].insert(number, restored(values))
    seen = MinHashLSH(threshold=THRESHOLD, num_perm=PERMUTATIONS)
    keep = []
    for number, row in enumerate(pool.select_columns(["of_request", "of_response", "of_both", "label"])):
        if any(index.query(restored(row[column])) for column, index in indexes.items()):
            continue
        both = restored(row["of_both"])
        if any(key.startswith(row["label"]) for key in seen.query(both)):
            continue
        seen.insert(f"{row['label']}-{number}", both)
        keep.append(number)
    kept = pool.select(keep)
    cells = np.array(kept["cell"])
    rng = np.random.default_rng(0)
    parts = [
        kept.select(rng.permutation(np.flatnonzero(cells == cell))[:quota]) for cell, quota in quotas.items()
    ]
    corpus = concatenate_datasets(parts).remove_columns(["of_request", "of_response", "of_both", "cell"])
    out.mkdir(parents=True, exist_ok=True)
    corpus.to_parquet(str(out / "train.parquet"))
    return len(corpus)


if __name__ == "__main__":
    job = json.loads(Path(sys.argv[1]).read_text())
    print(main(job["candidates"], Path(job["benchmark"]), Path(job["out"]), job["quotas"]))
