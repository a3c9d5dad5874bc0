"""A repository's archive at a commit, as GitHub packs it: members, their digest, records made of them.

A packed archive's own bytes may differ from one download to the next, its members don't: what is checked is
the members, or the records that `sources.repack` makes of them.
"""

import gzip
import hashlib
import json
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from monitorbench.config.base import UserError
from monitorbench.runs.files import write_atomically
from monitorbench.sources.repack import Member, Repack
from monitorbench.untrusted import members_within

BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    EOFError,
    zlib.error,
    gzip.BadGzipFile,
    OSError,
    NotImplementedError,
)


def regular_files(path: Path) -> Iterator[Member]:
    """Name and content of the regular files of a tar or zip archive, in its order.

    Nothing is unpacked to disk, so that no member's name leads anywhere. Raises one of `BROKEN` where the
    archive is damaged, `UserError` where it unpacks to too much.
    """
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as zipped:
            infos = ((info, info.file_size) for info in zipped.infolist())
            for info in members_within(path, infos):
                if not info.is_dir():
                    yield info.filename, zipped.read(info)
        return
    yield from _of_tar(path)


def _of_tar(path: Path, wanted: Callable[[str], str] = str) -> Iterator[Member]:
    """Regular files by what `wanted` makes of their names, without those that it makes nothing of."""
    with tarfile.open(path) as archive:
        for member in members_within(path, ((member, member.size) for member in archive)):
            name = wanted(member.name)
            if name and member.isfile() and (stream := archive.extractfile(member)) is not None:
                yield name, stream.read()


def members(path: Path, folder: str = "") -> Iterator[Member]:
    """Name and content of the regular files below `folder`, in the archive's order.

    Names are relative to `folder`; without one, to the repository, which GitHub packs into a single folder.
    Raises one of `BROKEN` where the archive is damaged.
    """

    def inside(name: str) -> str:
        return f"/{name}".partition(f"/{folder}/")[2] if folder else name.partition("/")[2]

    return _of_tar(path, inside)


def members_sha256(path: Path, folder: str) -> str:
    """SHA-256 over name and content of the members below `folder`, in the order of their names."""
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in members(path, folder)}
    return hashlib.sha256("".join(f"{n}\0{d}\n" for n, d in sorted(digests.items())).encode()).hexdigest()


def write_records(archive: Path, repack: Repack, target: Path) -> None:
    """Write the records that `repack` makes of an archive to `target`, a JSON line each.

    Raises `UserError` where the archive is damaged or its files are not as the repacking expects them.
    """
    try:
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in repack(members(archive))]
    except (*BROKEN, ValueError, KeyError, IndexError, TypeError) as error:
        why = " ".join(str(error).split())[:120]
        raise UserError(
            f"{archive}: can't be repacked ({type(error).__name__}: {why}); fetch it again"
        ) from error
    write_atomically(target, "".join(lines))
