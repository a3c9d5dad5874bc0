"""FireAct's agents on HotPotQA (Chen et al. 2023, arXiv:2310.05915): a pair of policies.

Nothing intervenes in these runs. One fine-tuned agent takes another's place on the same questions, which
is the other decision a pilot can be asked for, with the same arithmetic: whom does the swap recover, whom
does it disrupt? `reward` is upstream's verdict (exact match). The files hold unlike numbers of questions.
"""

from collections.abc import Mapping
from typing import Any

from monitorbench.config.base import UserError
from monitorbench.config.pilot import Fireact
from monitorbench.intervention.outcomes import Outcome
from monitorbench.intervention.recorded.archive import (
    RecordedRun,
    as_object,
    broken,
    pair_arms,
    parsed,
    truth_field,
)
from monitorbench.sources.read import SourceFiles

_AGENT = "fireact"
_RESPONSE = "### Response:"
_ACTION = "Action:"


def load(settings: Fireact, files: SourceFiles) -> list[Outcome]:
    """Outcomes of the two agents; a task is upstream's number of the question.

    `steps` are the actions the agent wrote. `interventions` is 0 throughout. `UserError` where a file
    can't be told from its part of a name, or can't be used.
    """
    arms = [_runs(settings, files, policy) for policy in (settings.baseline, settings.treated)]
    return pair_arms(settings.name, _AGENT, settings.treated, *arms)


def _runs(settings: Fireact, files: SourceFiles, policy: str) -> dict[str, RecordedRun]:
    matching = files.matching(policy)
    if len(matching) != 1:
        raise UserError(
            f"{settings.name}: {len(matching)} files are named after the policy {policy!r}; set "
            "recorded.baseline and recorded.treated to a part of one file's name"
        )
    path = matching[0].path
    with files.opened(matching[0]) as stream:
        content = stream.read()
    runs = {}
    for question, row in as_object(files, path.name, parsed(files, path.name, content)).items():
        where = f"{path.name} question {question}"
        record = as_object(files, where, row)
        solved = truth_field(files, where, record, "reward")
        runs[question] = RecordedRun(solved, 0, _actions(files, where, record))
    return runs


def _actions(files: SourceFiles, where: str, row: Mapping[str, Any]) -> int:
    """Actions in a trajectory: a list of chat turns, or one text with the prompt in front."""
    trajectory = row.get("traj")
    if isinstance(trajectory, str):
        written = trajectory.partition(_RESPONSE)[2]
    elif isinstance(trajectory, list):
        turns = (turn for turn in trajectory if isinstance(turn, Mapping) and turn.get("role") == "assistant")
        written = "\n".join(str(turn.get("content")) for turn in turns)
    else:
        broken(files, where, "field 'traj' is neither text nor a list of turns")
    return sum(line.startswith(_ACTION) for line in written.splitlines())
