"""A dataset on disk: `<directory>/<split>/*.parquet`, written whole or not at all, and the table in them."""

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from monitorbench.cells import beyond_the_paper
from monitorbench.config.base import UserError
from monitorbench.config.datasets import SplitView
from monitorbench.config.load import did_you_mean
from monitorbench.records import Cell, Sample, Split
from monitorbench.runs.directory import checked_file, read_manifest
from monitorbench.runs.files import content_hash, make_folder, part_of
from monitorbench.untrusted_parquet import parquet_table

ALL_NAMED = "all_named"
"""Result in the manifest of a dataset whose files name the split of every sample."""
_SHARD_BYTES = 128 * 2**20
_TOOL_CALL = pa.struct([("id", pa.string()), ("name", pa.string()), ("arguments", pa.string())])
_MESSAGE = pa.struct(
    [
        ("role", pa.string()),
        ("content", pa.string()),
        ("thinking", pa.string()),
        ("tool_calls", pa.list_(_TOOL_CALL)),
        ("tool_call_id", pa.string()),
    ]
)
_SPAN = pa.struct(
    [
        ("message", pa.int32()),
        ("field", pa.string()),
        ("call", pa.int32()),
        ("start", pa.int32()),
        ("end", pa.int32()),
    ]
)
_STRUCTURED = {
    "request": pa.list_(_MESSAGE),
    "response": pa.list_(_MESSAGE),
    "gold_spans": pa.list_(_SPAN),
}

SAMPLE_SCHEMA = pa.schema(
    [pa.field(name, _STRUCTURED.get(name, pa.string())) for name in Sample.model_fields]
)
"""The Arrow schema of a split's Parquet shards, one column per field of `Sample`, in its order."""


def to_table(samples: list[Sample]) -> pa.Table:
    """Samples as one Arrow table with `SAMPLE_SCHEMA`."""
    return pa.Table.from_pylist([s.model_dump(mode="json") for s in samples], schema=SAMPLE_SCHEMA)


def from_table(table: pa.Table) -> list[Sample]:
    """Samples from an Arrow table with `SAMPLE_SCHEMA`; raises `pydantic.ValidationError` on a bad row."""
    rows: list[dict[str, Any]] = table.to_pylist()
    return [Sample.model_validate(row) for row in rows]


def write_split(directory: Path, split: Split, samples: Iterable[Sample]) -> str:
    """Write one split as a Parquet shard, ordered by pair; returns its SHA-256.

    Equal samples give equal bytes. Which sample of a pair comes first is as good as drawn: by its id, a hash.
    """
    ordered = sorted(samples, key=lambda sample: (sample.cell, sample.pair_id, sample.id))
    table = to_table(ordered)
    writer = ShardWriter(directory / split.value, "part", max(table.num_rows, 1))
    writer.write(table)
    return digest_of(writer.close())


