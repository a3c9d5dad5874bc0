"""How samples lie in an Arrow table, as a split's Parquet files have them."""

from typing import Any

import pyarrow as pa

from monitorbench.records import Sample

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
