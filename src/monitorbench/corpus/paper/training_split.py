"""The unpaired training split of one cell: overlap removed, quota filled, shards written.

Reads the candidates row group by row group and keeps a few hundred bytes of each, so memory grows slowly
with the corpus: texts stay in memory only for candidates that share an LSH band with another one.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from monitorbench.config.sources import NearDuplicates
from monitorbench.corpus.paper import units
from monitorbench.corpus.paper.candidates import batches
from monitorbench.corpus.paper.overlap import Index, first_of_each, in_company, signatures
from monitorbench.corpus.selection import fill
from monitorbench.corpus.store import ShardWriter, read_split
from monitorbench.corpus.texts import request_text, response_text, row_text
from monitorbench.records import Label, Split

ROWS_PER_SHARD = 16_384


class CellJob(NamedTuple):
    """Inputs of a process that fills one cell."""

    cell: str
    files: Sequence[Path]
    quota: int
    max_shares: Mapping[str, float]
    held_out: Sequence[str]
    """Cues and subcategories that no training sample may have."""
    seed: int
    near_duplicates: NearDuplicates
    variants: frozenset[str]
    """Sources whose own near-duplicates stay."""
    benchmark: Path
    """A dataset folder whose paired splits are written already."""
    folder: Path
    """Folder that the shards are written to."""


class Filled(NamedTuple):
    """One cell of the training split, as the manifest states it."""

    cell: str
    asked: int
    samples: int
    by_source: dict[str, int]
    by_label: dict[str, int]
    by_stratum: dict[str, int]
    rejected: dict[str, int]
    """Candidates that were not taken, by reason."""
    shards: dict[str, str]
    """File name to SHA-256."""


class _Rows(NamedTuple):
    """Facts kept of every candidate; arrays of length n."""

    order: NDArray[np.uint64]
    source: NDArray[np.int16]
    label: NDArray[np.bool_]
    keys: NDArray[np.uint64]
    content: NDArray[np.uint64]
    overlap: NDArray[np.int8]


_OVERLAPS = (
    "",
    "group in the benchmark",
    "request overlaps the benchmark",
    "response overlaps the benchmark",
    "held out for the benchmark",
    "of another split by its source",
)


def fill_cell(job: CellJob) -> Filled:
    """Choose and write the samples of one cell."""
    names = sorted(job.max_shares)
    rows = _scan(job, names)
    rejected: Counter[str] = Counter()
    for code, reason in enumerate(_OVERLAPS[1:], start=1):
        rejected[reason] = int((rows.overlap == code).sum())
    clean = np.flatnonzero(rows.overlap == 0)
    # Nonsense only tops up what is real.
    is_synthetic = np.array([name == units.SYNTHETIC for name in names])[rows.source[clean]]
    clean = clean[np.lexsort((rows.order[clean], is_synthetic))]
    undisputed = clean[~_contradicted(rows, clean)]
    rejected["equal content with both labels"] = len(clean) - len(undisputed)
    varies = np.isin(rows.source[undisputed], [names.index(name) for name in job.variants])
    distinct = undisputed[_distinct(job, rows, undisputed) | varies]
    rejected["near-duplicate within the corpus"] = len(undisputed) - len(distinct)
    chosen = distinct[fill([names[rows.source[row]] for row in distinct], job.max_shares, job.quota)]
    rejected["over quota or share"] = len(distinct) - len(chosen)
    shards, strata = _write(job, np.sort(chosen))
    return Filled(
        cell=job.cell,
        asked=job.quota,
        samples=len(chosen),
        by_source=dict(sorted(Counter(names[s] for s in rows.source[chosen]).items())),
        by_label={
            Label.MISBEHAVIOR.value: int(rows.label[chosen].sum()),
            Label.BENIGN.value: int((~rows.label[chosen]).sum()),
        },
        by_stratum=dict(sorted(strata.items())),
        rejected=dict(+rejected),
        shards=shards,
    )


def _scan(job: CellJob, names: Sequence[str]) -> _Rows:
    """One pass over the candidates: order, label, band keys, and overlap with the benchmark."""
    benchmark = [
        sample
        for split in (Split.TEST, Split.VALIDATION, Split.CALIBRATION)
        if (job.benchmark / split.value).is_dir()
        for sample in read_split(job.benchmark, split)
    ]
    groups = {sample.group_id for sample in benchmark}
    requests = Index([request_text(sample) for sample in benchmark], job.near_duplicates)
    responses = Index([response_text(sample) for sample in benchmark], job.near_duplicates)
    number = {name: index for index, name in enumerate(names)}
    parts: list[_Rows] = []
    names_read = ("id", "group_id", "source", "label", "cue", "subcategory", "split", "request", "response")
    for table in batches(job.files, names_read):
        batch = table.to_pylist()
        request_texts = [row_text(row["request"]) for row in batch]
        response_texts = [row_text(row["response"]) for row in batch]
        request_overlaps = requests.overlaps(request_texts)
        response_overlaps = responses.overlaps(response_texts) & [
            len(text) >= job.near_duplicates.shortest_response for text in response_texts
        ]
        held_out = np.array([{row["cue"], row["subcategory"]} & set(job.held_out) != set() for row in batch])
        in_group = np.array([row["group_id"] in groups for row in batch])
        in_other_split = np.array([row["split"] not in (None, Split.TRAIN) for row in batch])
        parts.append(
            _Rows(
                order=np.array([_order(job.seed, row["id"]) for row in batch], np.uint64),
                source=np.array([number[row["source"]] for row in batch], np.int16),
                label=np.array([row["label"] == Label.MISBEHAVIOR for row in batch]),
                keys=signatures(_both(request_texts, response_texts), job.near_duplicates).keys,
                content=np.array([_hash64(text) for text in _both(request_texts, response_texts)], np.uint64),
                overlap=np.select(
                    [in_other_split, held_out, in_group, request_overlaps, response_overlaps], [5, 4, 1, 2, 3]
                ).astype(np.int8),
            )
        )
    return _Rows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _contradicted(rows: _Rows, left: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the rows `left` say what a row with the other label says word for word; [n]."""
    content, label = rows.content[left], rows.label[left]
    return np.isin(content, np.intersect1d(content[label], content[~label]))


