"""A split as columns: what the metrics need of its samples, without a record for each.

Promises: the samples, and the order, of `store.read_split`; texts are read only to see whether there is a
reasoning trace, some thousand rows at a time.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from monitorbench.cells import wrong_name
from monitorbench.config.base import UserError
from monitorbench.config.datasets import SplitView
from monitorbench.corpus.store import from_table, n_rows, no_sample, reading, refuse_unknown_cells, shards_of
from monitorbench.metrics.bootstrap import IntArray
from monitorbench.metrics.columns import BoolArray, Columns, numbered, pair_numbers
from monitorbench.records import Category, Label, Sample, Split, Task, vocabulary
from monitorbench.runs.directory import read_manifest
from monitorbench.untrusted_parquet import parquet_batches, parquet_table

_NAMES = ("id", "pair_id", "group_id", "category", "task", "label", "source", "stratum")
_ROWS = 65_536


def read_columns(directory: Path, split: Split, view: SplitView | None = None) -> Columns:
    """A split, or the part of it that `view` keeps, with no answers yet.

    `UserError` where it is missing or empty, where a file of it is no Parquet of samples, or where a
    label is none of ours, or a category or task no name,
    or where `view` names a cell that the dataset doesn't have.
    """
    parts: list[pa.Table] = []
    shards = shards_of(directory, split)
    refuse_unknown_cells(directory, split, view)
    for shard in shards:
        with reading(shard):
            wanted = [*_NAMES, "response.list.element.thinking"]
            batches = parquet_batches(shard, wanted, _ROWS)
            parts += [_without_texts(pa.Table.from_batches([batch])) for batch in batches]
    if not parts:
        raise UserError(no_sample(directory, split, view or SplitView()))
    with reading(directory / split.value):  # columns of these names may hold other types
        table = pa.concat_tables(parts)
        columns = _columns(table, f"{directory / split.value}")
    columns = replace(columns, headline=read_manifest(directory).get("results", {}).get("headline", {}))
    if view is None:
        return columns
    selected = _kept(columns, table["pair_id"], view)
    if not selected.any():
        raise UserError(no_sample(directory, split, view))
    return columns.taking(selected)


def read_batches(directory: Path, split: Split, rows: int = 10_000) -> Iterator[list[Sample]]:
    """The samples of a split in their order, at most `rows` at a time; `UserError` where it is missing."""
    for shard in shards_of(directory, split):
        with reading(shard):
            for batch in parquet_batches(shard, rows=rows):
                yield from_table(pa.Table.from_batches([batch]))


def read_some(directory: Path, split: Split, per_cell: int) -> list[Sample]:
    """Read at most `per_cell` samples of each cell, as `some_groups` takes them; raises as `read_columns`."""
    return [sample for batch in read_some_batches(directory, split, per_cell) for sample in batch]


def read_some_batches(directory: Path, split: Split, per_cell: int) -> Iterator[list[Sample]]:
    """As `read_some`, in batches of the split's order."""
    if not n_rows(directory, split):
        return
    columns = read_columns(directory, split)
    cells, names = columns.cells, columns.group_ids()
    rows: list[int] = []
    for cell in np.unique(cells).tolist():
        inside = np.flatnonzero(cells == cell)
        positions = some_groups(names.take(pa.array(inside)).to_pylist(), per_cell)
        rows += inside[positions].tolist()
    chosen = columns.sample_ids.take(pa.array(sorted(rows), pa.int64()))
    for shard in shards_of(directory, split):
        with reading(shard):
            for batch in parquet_batches(shard, rows=10_000):
                table = pa.Table.from_batches([batch])
                yield from_table(table.filter(pc.is_in(table["id"], value_set=chosen)))


def read_marked(directory: Path, split: Split) -> list[Sample]:
    """The samples of a split that have gold spans; raises as `read_columns`."""
    samples: list[Sample] = []
    for shard in shards_of(directory, split):
        with reading(shard):
            spans = parquet_table(shard, ["gold_spans"])["gold_spans"]
            if not pc.any(pc.greater(pc.fill_null(pc.list_value_length(spans), 0), 0)).as_py():
                continue
            for batch in parquet_batches(shard, rows=_ROWS):
                table = pa.Table.from_batches([batch])
                has_spans = pc.greater(pc.fill_null(pc.list_value_length(table["gold_spans"]), 0), 0)
                samples += from_table(table.filter(has_spans))
    return samples


