"""Files that are there whole or not at all."""

import glob
import hashlib
import json
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from monitorbench.config.base import UserError


def write_atomically(path: Path, content: str | bytes) -> None:
    """Replace `path` by `content`: a reader, or a crash, never meets half of it.

    Raises `UserError` where it can't be written.
    """
    data = content.encode() if isinstance(content, str) else content
    make_folder(path.parent)
    part = part_of(path)
    try:
        with part.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        with suppress(OSError):  # what stays is swept by the next write
            part.unlink(missing_ok=True)


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
    part = part_of(target)
    make_folder(part)
    try:
        yield part
        shutil.rmtree(target, ignore_errors=True)
        try:
            part.rename(target)
        except OSError as error:
            raise unwritable(target, error) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


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
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):  # ended, or no process id at all
        return False
    except PermissionError:
        return True
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    """Whether a process has ended and only waits to be reaped, which a container's init may be slow to do."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:  # no Linux, or gone in the meantime
        return False
    return stat.rpartition(")")[2].split()[0] in ("Z", "X")


def content_hash(value: Any) -> str:
    """The first 12 hex digits of a JSON value's SHA-256; the order of keys does not matter."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
