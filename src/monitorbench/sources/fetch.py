"""Raw files of a source: from the local mirror first, then from a download kept in a cache.

Promises: a file is handed out whole and with the right checksum or not at all. A download that broke
off resumes where it stopped; one that turns out wrong starts clean, once. What can't be had is one
`UserError` line that names the source, the file and what to set. No place on disk enters `identity`.
"""

import gzip
import hashlib
import http
import http.client
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request
import zlib
from collections.abc import Sequence
from pathlib import Path

from monitorbench.config.base import UserError
from monitorbench.config.sources import Source, SourceFile
from monitorbench.runs.progress import progress
from monitorbench.sources.archive import REPACKED, members_sha256, write_records
from monitorbench.sources.read import SKIPPED_BY_SETTING, OnBadRow, RawFile, SourceFiles
from monitorbench.untrusted import refuse_links_out, where_looked

GITHUB_RAW = "https://raw.githubusercontent.com"
GITHUB_ARCHIVES = "https://codeload.github.com"

_ATTEMPTS = 3
_TIMEOUT = 60.0
_CHUNK = 1 << 18
_COMMIT = re.compile(r"[0-9a-f]{40}")
_BROKE_OFF = (
    urllib.error.URLError,
    http.client.HTTPException,
    ConnectionError,
    TimeoutError,
    ssl.SSLError,
)


class MissingFileError(UserError):
    """A raw file that can't be had: what it says names the file, what to set, and upstream."""

    why = ""
    """The reason alone."""


def find(name: str, source: Source, mirror: Path | None, cache: Path, on_bad_row: OnBadRow) -> SourceFiles:
    """Every file of a source, checked against its checksum.

    `mirror` is `paths.sources` (environment: MONITORBENCH_SOURCES). Files from GitHub are kept below
    `cache`, those from the hub in the hub's own cache. Raises `UserError` where a file can't be had,
    breaks off or has another checksum.
    """
    raw_files = tuple(RawFile(find_file(name, source, file, mirror, cache), file) for file in source.files)
    files = SourceFiles(name, source, raw_files, on_bad_row)
    files.check()
    return files


def local(
    name: str,
    path: Path,
    suffixes: Sequence[str],
    on_bad_row: OnBadRow,
    remedy: str = SKIPPED_BY_SETTING,
) -> SourceFiles:
    """A team's own file, or all the files below a folder whose name ends in one of `suffixes`.

    `remedy` ends the error for a bad row. Raises `UserError` where nothing is there.
    """
    if path.is_file():
        paths = [path]
    elif path.is_dir():
        paths = sorted(p for p in path.rglob("*") if p.is_file() and p.name.endswith(tuple(suffixes)))
        for file in paths:
            refuse_links_out(path, file)
    else:
        raise UserError(
            f"{name}: {path} does not exist{where_looked(path)}; set dataset.path to a file or a folder"
        )
    if not paths:
        raise UserError(f"{name}: {path} holds no {' or '.join(suffixes)} file; set dataset.path")
    root = path if path.is_dir() else path.parent
    raw_files = tuple(
        RawFile(p, SourceFile(path=p.relative_to(root).as_posix(), mirror="", sha256="")) for p in paths
    )
    source = Source(
        origin="none", repo="", revision="", licence="not stated", files=tuple(f.config for f in raw_files)
    )
    return SourceFiles(name, source, raw_files, on_bad_row, remedy)


