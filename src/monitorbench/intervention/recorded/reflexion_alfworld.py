"""Reflexion's ALFWorld trials (Shinn et al. 2023, arXiv:2303.11366): 134 games, tried again and again.

Both arms share the first attempt, trial 0, and retry the games they failed; the treated arm retries with a
reflection on the failure. A solved game is not played again, so within an arm nothing is ever disrupted:
an arm against its own first attempt would show d = 0 whatever reflections do. The arms are therefore
compared after the *same number* of retries. Both use the environment's own verdict to decide on a retry.
"""

import re
from collections.abc import Mapping

from monitorbench.config.base import UserError
from monitorbench.config.pilot import ReflexionAlfworld
from monitorbench.intervention.outcomes import Outcome
from monitorbench.intervention.recorded.archive import (
    RecordedRun,
    broken,
    json_array,
    members,
    pair_arms,
    text_field,
    truth_field,
)
from monitorbench.sources.read import SourceFiles

_BASELINE, _TREATED = "base_run_logs", "reflexion_run_logs"
_TRIAL = re.compile(r"alfworld_runs/root/(\w+)/env_results_trial_(\d+)\.json")


def load(settings: ReflexionAlfworld, files: SourceFiles) -> list[Outcome]:
    """Outcomes of both arms after `settings.trial` retries; a task is upstream's `env_<number>`.

    `steps` are attempts at the game; each retry of the treated arm is one intervention. `UserError` where
    a trial was not recorded or a row can't be used.
    """
    found = members(files, lambda name: _TRIAL.fullmatch(name) is not None)
    baseline = _attempts(settings, files, found, _BASELINE)
    treated = _attempts(settings, files, found, _TREATED)
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
