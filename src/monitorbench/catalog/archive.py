"""`runs export`: what a run came to, in one zip that is the same whenever it is made from the same files."""

import io
import os
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from monitorbench.catalog.found import Run
from monitorbench.catalog.links import settings
from monitorbench.config.base import UserError
from monitorbench.config.secrets import SHORTEST_SECRET, secret_values
from monitorbench.runs.directory import LOGS, checked_file
from monitorbench.runs.files import write_atomically

_RESULTS = (
    "report*",
    "samples*",
    "*.html",
    "*.csv",
    "metrics*.json",
    "config.json",
    "manifest.json",
    "learning_curve.json",
    "operating_point.json",
    "decision.json",
)
"""Files of a run's folder, and folders, that are always taken. Never `server.json`, which may have a key."""
_ANSWERS = ("*.jsonl",)
"""Taken by choice: they hold answers of models, and name or quote what was judged."""
_REMOVED = b"(removed)"
_BEGIN = (1980, 1, 1, 0, 0, 0)
"""The first moment that a zip can tell."""
_UNIX = 3
"""Said of every system, so that the zip is the same on all."""


class Exported(NamedTuple):
    """A zip that was written."""

    file: Path
    names: list[str]
    redacted: list[str]
    """Files in which a key was found and replaced."""


def export(run: Run, target: Path | None, *, verdicts: bool) -> Exported:
    """Write a run's results to a zip: `target`, or in the folder `target`, or `<name>.zip` here.

    Keys that the environment holds are replaced where a file has them; settings hold none.
    Raises `UserError` for a file that is not as it was written, or where there is nothing to export.
    """
    name = f"{run.path.name}.zip"
    file = target / name if target is not None and target.is_dir() else target or Path(name)
    secrets = list(_secrets(run))
    buffer, names, redacted = io.BytesIO(), list[str](), list[str]()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for path in _files(run.path, (*_RESULTS, *(_ANSWERS if verdicts else ()))):
            inner = path.relative_to(run.path).as_posix()
            content = _content(run, path, inner)
            cleaned = content
            for secret in secrets:
                cleaned = cleaned.replace(secret, _REMOVED)
            if cleaned != content:
                redacted.append(inner)
            entry = zipfile.ZipInfo(f"{run.path.name}/{inner}", _BEGIN)
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, _UNIX
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, cleaned)
            names.append(inner)
    if not names:
        raise UserError(f"{run.path}: no results in it; expected a run that a stage wrote")
    write_atomically(file, buffer.getvalue())
    return Exported(file, names, redacted)


def _files(folder: Path, patterns: tuple[str, ...]) -> Iterator[Path]:
    """Those whose name, or whose folder's name in the run, is of a pattern; links are left out."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        is_taken = any(fnmatch(parts[0], pattern) for pattern in patterns)
        linked = any(folder.joinpath(*parts[: i + 1]).is_symlink() for i in range(len(parts)))
        if is_taken and not linked and path.is_file() and not any(part.startswith(".") for part in parts):
            yield path


def _content(run: Run, path: Path, inner: str) -> bytes:
    if inner in run.manifest.get("files", {}) and path.name not in LOGS:
        checked_file(run.path, inner)
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: can't be read ({error.strerror or error})") from error


def _secrets(run: Run) -> Iterator[bytes]:
    variable = settings(run).get("engine", {}).get("api_key_env")
    key = os.environ.get(variable, "").strip() if variable else ""
    if len(key) >= SHORTEST_SECRET:
        yield key.encode()
    yield from (value.encode() for value in secret_values())
