"""Checksums: of files, of a log's lines, and of a manifest. What was written is compared when it is read.

They find what happened to a file by accident or by hand: a flipped bit, a lost block, an edited label. They
are no signature: who rewrites a file and its checksum is not found.
"""

import hashlib
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from monitorbench.config.base import UserError

CHECKSUM = "checksum"
"""The key of a manifest's own checksum."""
_LINE_END = b',"crc32":"%08x"}'
_LINE_END_BYTES = len(_LINE_END % 0)
_known: dict[Path, tuple[tuple[int, int, int], str]] = {}


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file's content: 64 hex digits.

    Read once a process, as long as the file's inode, size and time of change stay as they were.
    Raises `OSError` where it can't be read.
    """
    path = path.resolve()
    stat = path.stat()
    state = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
    known = _known.get(path)
    if known is not None and known[0] == state:
        return known[1]
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    _known[path] = state, digest
    return digest


def sealed_line(line: str) -> bytes:
    """A JSON object on one line, with the CRC-32 of its text as its last member `crc32`."""
    body = line.encode()[:-1]
    return body + _LINE_END % zlib.crc32(body)


def unsealed_line(line: bytes) -> bytes | None:
    """The object that was given to `sealed_line`; None where the line is not as that function made it."""
    line = line.removesuffix(b"\r")
    body = line[:-_LINE_END_BYTES]
    return body + b"}" if line[-_LINE_END_BYTES:] == _LINE_END % zlib.crc32(body) else None


def manifest_checksum(manifest: Mapping[str, Any]) -> str:
    """The SHA-256 of a manifest's content but for its own checksum, whatever the order of its keys."""
    content = {key: value for key, value in manifest.items() if key != CHECKSUM}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def refuse_changed(path: Path, recorded: str | None, remedy: str) -> None:
    """Raise `UserError` where a file has not the SHA-256 that was recorded when it was written.

    Args:
        path: the file.
        recorded: the SHA-256; None where there is none, which is refused as well.
        remedy: what a person may do, as the end of the message.

    """
    if recorded is None:
        raise UserError(f"{path}: no checksum of it is recorded; {remedy}")
    try:
        found = file_sha256(path)
    except OSError as error:
        raise UserError(f"{path}: can't be read ({error.strerror or error}); {remedy}") from error
    if found != recorded:
        raise UserError(f"{path}: not as it was written, edited or damaged; {remedy}")
