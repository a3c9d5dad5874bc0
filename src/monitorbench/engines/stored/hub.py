"""A model on the hub: the commit that a branch or tag stands for, and the folder of that commit.

The client's own variables hold: HF_HOME, HF_ENDPOINT, HF_HUB_OFFLINE, HF_TOKEN.
"""

import functools
import logging
import re
from pathlib import Path

from monitorbench.config.base import UserError
from monitorbench.engines.stored.model_folder import PICKLES, blob_sha256
from monitorbench.runs.files import file_sha256

_COMMIT, _SHA256 = re.compile(r"[0-9a-f]{40}"), re.compile(r"[0-9a-f]{64}")
_log = logging.getLogger(__name__)


@functools.cache
def hub_commit(repo: str, revision: str) -> str:
    """The commit of `revision`, 40 hex digits: asked of the hub, or where that can't be reached of its cache.

    Asked once a process, so that all of a run has one answer. A revision that is a commit is not asked for.
    Raises `UserError` where neither knows it.
    """
    if _COMMIT.fullmatch(revision):
        return revision
    # The client keeps a folder for each commit, and notes for later which one a branch or tag was.
    folder = _snapshot(repo, revision, "config.json")
    if not _COMMIT.fullmatch(folder.name):
        raise UserError(f"{repo}@{revision}: the hub names no commit; expected one in monitor.revision")
    _log.info("%s@%s is commit %s", repo, revision, folder.name)
    return folder.name


def hub_folder(repo: str, commit: str) -> Path:
    """The folder of that commit in the hub's cache, downloaded where it is not there, pickles left out.

    Raises `UserError` where it can't be had.
    """
    return _snapshot(repo, commit, None)


def hub_file(repo: str, commit: str, name: str) -> Path:
    """A file of that commit in the hub's cache, downloaded where it is not there.

    Raises `UserError` where it can't be had.
    """
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(repo, name, revision=commit))
    except client_errors() as error:
        raise _not_to_be_had(
            f"{repo}@{commit}/{name}", error, "monitor.gguf to a local copy of it"
        ) from error


def hub_file_sha256(repo: str, commit: str, name: str) -> str:
    """The SHA-256 of a file of that commit: the hub and its cache name large files by it.

    Nothing is downloaded but a file that is small, or that the hub names otherwise. Raises `UserError` where
    neither knows the file.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_url, try_to_load_from_cache

    cached = try_to_load_from_cache(repo, name, revision=commit)
    if not isinstance(cached, str):
        try:
            etag = get_hf_file_metadata(hf_hub_url(repo, name, revision=commit)).etag
        except client_errors() as error:
            raise _not_to_be_had(
                f"{repo}@{commit}/{name}", error, "monitor.gguf to a local copy of it"
            ) from error
        if etag is not None and _SHA256.fullmatch(etag):
            return etag
        cached = str(hub_file(repo, commit, name))
    return blob_sha256(Path(cached)) or file_sha256(Path(cached))


def _snapshot(repo: str, revision: str, pattern: str | None) -> Path:
    from huggingface_hub import snapshot_download

    try:
        folder = snapshot_download(
            repo, revision=revision, allow_patterns=pattern, ignore_patterns=list(PICKLES)
        )
    except client_errors() as error:
        raise _not_to_be_had(f"{repo}@{revision}", error, "monitor.path to a local folder of it") from error
    return Path(folder)


def _not_to_be_had(what: str, error: Exception, instead: str) -> UserError:
    return UserError(
        f"{what}: can't be had from the hub, nor from its cache ({type(error).__name__}: "
        f"{' '.join(str(error).split())[:120]}); set {instead}"
    )


def client_errors() -> tuple[type[Exception], ...]:
    """Errors of the hub's client when it is offline, refused, or given a bad name."""
    from huggingface_hub.errors import HfHubHTTPError

    # Its HTTP library's own errors pass through at some calls; which library that is, changes.
    transport: type[Exception] = HfHubHTTPError.__bases__[0]
    return (transport, OSError, ValueError)
