"""Files of runs and datasets: written whole or not at all, held by one process, read back or refused.

A lock ends with its process, however that ends, and is not inherited by a forked child: an engine's worker
may outlive a killed parent. A JSON file may have been cut off, edited or mistaken for another; none of that
is a traceback. Checksums of files, of a log's lines and of a manifest are compared when these are read: they
find what happened by accident or by hand, a flipped bit or an edited label; they are no signature.
"""

import fcntl
import glob
import hashlib
import json
import os
import platform
import shutil
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from monitorbench import strict_json
from monitorbench.config.base import UserError
from monitorbench.untrusted import document

CHECKSUM = "checksum"
"""The key of a manifest's own checksum."""
_LINE_END = b',"crc32":"%08x"}'
_LINE_END_BYTES = len(_LINE_END % 0)
_digests: dict[Path, tuple[tuple[int, int, int], str]] = {}
DIRECTORY_LOCK = ".lock"
"""The file whose lock is one on the folder that it lies in."""


@contextmanager
def locked(path: Path, *, wait: bool = False) -> Iterator[int]:
    """Hold the lock on a file while the body runs; yields a descriptor of it for reading and appending.

    Raises `UserError` where another process holds it and `wait` is False, or where it can't be written.
    """
    from filelock import FileLock, Timeout  # takes a quarter of a second, which `--help` has no use for

    make_folder(path.parent)
    # Where a network folder has no kernel locks, a soft one would outlive its process: it is refused instead.
    lock = FileLock(path.resolve(), timeout=-1 if wait else 0, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout as error:
        owned = path.parent if path.name == DIRECTORY_LOCK else path
        raise UserError(f"{owned}: another process is writing to it; wait for it or end it") from error
    except OSError as error:
        raise unwritable(path, error) from error
    try:
        try:
            stream = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise unwritable(path, error) from error
        try:
            yield stream
        finally:
            os.close(stream)
    finally:
        lock.release()


def is_locked(directory: Path) -> bool:
    """Whether a process is writing to a run's directory now; False where nobody ever did.

    Asked of the kernel itself, by a shared lock: `filelock` has none that two who ask could hold at once, and
    would write into a folder that one may only read.
    """
    try:
        stream = os.open(directory / DIRECTORY_LOCK, os.O_RDONLY | os.O_NONBLOCK)  # no wait for a pipe
    except OSError:
        return False
    try:
        fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    finally:
        os.close(stream)
    return False


def write_atomically(path: Path, content: str | bytes, mode: int = 0o666) -> None:
    """Replace `path` by `content`: a reader, or a crash, never meets half of it.

    `mode` is what the umask is taken from. Raises `UserError` where it can't be written.
    """
    data = content.encode() if isinstance(content, str) else content
    make_folder(path.parent)
    unfinished = part_of(path)
    try:
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        unfinished.replace(path)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        with suppress(OSError):  # what stays is swept by the next write
            unfinished.unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    """Make a folder and those around it; `UserError` where it can't be made."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error) from error


def unwritable(path: Path, error: OSError) -> UserError:
    """The error message for a full disk or a missing permission."""
    return UserError(
        f"{path}: can't be written ({error.strerror or error}); make room or allow writing, then run the "
        "same command again"
    )


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically, two spaces deep; NaN and infinity are refused (`ValueError`)."""
    write_atomically(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


@contextmanager
def folder_in_the_making(target: Path) -> Iterator[Path]:
    """A folder to fill, which becomes `target` when the body ends well, and is removed when it does not.

    Replaces a `target` that is there. What processes that were killed left behind is swept. Raises
    `UserError` where the folder can't be made or put into its place.
    """
    make_folder(target.parent)
    unfinished = part_of(target)
    make_folder(unfinished)
    try:
        yield unfinished
        shutil.rmtree(target, ignore_errors=True)
        try:
            unfinished.rename(target)
        except OSError as error:
            raise unwritable(target, error) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def part_of(target: Path) -> Path:
    """The name under which this process makes `target`; what killed processes left beside it is swept."""
    host = platform.node()  # on a shared disk another machine's processes may be making theirs
    for stale in target.parent.glob(f".{glob.escape(target.name)}.part-*@{host}"):
        if not _is_running(int(stale.name.removesuffix(f"@{host}").rpartition("-")[2])):
            if stale.is_dir():
                shutil.rmtree(stale, ignore_errors=True)
            else:
                with suppress(OSError):
                    stale.unlink(missing_ok=True)
    return target.with_name(f".{target.name}.part-{os.getpid()}@{host}")


def _is_running(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped has ended: a container's init may be slow."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (ProcessLookupError, OverflowError):  # ended, or no process id at all
        return False
    except OSError:  # another user's process, or no Linux
        return True
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def content_hash(value: Any) -> str:
    """The first 12 hex digits of a JSON value's SHA-256; the order of keys does not matter."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


class StoredObject(dict[str, Any]):
    """A JSON object of a file: a key that it lacks is a `UserError` that names file and key."""

    def __init__(self, content: Mapping[str, Any], file: Path, place: str = "") -> None:
        """`place` is the dotted path of the object inside the file."""
        self._file, self._place = file, place
        super().__init__({key: self._read(key, value) for key, value in content.items()})

    def __missing__(self, key: str) -> Any:
        raise UserError(
            f"{self._file}: no {self._place}{key} in it; expected the file of another stage, or one that "
            "nobody edited"
        )

    def object(self, key: str) -> "StoredObject":
        """The object under a key; `UserError` where it is missing or no object."""
        inner = self[key]
        if not isinstance(inner, StoredObject):
            raise UserError(
                f"{self._file}: {self._place}{key} is no object; expected the file as a stage wrote it"
            )
        return inner

    def _read(self, key: str, value: Any) -> Any:
        if isinstance(value, dict):
            return StoredObject(value, self._file, f"{self._place}{key}.")
        if isinstance(value, list):
            return [self._read(key, item) for item in value]
        return value


def read_json(path: Path) -> Any:
    """The JSON value in a file; `UserError` where it can't be read or is none."""
    try:
        return strict_json.loads(document(path))
    except ValueError as error:  # no UTF-8, no JSON, a key twice
        reason = " ".join(str(error).split())[:100]
        raise UserError(f"{path}: not JSON ({reason}); expected it as a stage wrote it") from error


def read_object(path: Path) -> StoredObject:
    """The JSON object in a file; `UserError` where it holds none."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise UserError(f"{path}: a JSON {type(content).__name__}; expected an object, as a stage wrote it")
    return StoredObject(content, path)


def read_objects(path: Path) -> list[StoredObject]:
    """The JSON objects that a file lists; `UserError` where it holds no such list."""
    content = read_json(path)
    if not isinstance(content, list) or not all(isinstance(item, dict) for item in content):
        raise UserError(f"{path}: no list of objects; expected it as a stage wrote it")
    return [StoredObject(item, path) for item in content]


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file's content: 64 hex digits.

    Read once a process, as long as the file's inode, size and time of change stay as they were.
    Raises `OSError` where it can't be read.
    """
    path = path.resolve()
    stat = path.stat()
    state = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
    remembered = _digests.get(path)
    if remembered is not None and remembered[0] == state:
        return remembered[1]
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    _digests[path] = state, digest
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
        digest = file_sha256(path)
    except OSError as error:
        raise UserError(f"{path}: can't be read ({error.strerror or error}); {remedy}") from error
    if digest != recorded:
        raise UserError(f"{path}: not as it was written, edited or damaged; {remedy}")
