"""Recorded sets with two arms: their archives read by name, and the arms' runs matched by task.

A recorded set is fixed, so that its counts can be checked: members and their JSON are there and well-formed,
or it is one clear line, and no row is ever passed over. Only tasks that both arms have make a pair, and what
is left out is said. A new set is a function that loads it, its settings in `config/pilot.py`, and a case
in `read_recorded`.

*Reflexion, 134 games tried again and again* (Shinn et al. 2023, arXiv:2303.11366; `load_trials`). Both arms
share the first attempt, trial 0, and retry the games they failed; the treated arm retries with a reflection
on the failure. A solved game is not played again, so within an arm nothing is ever disrupted: an arm against
its own first attempt would show d = 0 whatever reflections do. The arms are therefore compared after the
*same number* of retries. Both use the environment's own verdict to decide on a retry.

*Reflexion, programs* (`load_programs`). The baseline writes a function once. The treated agent tests its
function with unit tests that it wrote itself (the critic), and while they fail reflects and writes anew (the
mechanism). `is_solved` is upstream's own verdict of the benchmark's tests; the recorded code is never run.
The arms are matched by task, but not by the first attempt: each drew its own. So outcomes may differ without
any intervention; `interventions` (the recorded reflections) tells those pairs apart.

*FireAct's agents on HotPotQA* (Chen et al. 2023, arXiv:2310.05915; `load_policies`). Nothing intervenes: one
fine-tuned agent takes another's place on the same questions, with the same arithmetic. `reward` is upstream's
verdict (exact match). The files hold unlike numbers of questions.
"""

import logging
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple, NoReturn, TypeVar, assert_never

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from monitorbench import strict_json
from monitorbench.config.base import UserError
from monitorbench.config.pilot import Fireact, Recorded, ReflexionAlfworld, ReflexionPrograms, WhoAndWhen
from monitorbench.config.study import Paths
from monitorbench.intervention.outcomes import BASELINE, Outcome
from monitorbench.sources import fetch
from monitorbench.sources.read import SourceFiles

K = TypeVar("K")
Text = Annotated[str, Field(pattern=r"\S")]
"""A text that is not blank."""


def members(files: SourceFiles, wanted: Callable[[str], bool]) -> dict[str, bytes]:
    """The archive's members whose names are wanted, in the archive's order.

    Raises `UserError` for a broken archive and for two members of one name.
    """
    contents: dict[str, bytes] = {}
    for name, content in files.tar(""):
        if wanted(name):
            if name in contents:
                broken(files, name, "it is in the archive twice")
            contents[name] = content
    return contents


