"""`monitorbench init DIR`: a project of one's own, whose `conf/` comes before the package's.

Promises: nothing that is there is changed; the files compose as they are; git sees no runs, data, weights or
keys of the project.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from monitorbench.config.base import UserError
from monitorbench.config.project import PROJECT
from monitorbench.runs.files import write_atomically

_CONTENT = Path(__file__).parent / "project"
FILES = (PROJECT, "conf/dataset/own.yaml", "conf/monitor/own.yaml", "conf/experiment/first.yaml")
"""Files of a project, in the order they are written."""
IGNORED = ("/runs/", "/data/", "/models/", "/conf/local/", "/outputs/", "/multirun/", ".env", ".venv/")
"""Paths that no repository should track: results, datasets, weights, a machine's settings, keys."""


def main(arguments: Sequence[str]) -> int:
    """Write the project's files into a folder that has none of them; `UserError` where it has."""
    parser = argparse.ArgumentParser(
        prog="monitorbench init", description="Begin a project: a folder with settings of one's own."
    )
    parser.add_argument("folder", type=Path, help="made where it is not there; `.` for this one")
    folder: Path = parser.parse_args(arguments).folder
    for name in FILES:
        if (folder / name).exists():
            raise UserError(f"{folder / name}: is there already; expected a folder without a project")
    for name in FILES:
        write_atomically(folder / name, (_CONTENT / name).read_bytes())
        print(folder / name)
    _ignore(folder / ".gitignore")
    print(f"put your samples into {folder / 'samples.jsonl'}, then, in {folder}:")
    print("  monitorbench choose experiment=first plan=true")
    return 0


def _ignore(file: Path) -> None:
    """Write the project's `.gitignore`; where there is one, say which lines it lacks."""
    if not file.exists():
        write_atomically(file, "".join(f"{line}\n" for line in IGNORED))
        print(file)
        return
    present = {line.strip().strip("/") for line in file.read_text(encoding="utf-8").splitlines()}
    if missing := [line for line in IGNORED if line.strip("/") not in present]:
        print(f"{file}: is there already; add these lines to it: {' '.join(missing)}")