def snapshot(name: str, repo: str, revision: str) -> Path:
    """The folder of a whole hub dataset, downloaded where not cached; `UserError` where it can't be had."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise UserError(f"{name}: {_NO_HUB_CLIENT}") from error
    try:
        return Path(snapshot_download(repo, repo_type="dataset", revision=revision))
    except hub_errors() as error:
        raise UserError(
            f"{name}: hub dataset {repo}: {_why(error)}; set dataset.path to a copy of it"
        ) from error


def is_here(name: str, source: Source, file: SourceFile, mirror: Path | None, cache: Path) -> bool:
    """Whether a file could be handed out without a network; its checksum is not looked at."""
    if mirror is not None and file.mirror and (mirror / file.mirror).is_file():
        return True
    repo, revision = source.place(file)
    if source.origin == "hub":
        try:
            from huggingface_hub import try_to_load_from_cache
        except ImportError:
            return False
        return isinstance(
            try_to_load_from_cache(repo, file.path, revision=revision, repo_type="dataset"), str
        )
    cached = cache / name / revision
    return (cached / (file.path or ("archive.tar.gz" if file.members else _records_name(file)))).is_file()


def find_file(name: str, source: Source, file: SourceFile, mirror: Path | None, cache: Path) -> Path:
    """Return one file's path, downloading it where the mirror lacks it; `UserError` where it can't be had."""
    if mirror is not None and file.mirror and (mirror / file.mirror).is_file():
        return mirror / file.mirror
    if source.origin == "none" or not (file.path or file.members or file.mirror in REPACKED):
        raise _missing_file(name, source, file, mirror, "only a local mirror can hold it")
    if source.origin == "hub":
        return _from_hub(name, source, file, mirror)
    try:
        if source.origin == "web":
            return _from_web(source, file, cache / name)
        return _from_github(source, file, cache / name)
    except _FailedError as error:
        raise _missing_file(name, source, file, mirror, str(error)) from error


def _from_github(source: Source, file: SourceFile, cache: Path) -> Path:
    """One file at the pinned commit; or the archive; or the records made of it."""
    repo, revision = source.place(file)
    if file.path:
        target = cache / revision / file.path
        if not target.is_file():
            quoted = urllib.parse.quote(f"{repo}/{revision}/{file.path}")
            _download(f"{GITHUB_RAW}/{quoted}", target, file.sha256, resume=_is_commit(revision))
        return target
    archive = cache / revision / "archive.tar.gz"
    target = archive if file.members else cache / revision / _records_name(file)
    if target.is_file():
        return target
    if not archive.is_file():
        # Packed anew for everyone who asks: halves of two downloads need not fit together.
        _download(f"{GITHUB_ARCHIVES}/{repo}/tar.gz/{revision}", archive, "", resume=False)
    if not file.members:
        write_records(archive, REPACKED[file.mirror], target)
    if file.sha256 and _file_sha256(target, file) != file.sha256:
        target.unlink()
        raise _FailedError("what upstream's archive gives has another checksum than conf/source says")
    return target


def _from_web(source: Source, file: SourceFile, cache: Path) -> Path:
    """One file at its address. A part is gone on with only where a checksum tells whether halves fit."""
    target = cache / source.revision / file.path
    if not target.is_file():
        _download(file.url, target, file.sha256, resume=bool(file.sha256))
    return target


def _records_name(file: SourceFile) -> str:
    return Path(file.mirror).name.removesuffix(".gz")


class _FailedError(Exception):
    """A download that gave up; the text says why."""


def _missing_file(
    name: str, source: Source, file: SourceFile, mirror: Path | None, why: str
) -> MissingFileError:
    repo, _ = source.place(file)
    where = {
        "hub": f"hub dataset {repo}",
        "github": f"github.com/{repo}",
        "web": file.url,
        "none": repo,
    }
    remedy = f"set MONITORBENCH_SOURCES=DIR with DIR/{file.mirror}" if file.mirror else "try again online"
    if mirror is not None and file.mirror and not mirror.is_dir():
        remedy = (
            f"the folder {mirror} that MONITORBENCH_SOURCES (paths.sources) names does not exist; set it to "
            f"one that holds {file.mirror}"
        )
    wanted = file.path or file.mirror
    error = MissingFileError(f"{name}: no file {wanted}: {why}; {remedy} (upstream: {where[source.origin]})")
    error.why = why
    return error


# --- the hub -------------------------------------------------------------------------------------------

_NO_HUB_CLIENT = "downloads need the package huggingface_hub; install monitorbench[cpu] or [gpu]"


def _from_hub(name: str, source: Source, file: SourceFile, mirror: Path | None) -> Path:
    try:
        from huggingface_hub import hf_hub_download
    except ImportError as error:
        raise _missing_file(name, source, file, mirror, _NO_HUB_CLIENT) from error
    repo, revision = source.place(file)
    try:
        return Path(hf_hub_download(repo, file.path, repo_type="dataset", revision=revision))
    except hub_errors() as error:
        raise _missing_file(name, source, file, mirror, _why(error)) from error


def hub_errors() -> tuple[type[Exception], ...]:
    """Exceptions that the hub's client raises when it is offline, refused, or given a bad name."""
    from huggingface_hub.errors import EntryNotFoundError

    from monitorbench.engines.stored.model_folder import client_errors

    return (*client_errors(), EntryNotFoundError)


