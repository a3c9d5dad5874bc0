"""Fill a local mirror on a connected machine: a dataset's raw files, fetched, checked, put in place.

A file is in the mirror whole and with the right checksum or not at all. What is there already is checked and
left; what broke off goes on where it stopped when the same command runs again.
"""

import gzip
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from rich import box
from rich.table import Table

from monitorbench.config.base import UserError
from monitorbench.config.datasets import PaperDataset
from monitorbench.config.sources import Source, SourceFile
from monitorbench.config.study import Study
from monitorbench.config.terminal import Console
from monitorbench.runs.files import make_folder, unwritable
from monitorbench.sources import fetch
from monitorbench.sources.read import RawFile, SourceFiles

_DOWNLOADS = ".downloads"
"""Folder below the mirror for downloads in progress, and for archives of which several files are made."""


class Mirrored(NamedTuple):
    """Result of the command for one source."""

    name: str
    there: int
    """Files that were there, and right."""
    fetched: int
    n_bytes: int
    unchecked: int
    """Files whose checksum could not be looked up: the pinned revision vouches for them."""
    missing: list[str]
    """Files that could not be had: one line each, which file, and why."""


def mirror(study: Study) -> Path:
    """Fill `paths.sources` with the raw files of `study.dataset`; prints a table, a line a source.

    Returns the mirror's folder. Raises `UserError` where no folder is named, the dataset has no raw files,
    or a file could not be had.
    """
    folder, dataset = study.paths.sources, study.dataset
    if folder is None:
        raise UserError("paths.sources=null: no mirror to fill; set MONITORBENCH_SOURCES=DIR")
    if not isinstance(dataset, PaperDataset):
        raise UserError(f"dataset={dataset.name}: it reads no upstream files; expected dataset=paper")
    wanted = {name: study.source[name] for name in sorted(dataset.ingredients) if name in study.source}
    results = fill(wanted, folder)
    _show(results)
    lines = [line for result in results for line in result.missing]
    if lines:
        print("\n".join(lines))
        raise UserError(
            f"{len(lines)} files are missing, named above; what came stays, run again for the rest"
        )
    shutil.rmtree(folder / _DOWNLOADS, ignore_errors=True)
    return folder


def fill(sources: Mapping[str, Source], folder: Path) -> list[Mirrored]:
    """Put every file of some sources below `folder`; what can't be had is named in the result.

    Raises `UserError` where the folder can't be written.
    """
    make_folder(folder)
    return [_fill(name, source, folder) for name, source in sources.items()]


def _fill(name: str, source: Source, folder: Path) -> Mirrored:
    present = fetched = n_bytes = 0
    missing: list[str] = []
    for file in source.files:
        target = folder / file.mirror
        if not file.mirror:
            missing.append(f"{name}: {file.path}: conf/source/{name}.yaml gives it no place in a mirror")
            continue
        was_there = _is_whole(name, source, RawFile(target, file))
        if not was_there:
            try:
                _fetch(name, source, file, folder, target)
            except fetch.MissingFileError as error:
                missing.append(f"{name}: {file.path or file.mirror}: {error.why}")
                continue
            except UserError as error:
                missing.append(str(error))
                continue
        present, fetched = present + was_there, fetched + (not was_there)
        n_bytes += target.stat().st_size
    return Mirrored(name, present, fetched, n_bytes, sum(not f.sha256 for f in source.files), missing)


def _is_whole(name: str, source: Source, file: RawFile) -> bool:
    if not file.path.is_file():
        return False
    try:
        SourceFiles(name, source, (file,), "error").check()
    except UserError:
        return False
    return True


def _fetch(name: str, source: Source, file: SourceFile, folder: Path, target: Path) -> None:
    """Fetch one file from upstream, check it beside its place, then put it there."""
    fetched = fetch.find_file(name, source, file, None, folder / _DOWNLOADS)
    staging = folder / _DOWNLOADS / "ready" / file.mirror
    make_folder(target.parent)
    make_folder(staging.parent)
    try:
        if target.suffix == ".gz" and fetched.suffix != ".gz":
            with (
                fetched.open("rb") as raw,
                staging.open("wb") as out,
                gzip.GzipFile("", "wb", 9, out, 0) as zipped,
            ):
                shutil.copyfileobj(raw, zipped)
        else:
            shutil.copyfile(fetched, staging)
        SourceFiles(name, source, (RawFile(staging, file),), "error").check()
        staging.replace(target)
    except OSError as error:
        raise unwritable(target, error) from error
    finally:
        staging.unlink(missing_ok=True)
    if fetched.is_relative_to(folder) and not file.members and file.path:
        fetched.unlink()


def _show(found: list[Mirrored]) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("source")
    for column in ("there", "fetched", "missing", "MB"):
        table.add_column(column, justify="right")
    table.add_column("")
    for result in found:
        numbers = (result.there, result.fetched, len(result.missing))
        table.add_row(
            result.name,
            *map(str, numbers),
            f"{result.n_bytes / 1e6:.1f}",
            "no checksum known" * bool(result.unchecked),
        )
    Console(width=80, highlight=False).print(table)
