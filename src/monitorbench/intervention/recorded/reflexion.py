"""Reflexion's runs (Shinn et al. 2023, arXiv:2303.11366): ALFWorld's games, HumanEval's and MBPP's programs.

*134 games, tried again and again* (`load_trials`). Both arms share the first attempt, trial 0, and retry the
games they failed; the treated arm retries with a reflection on the failure. A solved game is not played
again, so within an arm nothing is ever disrupted: an arm against its own first attempt would show d = 0
whatever reflections do. The arms are therefore compared after the *same number* of retries. Both use the
environment's own verdict to decide on a retry.

*Programs* (`load_programs`). The baseline writes a function once. The treated agent tests its function with
unit tests that it wrote itself (the critic), and while they fail reflects and writes anew (the mechanism).
`is_solved` is upstream's own verdict of the benchmark's tests; the recorded code is never run. The arms are
matched by task, but not by the first attempt: each drew its own. So outcomes may differ without any
intervention; `interventions` (the recorded reflections) tells those pairs apart.
"""

import re
from collections.abc import Mapping
from typing import Any

from monitorbench.config.base import UserError
from monitorbench.config.pilot import ReflexionAlfworld, ReflexionPrograms
from monitorbench.intervention.outcomes import Outcome
from monitorbench.intervention.recorded.archive import (
    RecordedRun,
    broken,
    json_array,
    json_lines,
    members,
    pair_arms,
    text_field,
    truth_field,
)
from monitorbench.sources.read import SourceFiles

_BASELINE, _TREATED = "base_run_logs", "reflexion_run_logs"
_TRIAL = re.compile(r"alfworld_runs/root/(\w+)/env_results_trial_(\d+)\.json")


def load_trials(settings: ReflexionAlfworld, files: SourceFiles) -> list[Outcome]:
    """Outcomes of both arms after `settings.trial` retries; a task is upstream's `env_<number>`.

    `steps` are attempts at the game; each retry of the treated arm is one intervention. `UserError` where
    a trial was not recorded or a row can't be used.
    """
    contents = members(files, lambda name: _TRIAL.fullmatch(name) is not None)
    baseline = _attempts(settings, files, contents, _BASELINE)
    treated = _attempts(settings, files, contents, _TREATED)
    return pair_arms(
        settings.name,
        settings.agent,
        settings.condition,
        {game: RecordedRun(solved, 0, attempts) for game, (solved, attempts) in baseline.items()},
        {game: RecordedRun(solved, attempts - 1, attempts) for game, (solved, attempts) in treated.items()},
    )


def _attempts(
    settings: ReflexionAlfworld, files: SourceFiles, found: Mapping[str, bytes], arm: str
) -> dict[str, tuple[bool, int]]:
    """Whether each game is solved after trial 0 to `settings.trial`, and in how many attempts."""
    games: dict[str, tuple[bool, int]] = {}
    for trial in range(settings.trial + 1):
        member = f"alfworld_runs/root/{arm}/env_results_trial_{trial}.json"
        if member not in found:
            raise UserError(
                f"{settings.name}: {arm} has no trial {trial}; set recorded.trial to at most {trial - 1}"
            )
        seen = set()
        for where, row in json_array(files, member, found[member]):
            game = text_field(files, where, row, "name")
            solved = truth_field(files, where, row, "is_success")
            was_solved, attempts = games.get(game, (False, 0))
            if game in seen or (trial and not attempts):
                broken(files, where, f"game {game} is there twice, or new in trial {trial}")
            if was_solved and not solved:
                broken(files, where, f"game {game} was solved before, and solved games are not played again")
            seen.add(game)
            games[game] = (solved, attempts + (not was_solved))
        if len(seen) != len(games):
            broken(files, member, f"holds {len(seen)} of {len(games)} games")
    return games


_ROOT = "programming_runs/root/"


def load_programs(settings: ReflexionPrograms, files: SourceFiles) -> list[Outcome]:
    """Outcomes of the two runs that the settings name; a task is upstream's `task_id` or `name`.

    `steps` are the functions written: one, and one for each reflection. `UserError` where the archive
    has no such run or a row can't be used.
    """
    contents = members(files, lambda name: name.startswith(_ROOT) and name.endswith(".jsonl"))
    arms = [_runs(files, contents, settings.name, run) for run in (settings.baseline, settings.treated)]
    return pair_arms(settings.name, settings.agent, settings.condition, *arms)


def _runs(files: SourceFiles, found: Mapping[str, bytes], name: str, folder: str) -> dict[str, RecordedRun]:
    inside = [member for member in found if member.startswith(f"{_ROOT}{folder}/")]
    if len(inside) != 1:
        folders = ", ".join(sorted({member.removeprefix(_ROOT).partition("/")[0] for member in found}))
        raise UserError(
            f"{name}: {len(inside)} recorded runs named {folder!r}; set recorded.baseline and "
            f"recorded.treated to one of {folders or 'none: the archive holds no run'}"
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
