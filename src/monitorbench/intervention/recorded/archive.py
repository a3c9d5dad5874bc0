"""A recorded set's archive, read by name, and two recorded arms matched by task.

A recorded set is fixed, so that its counts can be checked: members and their JSON are there and well-formed,
or it is one clear line, and no row is ever passed over. Only tasks that both arms have make a pair, and what
is left out is said.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn

from monitorbench import strict_json
from monitorbench.config.base import UserError
from monitorbench.intervention.outcomes import BASELINE, Outcome
from monitorbench.sources.read import SourceFiles


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


def json_lines(files: SourceFiles, member: str, content: bytes) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The objects of a JSON-lines member, each with its place; blank lines are none."""
    for number, line in enumerate(content.splitlines(), 1):
        if line.strip():
            where = f"{member} line {number}"
            yield where, as_object(files, where, parsed(files, where, line))


def json_array(files: SourceFiles, member: str, content: bytes) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The objects of a member that is one JSON array, each with its place."""
    rows = parsed(files, member, content)
    if not isinstance(rows, list):
        broken(files, member, "no JSON array")
    for number, row in enumerate(rows):
        where = f"{member} element {number}"
        yield where, as_object(files, where, row)


def parsed(files: SourceFiles, where: str, content: bytes) -> Any:
    """A JSON value; `UserError` where it is none, or where an object names a field twice."""
    try:
        return strict_json.loads(content)
    except (ValueError, RecursionError) as error:
        broken(files, where, f"no JSON ({' '.join(str(error).split())[:100]})")


def as_object(files: SourceFiles, where: str, value: Any) -> Mapping[str, Any]:
    """The value, which has to be a JSON object."""
    if not isinstance(value, Mapping):
        broken(files, where, "not an object with fields")
    return value


def text_field(files: SourceFiles, where: str, row: Mapping[str, Any], field: str) -> str:
    """A field with text that is not blank."""
    value = row.get(field)
    if not isinstance(value, str) or not value.strip():
        broken(files, where, f"field {field!r} is no text, or empty")
    return value


def truth_field(files: SourceFiles, where: str, row: Mapping[str, Any], field: str) -> bool:
    """A recorded verdict: true or false, and nothing that merely counts as one of them."""
    value = row.get(field)
    if not isinstance(value, bool):
        broken(files, where, f"field {field!r} is neither true nor false")
    return value


def broken(files: SourceFiles, where: str, what: str) -> NoReturn:
    """Say in one line what is wrong with a recorded file."""
    raise UserError(f"{files.name}: {where}: {what}; fetch the file again (conf/source/{files.name}.yaml)")


_log = logging.getLogger(__name__)


class RecordedRun(NamedTuple):
    """How one recorded run ended; `steps` is in the set's own unit (attempts, actions)."""

    success: bool
    interventions: int
    steps: int


def pair_arms(
    name: str,
    agent: str,
    condition: str,
    baseline: Mapping[str, RecordedRun],
    treated: Mapping[str, RecordedRun],
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
