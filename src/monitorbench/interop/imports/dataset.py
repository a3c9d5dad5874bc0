"""The dataset of an import: splits as `corpus.build` writes them, and which sample is which of the file's.

Promises: the directory appears when it is whole. Every sample keeps the file's id of it (`own_id`). A
dataset whose file has no responses says so (`without_texts`), for whoever would read them.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from monitorbench.config.base import Config, UserError
from monitorbench.corpus.store import SAMPLE_SCHEMA, ShardWriter, digest_of, shards_of
from monitorbench.interop.imports.conversations import ConversationSide, stored
from monitorbench.interop.imports.samples import SPLITS, Samples
from monitorbench.interop.imports.values import hashes
from monitorbench.metrics.bootstrap import IntArray
from monitorbench.records import Construction, Label, LabelSource, Split
from monitorbench.runs.directory import RunDirectory
from monitorbench.untrusted_parquet import parquet_table

_ROWS = 131_072
_log = logging.getLogger(__name__)


class Written(NamedTuple):
    """A dataset that is there."""

    directory: Path
    ids: Mapping[Split, pa.Array]
    """Ids of the samples, by split."""
    rows: Mapping[Split, IntArray]
    """Indices of these samples among the import's, by split, in the same order."""


def write_dataset(
    config: Config,
    data: Path,
    name: str,
    identity: Mapping[str, Any],
    facts: Mapping[str, Any],
    samples: Samples,
    request: ConversationSide,
    response: ConversationSide,
) -> Written:
    """Write, or find, the dataset in the folder `data`; `facts` go into its manifest.

    Raises `UserError` where two samples have one pair and one text.
    """
    run = RunDirectory(data, name, identity, is_shared=True)
    pairs = _pair_ids(samples)
    rows = {
        split: indices
        for i, split in enumerate(SPLITS)
        if (indices := np.flatnonzero(samples.splits == i)).size
    }
    if run.done:
        ids = {split: _ids_of(run.path, split) for split in rows}
        if all(len(ids[split]) == len(indices) for split, indices in rows.items()):
            _log.info("import: reusing %s", run.path)
            return Written(run.path, ids, rows)
    ids = {}
    with run.appearing(config) as (folder, results):
        splits: dict[str, Any] = {}
        for split, indices in rows.items():
            writer = ShardWriter(folder / split.value, "part", _ROWS)
            own_ids = []
            for start in range(0, len(indices), _ROWS):
                at = indices[start : start + _ROWS]
                shard = _table(samples, split, pairs, request, response, at)
                own_ids.append(shard["id"].combine_chunks())
                writer.write(shard)
            ids[split] = pa.concat_arrays(own_ids)
            _refuse_equal(ids[split], samples.names.take(pa.array(indices)))
            splits[split.value] = {
                "samples": len(indices),
                "pairs": _n_pairs(samples, pairs, indices),
                "sha256": digest_of(writer.close()),
            }
        results |= {"dropped": {}, "splits": splits, "without_texts": response.is_absent, **facts}
    return Written(run.path, ids, rows)


def _pair_ids(samples: Samples) -> pa.Array:
    """Return the file's pair of each sample, or a pair of its own, as `dataset=jsonl` has it."""
    if pc.all(pc.not_equal(samples.pairs, "")).as_py():
        return samples.pairs
    own = pc.binary_join_element_wise("row-", hashes(samples.names), "")
    return pc.if_else(pc.equal(samples.pairs, ""), own, samples.pairs)


def _table(
    samples: Samples,
    split: Split,
    pairs: pa.Array,
    request: ConversationSide,
    response: ConversationSide,
    at: IntArray,
) -> pa.Table:
    rows = pa.array(at)
    texts = stored(request, response, samples.names, pairs, at)
    labels = pa.array([Label.BENIGN.value, Label.MISBEHAVIOR.value])
    columns = {
        "id": texts.ids,
        "pair_id": pairs.take(rows),
        "group_id": samples.groups.take(rows),
        "category": samples.categories.take(rows),
        "task": samples.tasks.take(rows),
        "request": texts.requests,
        "response": texts.responses,
        "label": labels.take(pa.array(samples.is_misbehavior[at].astype(np.int64))),
        "own_id": samples.names.take(rows),
        "gold_spans": pa.ListArray.from_arrays(
            pa.array(np.zeros(len(at) + 1, dtype=np.int32)),
            pa.array([], SAMPLE_SCHEMA.field("gold_spans").type.value_type),
        ),
    }
    constant = {
        "label_source": LabelSource.UPSTREAM.value,
        "construction": Construction.LABELLED.value,
        "source": "imported",
        "licence": "not stated",
        "split": split.value,
    }
    nothing = pa.array(np.zeros(len(at), dtype=np.int64))
    for field in SAMPLE_SCHEMA:
        if field.name not in columns:
            columns[field.name] = pa.array([constant.get(field.name, "")]).take(nothing)
    return pa.table([columns[field.name] for field in SAMPLE_SCHEMA], schema=SAMPLE_SCHEMA)


def _refuse_equal(ids: pa.Array, names: pa.Array) -> None:
    if pc.count_distinct(ids).as_py() == len(ids):
        return
    counted = pc.value_counts(ids)
    twice = counted.filter(pc.greater(counted.field("counts"), 1))[0]["values"]
    same = names.filter(pc.equal(ids, twice)).to_pylist()[:2]
    raise UserError(
        f"samples {same[0]!r} and {same[1]!r} have the same texts and one pair; expected one of them, or no "
        "column for import.columns.pair"
    )


def _n_pairs(samples: Samples, pairs: pa.Array, at: IntArray) -> dict[str, int]:
    rows = pa.array(at)
    cells = pc.binary_join_element_wise(samples.categories.take(rows), samples.tasks.take(rows), "/")
    table = (
        pa.table({"cell": cells, "pair": pairs.take(rows)})
        .group_by("cell")
        .aggregate([("pair", "count_distinct")])
    )
    counts = zip(table["cell"].to_pylist(), table["pair_count_distinct"].to_pylist(), strict=True)
    return dict(sorted(counts))


def _ids_of(directory: Path, split: Split) -> pa.Array:
    columns = [parquet_table(shard, ["id"])["id"] for shard in shards_of(directory, split)]
    return pa.concat_arrays([column.combine_chunks() for column in columns])
