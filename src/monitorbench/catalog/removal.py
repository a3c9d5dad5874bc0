"""`runs rm`: a run is removed whole or not at all, and nothing outside the folder of runs ever is."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from monitorbench.catalog.found import KINDS, Run, read_run, runs_in
from monitorbench.catalog.links import readers
from monitorbench.catalog.listing import size, size_in_words
from monitorbench.catalog.selectors import find
from monitorbench.config.base import UserError
from monitorbench.runs.files import DIRECTORY_LOCK, is_locked, locked, part_of, unwritable


def remove(folder: Path, names: Sequence[str], *, force: bool, agreed: Callable[[str], bool]) -> list[Path]:
    """Remove the runs that short names mean, once `agreed` to the question; returns their folders.

    All are looked at before the first is removed. Raises `UserError` for one that is no run below `folder`,
    that another run was made from (unless `force`), or that is being written; nothing is removed then.
    """
    chosen = list({run.path: run for run in (_inside(folder, name) for name in names)}.values())
    _refuse_running(chosen)
    if not force:
        _refuse_read(chosen, runs_in(folder))
    sizes = {run.path: size(run.path) for run in chosen}
    lines = [f"  {run.path} ({run.state}, {size_in_words(sizes[run.path])})" for run in chosen]
    total = size_in_words(sum(sizes.values()))
    if not agreed("\n".join([*lines, f"remove {len(chosen)} run{'s'[: len(chosen) > 1]}, {total}?"])):
        return []
    for run in chosen:
        _remove(run.path)
    return [run.path for run in chosen]


def _inside(folder: Path, name: str) -> Run:
    path = find(folder, name)
    kind = path.parent.name
    expected = f"expected a run below {folder}, such as {folder / 'evaluate' / 'NAME-HASH'}"
    if path.is_symlink():
        raise UserError(f"{path}: a link, not a run; {expected}")
    if not path.is_dir():
        raise UserError(f"{path}: no such run; {expected}")
    if kind not in KINDS or path.resolve().parent != folder.resolve() / kind or path.name in ("", "."):
        raise UserError(f"{path}: no run of this folder; {expected}")
    return read_run(path, kind)


def _refuse_running(chosen: Sequence[Run]) -> None:
    for run in chosen:
        if is_locked(run.path):
            raise UserError(f"{run.path}: a process is writing to it; end that first")


def _refuse_read(chosen: Sequence[Run], everything: Sequence[Run]) -> None:
    leaving = {run.path.resolve() for run in chosen}
    staying = [run for run in everything if run.path.resolve() not in leaving]
    for run in chosen:
        if found := readers(run, staying):
            others = f" and {len(found) - 1} more" if len(found) > 1 else ""
            raise UserError(
                f"{run.path}: {found[0].kind}/{found[0].path.name}{others} was made from it; remove that as "
                "well, or add --force"
            )


def _remove(path: Path) -> None:
    # The lock's file goes along; whoever waits for it then makes the run anew.
    with locked(path / DIRECTORY_LOCK):
        gone = part_of(path)
        try:
            path.rename(gone)
            shutil.rmtree(gone)  # which removes links, and never follows them
        except OSError as error:
            raise unwritable(path, error) from error
