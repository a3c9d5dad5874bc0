"""A model on the hub: the commit that a branch or tag stands for, and the folder of that commit.

The client's own variables hold: HF_HOME, HF_ENDPOINT, HF_HUB_OFFLINE, HF_TOKEN.
"""

import functools
import logging
import re
from pathlib import Path

from monitorbench.config.base import UserError
from monitorbench.engines.stored.model_folder import PICKLES

_COMMIT = re.compile(r"[0-9a-f]{40}")
_log = logging.getLogger(__name__)


@functools.cache
def hub_commit(repo: str, revision: str) -> str:
    """The commit of `revision`, 40 hex digits: asked of the hub, else looked up in its local cache.

    Asked once a process, so that all of a run has one answer. A revision that is a commit is not asked for.
    Raises `UserError` where neither knows it.
    """
    if _COMMIT.fullmatch(revision):
        return revision
    from huggingface_hub import HfApi

    try:
        commit = HfApi().model_info(repo, revision=revision, timeout=10).sha
    except _errors() as error:
        cached = _cached_commit(repo, revision)
        if cached is None:
            raise UserError(
                f"{repo}@{revision}: the hub doesn't say which commit that is ({_why(error)}), and its cache "
                "has none; set monitor.path to a local folder of it"
            ) from error
        _log.info("%s@%s: the hub can't be asked; its cache has commit %s", repo, revision, cached)
        return cached
    if commit is None:
        raise UserError(f"{repo}@{revision}: the hub names no commit; set monitor.revision to one")
    return commit


def hub_folder(repo: str, commit: str) -> Path:
    """The folder of that commit in the hub's cache, downloaded where it is not there, pickles left out.

    Raises `UserError` where it can't be had.
    """
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(repo, revision=commit, ignore_patterns=list(PICKLES)))
    except _errors() as error:
        raise UserError(
            f"{repo}@{commit}: can't be had from the hub ({_why(error)}); set monitor.path to a local folder "
            "of it"
        ) from error


def _cached_commit(repo: str, revision: str) -> str | None:
    """What the cache noted of a branch or tag, where it has a folder of that commit."""
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    here = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repo, repo_type="model")
    try:
        commit = (here / "refs" / revision).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return commit if _COMMIT.fullmatch(commit) and (here / "snapshots" / commit).is_dir() else None


def _errors() -> tuple[type[Exception], ...]:
    """What the hub's client raises when it is offline, refused, or given a bad name."""
    from huggingface_hub import errors

    # Its HTTP library's own error, whichever library that is, passes through at some calls.
    transport: type[Exception] = errors.HfHubHTTPError.__bases__[0]
    return (transport, OSError, ValueError)


def _why(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
