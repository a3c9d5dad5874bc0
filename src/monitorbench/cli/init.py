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

FILES = {
    PROJECT: """\
# This folder is a monitorbench project: `monitorbench` reads conf/ before its own settings, wherever
# a file of one name is in both. Everything else about the project is in there.
""",
    "conf/dataset/own.yaml": """\
# Your own labelled samples, one JSON object a line: request, response, label, category, task.
defaults:
  - jsonl
  - _self_

name: own
path: samples.jsonl
shares:
  train: 0.0
  validation: 0.0
  calibration: 0.5
  test: 0.5
splits: [calibration, test]
""",
    "conf/monitor/own.yaml": """\
# A model behind an OpenAI-compatible endpoint, or weights: `path` is a local folder, `hub_id` the hub's.
defaults:
  - smollm2_135m
  - _self_

name: own
""",
    "conf/experiment/first.yaml": """\
# @package _global_
# monitorbench choose experiment=first
defaults:
  - override /dataset: own

# A model of this machine needs the extra [cpu]; verdicts that you have already need nothing:
#   monitors: [verdicts-a.jsonl, verdicts-b.jsonl]
monitors: [smollm2_135m, own]
calibrate:
  alpha: 0.1
stakes:
  base_rate: 0.01
  cost_miss: 100.0
  cost_alarm: 1.0
""",
}

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
    for name, text in FILES.items():
        write_atomically(folder / name, text)
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