def _distinct(job: CellJob, rows: _Rows, left: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the rows `left`, in their order, stay when near-duplicates of the same label go; [n]."""
    keep = np.ones(len(left), bool)
    company = np.zeros(len(left), bool)
    for label in (True, False):
        ours = np.flatnonzero(rows.label[left] == label)
        company[ours] = in_company(rows.keys[left[ours]]).any(axis=1)
    wanted = set(left[company].tolist())
    texts: dict[int, str] = {}
    position = 0
    for table in batches(job.files, ["request", "response"]) if wanted else ():
        inside = [row for row in range(table.num_rows) if position + row in wanted]
        for row, record in zip(inside, table.take(pa.array(inside, pa.int64())).to_pylist(), strict=True):
            texts[position + row] = "\n".join((row_text(record["request"]), row_text(record["response"])))
        position += table.num_rows
    for label in (True, False):
        ours = np.flatnonzero(company & (rows.label[left] == label))
        contents = [texts[row] for row in left[ours].tolist()]
        if contents:
            keep[ours] = first_of_each(
                contents, signatures(contents, job.near_duplicates), job.near_duplicates
            )
    return keep


def _write(job: CellJob, chosen: NDArray[np.int64]) -> tuple[dict[str, str], Counter[str]]:
    """The shards with their digests, and how many samples are of each stratum."""
    strata: Counter[str] = Counter()
    writer = ShardWriter(job.folder, job.cell.replace("/", "-"), ROWS_PER_SHARD)
    position = 0
    for table in batches(job.files):
        start, end = np.searchsorted(chosen, [position, position + table.num_rows])
        if end > start:
            selected = table.take(chosen[start:end] - position)
            strata.update(selected["stratum"].to_pylist())
            split = pa.array([Split.TRAIN.value] * selected.num_rows, pa.string())
            writer.write(selected.set_column(selected.schema.get_field_index("split"), "split", split))
        position += table.num_rows
    return writer.close(), strata


def _both(requests: Sequence[str], responses: Sequence[str]) -> list[str]:
    return ["\n".join(two) for two in zip(requests, responses, strict=True)]


def _order(seed: int, id_: str) -> int:
    return _hash64(f"{seed}\0{id_}")


def _hash64(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