def read_as(files: SourceFiles, where: str, kind: type[K], content: bytes) -> K:
    """JSON as a record of this kind; `UserError` where it is none, or where an object names a field twice."""
    try:
        return TypeAdapter(kind).validate_python(strict_json.loads(content), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        broken(files, where, f"field {field!r}: {first['msg']}" if field else first["msg"])
    except (ValueError, RecursionError) as error:
        broken(files, where, f"no JSON ({' '.join(str(error).split())[:100]})")


def broken(files: SourceFiles, where: str, what: str) -> NoReturn:
    """Say in one line what is wrong with a recorded file."""
    raise UserError(f"{files.name}: {where}: {what}; fetch the file again (conf/source/{files.name}.yaml)")


_log = logging.getLogger(__name__)


class _RecordedRun(NamedTuple):
    """How one recorded run ended; `steps` is in the set's own unit (attempts, actions)."""

    success: bool
    interventions: int
    steps: int


def _pair_arms(
    name: str,
    agent: str,
    condition: str,
    baseline: Mapping[str, _RecordedRun],
    treated: Mapping[str, _RecordedRun],
) -> list[Outcome]:
    """Make two outcomes for each task that both arms have, in the baseline's order, baseline first.

    One run a task and arm was recorded, so that every seed is 0. Tokens were not recorded and are 0.
    Raises `UserError` where the arms share no task.
    """
    common = [task for task in baseline if task in treated]
    if not common:
        raise UserError(
            f"{name}: the baseline and the treated runs share no task; set recorded.baseline and "
            "recorded.treated to runs on the same tasks"
        )
    alone = len(baseline) + len(treated) - 2 * len(common)
    if alone:
        _log.warning("%s: %d tasks were recorded in one arm only and are left out", name, alone)
    return [
        Outcome(task, 0, agent, under, run.success, run.interventions, run.steps, 0)
        for task in common
        for under, run in ((BASELINE, baseline[task]), (condition, treated[task]))
    ]


class _Trial(BaseModel):
    name: Text
    is_success: bool


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
    return _pair_arms(
        settings.name,
        settings.agent,
        settings.condition,
        {game: _RecordedRun(solved, 0, attempts) for game, (solved, attempts) in baseline.items()},
        {game: _RecordedRun(solved, attempts - 1, attempts) for game, (solved, attempts) in treated.items()},
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
        for number, row in enumerate(read_as(files, member, list[_Trial], found[member])):
            where, game, solved = f"{member} element {number}", row.name, row.is_success
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


class _Program(BaseModel):
    task_id: Text | None = None
    name: Text | None = None
    is_solved: bool
    reflections: list[Any] = []
    """The agent's; a baseline's row has no such field."""


_ROOT = "programming_runs/root/"


def load_programs(settings: ReflexionPrograms, files: SourceFiles) -> list[Outcome]:
    """Outcomes of the two runs that the settings name; a task is upstream's `task_id` or `name`.

    `steps` are the functions written: one, and one for each reflection. `UserError` where the archive
    has no such run or a row can't be used.
    """
    contents = members(files, lambda name: name.startswith(_ROOT) and name.endswith(".jsonl"))
    arms = [
        _program_runs(files, contents, settings.name, run) for run in (settings.baseline, settings.treated)
    ]
    return _pair_arms(settings.name, settings.agent, settings.condition, *arms)


def _program_runs(
    files: SourceFiles, found: Mapping[str, bytes], name: str, folder: str
) -> dict[str, _RecordedRun]:
    inside = [member for member in found if member.startswith(f"{_ROOT}{folder}/")]
    if len(inside) != 1:
        folders = ", ".join(sorted({member.removeprefix(_ROOT).partition("/")[0] for member in found}))
        raise UserError(
            f"{name}: {len(inside)} recorded runs named {folder!r}; set recorded.baseline and "
            f"recorded.treated to one of {folders or 'none: the archive holds no run'}"
        )
    runs: dict[str, _RecordedRun] = {}
    for number, line in enumerate(found[inside[0]].splitlines(), 1):
        if not line.strip():
            continue
        where = f"{inside[0]} line {number}"
        row = read_as(files, where, _Program, line)
        task = row.task_id or row.name or broken(files, where, "it names no task")
        if task in runs:
            broken(files, where, f"task {task} is there twice")
        runs[task] = _RecordedRun(row.is_solved, len(row.reflections), 1 + len(row.reflections))
    return runs


class _Answered(BaseModel):
    reward: bool
    traj: str | list[Any]
    """A list of chat turns, or one text with the prompt in front."""


_AGENT = "fireact"
_RESPONSE = "### Response:"
_POLICY_ACTION = "Action:"


def load_policies(settings: Fireact, files: SourceFiles) -> list[Outcome]:
    """Outcomes of the two agents; a task is upstream's number of the question.

    `steps` are the actions the agent wrote. `interventions` is 0 throughout. `UserError` where a file
    can't be told from its part of a name, or can't be used.
    """
    arms = [_policy_runs(settings, files, policy) for policy in (settings.baseline, settings.treated)]
    return _pair_arms(settings.name, _AGENT, settings.treated, *arms)


def _policy_runs(settings: Fireact, files: SourceFiles, policy: str) -> dict[str, _RecordedRun]:
    matching = files.matching(policy)
    if len(matching) != 1:
        raise UserError(
            f"{settings.name}: {len(matching)} files are named after the policy {policy!r}; set "
            "recorded.baseline and recorded.treated to a part of one file's name"
        )
    path = matching[0].path
    with files.opened(matching[0]) as stream:
        content = stream.read()
    answers = read_as(files, path.name, dict[str, _Answered], content)
    return {
        question: _RecordedRun(answered.reward, 0, _actions(answered.traj))
        for question, answered in answers.items()
    }


def _actions(trajectory: str | list[Any]) -> int:
    """Count the actions in a trajectory."""
    if isinstance(trajectory, str):
        written = trajectory.partition(_RESPONSE)[2]
    else:
        turns = (turn for turn in trajectory if isinstance(turn, Mapping) and turn.get("role") == "assistant")
        written = "\n".join(str(turn.get("content")) for turn in turns)
    return sum(line.startswith(_POLICY_ACTION) for line in written.splitlines())


def read_recorded(settings: Recorded, paths: Paths) -> list[Outcome]:
    """The outcomes of a recorded set, matched by task; baseline and treated run of a task side by side.

    Raises `UserError` where a file can't be had or used, and for a set that has no treated runs.
    """
    match settings:
        case ReflexionPrograms():
            return load_programs(settings, find_recorded("reflexion", settings, paths))
        case ReflexionAlfworld():
            return load_trials(settings, find_recorded("reflexion", settings, paths))
        case Fireact():
            return load_policies(settings, find_recorded("fireact", settings, paths))
        case WhoAndWhen():
            raise UserError(
                f"recorded={settings.name} has failed runs only, no run with an intervention: it shows "
                "where a critic fires, no pilot; choose another recorded set for a decision"
            )
        case _:
            assert_never(settings)


def find_recorded(name: str, settings: Recorded, paths: Paths) -> SourceFiles:
    """The files of a set by the name of its source; `UserError` where they can't be had."""
    return fetch.find(name, settings.source, paths.sources, paths.data / ".sources", "error")