def _why(error: Exception) -> str:
    from huggingface_hub.errors import EntryNotFoundError, GatedRepoError, LocalEntryNotFoundError

    if isinstance(error, GatedRepoError):
        return "it is gated: accept its terms on the hub and set HF_TOKEN"
    if isinstance(error, LocalEntryNotFoundError):
        return "not cached, and the hub can't be reached"
    if isinstance(error, EntryNotFoundError):
        return "the hub has no such file at the pinned revision"
    return " ".join(str(error).split())[:160] or type(error).__name__


# --- plain HTTP ----------------------------------------------------------------------------------------


def _is_commit(revision: str) -> bool:
    return _COMMIT.fullmatch(revision) is not None


def _download(url: str, target: Path, sha256: str, *, resume: bool) -> None:
    """Fetch `url` to `target` through `target.part`; raises `_FailedError`, keeping a good part."""
    partial = target.with_name(f"{target.name}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if not resume:
            # A moving revision may be another file by now: its halves would not fit together.
            partial.unlink(missing_ok=True)
        resumed = partial.exists()
        _complete(url, partial)
        if not _is_right(partial, target.name, sha256) and resumed:
            partial.unlink()
            _complete(url, partial)
        if not _is_right(partial, target.name, sha256):
            partial.unlink()
            raise _FailedError("what was downloaded has another checksum than conf/source says")
        partial.replace(target)
    except OSError as error:
        raise _FailedError(f"can't be kept in {target.parent} ({error.strerror or error})") from error


def _complete(url: str, part: Path) -> None:
    reason = ""
    for _ in range(_ATTEMPTS):
        try:
            if _resumed(url, part):
                return
            reason = f"the download broke off after {part.stat().st_size} bytes"
        except urllib.error.HTTPError as error:
            error.close()
            if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise _FailedError(f"HTTP {error.code} {error.reason}") from error
            part.unlink(missing_ok=True)
            reason = "the server refused to resume the download"
        except _BROKE_OFF as error:
            reason = f"the download failed ({getattr(error, 'reason', '') or error or type(error).__name__})"
    started = part.exists() and part.stat().st_size > 0
    raise _FailedError(f"{reason}; run again to resume it" if started else reason)


def _resumed(url: str, part: Path) -> bool:
    """Append what is missing of `url` to `part`; whether it is whole now."""
    start = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:
        if response.status != http.HTTPStatus.PARTIAL_CONTENT:
            start = 0
        length = response.headers.get("Content-Length")
        total = start + int(length) if length else None
        with part.open("ab" if start else "wb") as stream, progress(part.stem, total or 1) as ticker:
            ticker.advance(start if total else 0)
            while chunk := response.read(_CHUNK):
                stream.write(chunk)
                ticker.advance(len(chunk) if total else 0)
    return total is None or part.stat().st_size == total


def _is_right(part: Path, name: str, sha256: str) -> bool:
    try:
        return not sha256 or _content_sha256(part, name) == sha256
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return False


def _file_sha256(path: Path, file: SourceFile) -> str:
    return members_sha256(path, file.members) if file.members else _content_sha256(path, path.name)


def _content_sha256(path: Path, name: str) -> str:
    zipped = name.endswith(".gz") and not name.endswith(".tar.gz")
    with gzip.open(path) if zipped else path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
