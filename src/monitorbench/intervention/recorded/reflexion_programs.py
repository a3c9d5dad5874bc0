"""Reflexion's programming runs (Shinn et al. 2023, arXiv:2303.11366): HumanEval and MBPP.

The baseline writes a function once. The treated agent tests its function with unit tests that it wrote
itself (the critic), and while they fail reflects and writes anew (the mechanism). `is_solved` is upstream's
own verdict of the benchmark's tests; the recorded code is never run.

The arms are matched by task, but not by the first attempt: each drew its own. So outcomes may differ
without any intervention; `interventions` (the recorded reflections) tells those pairs apart.
"""

from collections.abc import Mapping
from typing import Any

from monitorbench.config.base import UserError
from monitorbench.config.pilot import ReflexionPrograms
from monitorbench.intervention.outcomes import Outcome
from monitorbench.intervention.recorded.archive import (
    RecordedRun,
    broken,
    json_lines,
    members,
    pair_arms,
    text_field,
    truth_field,
)
from monitorbench.sources.read import SourceFiles

_ROOT = "programming_runs/root/"


def load(settings: ReflexionPrograms, files: SourceFiles) -> list[Outcome]:
    """Outcomes of the two runs that the settings name; a task is upstream's `task_id` or `name`.

    `steps` are the functions written: one, and one for each reflection. `UserError` where the archive
    has no such run or a row can't be used.
    """
    found = members(files, lambda name: name.startswith(_ROOT) and name.endswith(".jsonl"))
    arms = [_runs(files, found, settings.name, run) for run in (settings.baseline, settings.treated)]
    return pair_arms(settings.name, settings.agent, settings.condition, *arms)


def _runs(files: SourceFiles, found: Mapping[str, bytes], name: str, folder: str) -> dict[str, RecordedRun]:
    inside = [member for member in found if member.startswith(f"{_ROOT}{folder}/")]
    if len(inside) != 1:
        known = ", ".join(sorted({member.removeprefix(_ROOT).partition("/")[0] for member in found}))
        raise UserError(
            f"{name}: {len(inside)} recorded runs named {folder!r}; set recorded.baseline and "
            f"recorded.treated to one of {known or 'none: the archive holds no run'}"
        )
    runs: dict[str, RecordedRun] = {}
    for where, row in json_lines(files, inside[0], found[inside[0]]):
        task = text_field(files, where, row, "task_id" if "task_id" in row else "name")
        if task in runs:
            broken(files, where, f"task {task} is there twice")
        reflections = _reflections(files, where, row)
        runs[task] = RecordedRun(truth_field(files, where, row, "is_solved"), reflections, 1 + reflections)
    return runs


def _reflections(files: SourceFiles, where: str, row: Mapping[str, Any]) -> int:
    """How many reflections a row has; a baseline's row has no such field."""
    reflections = row.get("reflections", [])
    if not isinstance(reflections, list):
        broken(files, where, "field 'reflections' is no list")
    return len(reflections)