class ShardWriter:
    """Write tables as numbered Parquet shards `<name>-00000.parquet`; equal rows give equal bytes.

    A shard is renamed into place when it is whole. `close` returns each one's SHA-256.
    """

    def __init__(self, folder: Path, name: str, rows_per_shard: int) -> None:
        """Nothing is written before the first table."""
        self._folder, self._name, self._rows = folder, name, rows_per_shard
        self._waiting: list[pa.Table] = []
        self._digests: dict[str, str] = {}

    def write(self, table: pa.Table) -> None:
        """Take a table; a shard is written whenever one is full."""
        self._waiting.append(table)
        while sum(waiting.num_rows for waiting in self._waiting) >= self._rows:
            waiting = pa.concat_tables(self._waiting)
            self._shard(waiting.slice(0, self._rows))
            self._waiting = [waiting.slice(self._rows)]

    def close(self) -> dict[str, str]:
        """Write what is left."""
        remaining = pa.concat_tables(self._waiting) if self._waiting else None
        if remaining is not None and (remaining.num_rows or not self._digests):
            self._shard(remaining)
        self._waiting = []
        return self._digests

    def _shard(self, table: pa.Table) -> None:
        """Write a shard, or several where it would unpack to more than is read of a small file."""
        rows = -(-table.num_rows // (1 + table.nbytes // _SHARD_BYTES)) or 1
        for start in range(0, max(table.num_rows, 1), rows):
            name = f"{self._name}-{len(self._digests):05d}.parquet"
            self._digests[name] = _write_whole(self._folder / name, table.slice(start, rows))


def digest_of(digests: Mapping[str, str]) -> str:
    """The SHA-256 of the one shard, or of the list of several."""
    return next(iter(digests.values())) if len(digests) == 1 else content_hash(digests)


def _write_whole(target: Path, table: pa.Table) -> str:
    make_folder(target.parent)
    staging = part_of(target)
    try:
        pq.write_table(table.combine_chunks(), staging, compression="zstd", write_page_index=False)
        with staging.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            os.fsync(stream.fileno())
        staging.replace(target)
    except OSError as error:
        raise UserError(f"{target}: can't be written ({error.strerror or error})") from error
    finally:
        with suppress(OSError):  # what stays is swept by the next write
            staging.unlink(missing_ok=True)
    return digest


def shards_of(directory: Path, split: Split) -> list[Path]:
    """A split's Parquet files in their order, compared with what was written.

    Raises `UserError` where there are none, or one is not as it was written.
    """
    names = {f"{split.value}/{shard.name}" for shard in (directory / split.value).glob("*.parquet")}
    if not names:
        raise UserError(f"{directory / split.value}: no such split; build it with dataset.splits=[{split}]")
    written = read_manifest(directory).get("files", {})
    names |= {name for name in written if name.startswith(f"{split.value}/") and name.endswith(".parquet")}
    return [checked_file(directory, name) for name in sorted(names)]


def refuse_unknown_cells(directory: Path, split: Split, view: SplitView | None) -> None:
    """Raise `UserError` where a view names a category or cell that is no paper's and in no split."""
    names = beyond_the_paper(view.subset) if view is not None else []
    if not names:
        return
    splits = read_manifest(directory).get("results", {}).get("splits", {})
    cells = sorted({cell for facts in splits.values() for cell in facts.get("pairs", {})})
    expected = sorted({cell.partition("/")[0] for cell in cells}) + cells
    for name in names:
        if name not in expected:
            key = f"dataset.{split}.subset"
            nearest = did_you_mean(name, expected, f"{key}=")
            raise UserError(
                f"{key}: {directory.name} has no {'cell' if '/' in name else 'category'} {name}; "
                f"{nearest}{' ' if nearest else ''}expected one of {', '.join(expected)}"
            )


@contextmanager
def reading(shard: Path) -> Iterator[None]:
    """Turn errors in a Parquet file's bytes, columns or values into a `UserError` that names the file."""
    try:
        yield
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        reason = " ".join(str(error).split())[:160]
        raise UserError(
            f"{shard}: no Parquet of samples ({reason}); copy it again, or build it anew"
        ) from error


def n_rows(directory: Path, split: Split) -> int:
    """How many samples a split holds; `UserError` where it is missing or can't be read."""
    n = 0
    for shard in shards_of(directory, split):
        with reading(shard):
            n += pq.read_metadata(shard).num_rows
    return n


def read_split(directory: Path, split: Split, view: SplitView | None = None) -> list[Sample]:
    """Read a split, or the part of it that `view` keeps.

    Raises `UserError` where it is missing or empty, where a file of it is no Parquet of samples, or where
    `view` names a cell that the dataset doesn't have.
    """
    samples: list[Sample] = []
    shards = shards_of(directory, split)
    refuse_unknown_cells(directory, split, view)
    for shard in shards:
        with reading(shard):
            table = parquet_table(shard)
            if view is not None:  # before there is a record for each row: that is what takes the time
                cells = zip(table["category"].to_pylist(), table["task"].to_pylist(), strict=True)
                kept = np.array([view.keeps(*cell) for cell in cells], np.bool_)
                # `pa.array` would import pandas: half a second.
                bits = pa.py_buffer(np.packbits(kept, bitorder="little"))
                table = table.filter(pa.Array.from_buffers(pa.bool_(), len(kept), [None, bits]))
            samples += from_table(table)
    if view is not None:
        samples = select(samples, view)
    if not samples and view is not None:
        raise UserError(no_sample(directory, split, view))
    return samples


def no_sample(directory: Path, split: Split, view: SplitView) -> str:
    """Say why a view keeps no sample of a split: the subset has none, or the split, by its share."""
    manifest = read_manifest(directory)
    if manifest.get("results", {}).get("splits", {}).get(split.value, {}).get("samples") != 0:
        return f"dataset.{split}.subset={','.join(view.subset)}: no sample of {directory.name} is in it"
    if manifest["results"].get(ALL_NAMED):
        return (
            f"{directory.name}: its {split} split is empty: every row of its files names its split, and none "
            f"names {split}, so that no dataset.shares.{split} places any; expected rows with split={split}, "
            "or rows without a split"
        )
    share = manifest.get("identity", {}).get("dataset", {}).get("shares", {}).get(split.value)
    if share is None:
        return f"{directory.name}: its {split} split is empty; expected a dataset with samples for it"
    return (
        f"{directory.name}: its {split} split is empty: dataset.shares.{split}={share:g} puts no group there "
        f"and no sample names that split; expected a larger dataset.shares.{split}, and less for other splits"
    )


def select(samples: Sequence[Sample], view: SplitView) -> list[Sample]:
    """The samples a view keeps, in their order; `pairs_per_cell` takes the first pairs by id hash."""
    selected = [sample for sample in samples if view.keeps(sample.category, sample.task)]
    if view.pairs_per_cell is None:
        return selected
    pairs: defaultdict[Cell, set[str]] = defaultdict(set)
    for sample in selected:
        pairs[sample.cell].add(sample.pair_id)
    chosen = {
        (cell, pair)
        for cell, ids in pairs.items()
        for pair in sorted(ids, key=lambda i: hashlib.sha256(i.encode()).digest())[: view.pairs_per_cell]
    }
    return [sample for sample in selected if (sample.cell, sample.pair_id) in chosen]
