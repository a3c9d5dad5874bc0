"""Run directories and logs made by hand, with the checksums that a stage would have written."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from monitorbench.runs.directory import recorded_files, write_manifest
from monitorbench.runs.files import file_sha256, sealed_line


def seal(directory: Path, manifest: Mapping[str, Any] | None = None) -> None:
    """Write a finished run's manifest, or what is changed in it, with the checksums of the files there."""
    directory.mkdir(parents=True, exist_ok=True)
    files = {name: file_sha256(directory / name) for name in recorded_files(directory, ())}
    made = {"status": "done", "identity": {}, "results": {}} if manifest is None else manifest
    write_manifest(directory, {**made, "files": files})


def seal_log(path: Path, records: list[Mapping[str, Any]] | None = None) -> None:
    """Write a log of these records; of none, of what its lines say now."""
    if records is None:
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    path.write_bytes(b"".join(map(sealed, records)))


def sealed(record: Mapping[str, Any]) -> bytes:
    """A log's line of this content, with the checksum that belongs to it."""
    return sealed_line(json.dumps({k: v for k, v in record.items() if k != "crc32"})) + b"\n"