def some_groups(group_ids: Sequence[str], limit: int) -> list[int]:
    """The positions of whole groups in the order of a hash, until there are `limit` samples.

    A first group that is larger than `limit` gives its first samples.
    """
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for position, name in enumerate(group_ids):
        groups[name].append(position)
    positions: list[int] = []
    for name in sorted(groups, key=lambda name: hashlib.sha256(name.encode()).digest()):
        if positions and len(positions) + len(groups[name]) > limit:
            continue
        positions += groups[name][:limit]
    return positions


def _without_texts(table: pa.Table) -> pa.Table:
    """The named columns, and `has_thinking` in place of the response."""
    response = table["response"].combine_chunks()
    if isinstance(response, pa.ChunkedArray):
        response = pa.concat_arrays(response.chunks)
    lengths = pc.fill_null(pc.binary_length(pc.struct_field(pc.list_flatten(response), "thinking")), 0)
    of_sample = pc.list_parent_indices(response).to_numpy()[lengths.to_numpy(zero_copy_only=False) > 0]
    has_thinking = np.bincount(of_sample, minlength=len(response)) > 0
    return table.select(_NAMES).append_column("has_thinking", pa.array(has_thinking))


def _columns(table: pa.Table, where: str) -> Columns:
    groups, sources, strata = (numbered(table[name]) for name in ("group_id", "source", "stratum"))
    n = table.num_rows
    unanswered = np.full(n, np.nan)
    none = np.zeros(n, dtype=np.int64)
    categories = vocabulary(Category, _own_names(table, "category", where))
    tasks = vocabulary(Task, _own_names(table, "task", where))
    labels = tuple(label.value for label in Label)
    return Columns(
        sample_ids=table["id"].combine_chunks() if n else pa.array([], pa.string()),
        is_misbehavior=_positions(table, "label", labels, where) == labels.index(Label.MISBEHAVIOR),
        flagged=unanswered,
        scores=unanswered,
        groups=groups.numbers,
        group_names=groups.names,
        pairs=pair_numbers(table["pair_id"]),
        categories=_positions(table, "category", categories, where),
        category_names=categories,
        tasks=_positions(table, "task", tasks, where),
        task_names=tasks,
        sources=sources.numbers,
        source_names=tuple(sources.names.to_pylist()),
        strata=strata.numbers,
        stratum_names=tuple(strata.names.to_pylist()),
        has_thinking=table["has_thinking"].to_numpy(),
        n_quotes=none,
        n_grounded=none,
    )


def _own_names(table: pa.Table, name: str, where: str) -> list[str]:
    """The distinct values of a column of names; `UserError` for what is none, `ValueError` for no text."""
    names: list[str] = table[name].unique().to_pylist()
    for value in names:
        if not isinstance(value, str):
            raise ValueError(f"{name} {value!r} is no text")
        if reason := wrong_name(value):
            raise UserError(f"{where}: {name}: {reason}; build the dataset again")
    return names


def _positions(table: pa.Table, name: str, known: Sequence[str], where: str) -> IntArray:
    """The position of each value among those that are known [samples]."""
    indices = pc.index_in(table[name], value_set=pa.array(known))
    if indices.null_count:
        wrong = table[name].filter(indices.is_null())[0].as_py()
        raise UserError(f"{where}: {name} {wrong!r}; expected {', '.join(known)}; build the dataset again")
    positions: IntArray = indices.to_numpy().astype(np.int64)
    return positions


def _kept(found: Columns, pair_ids: pa.ChunkedArray, view: SplitView) -> BoolArray:
    """Which samples `store.select` would keep."""
    cells = product(found.category_names, found.task_names)
    selected = found.in_cells(
        [f"{category}/{task}" for category, task in cells if view.keeps(category, task)]
    )
    if view.pairs_per_cell is None:
        return selected
    cell = found.cells
    chosen = np.zeros(len(found), dtype=np.bool_)
    for number in np.unique(cell[selected]).tolist():
        inside = selected & (cell == number)
        ids = pair_ids.filter(pa.array(inside)).unique().to_pylist()
        first = sorted(ids, key=lambda i: hashlib.sha256(i.encode()).digest())[: view.pairs_per_cell]
        chosen |= inside & pc.is_in(pair_ids, value_set=pa.array(first, pa.string())).to_numpy()
    return chosen
