"""Choices of a wording read back: which prompt was chosen on the validation split, and what was tested."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, cast

from monitorbench.config.base import UserError
from monitorbench.metrics.wordings import WordingChoice
from monitorbench.runs.directory import kind_of, read_checked, read_finished
from monitorbench.scoring.evaluations import Evaluation

FILE = "wording.json"


class ReadWording(NamedTuple):
    """A finished run of `wording.py`."""

    choice: WordingChoice
    tested: tuple[Path, ...]
    """Evaluation runs over the test split, of the chosen prompt or of all."""


def read_wording(directory: Path, runs: Path) -> ReadWording:
    """The choice of a finished run; `UserError` where it is none, or where it tested nothing.

    What it tested is looked for in the folder of runs `runs` where it is not where it was.
    """
    results = read_finished(directory)["results"]
    if "chosen" not in results or not (directory / FILE).is_file():
        raise UserError(f"{directory}: {kind_of(directory)}; expected a run of eval/wording.py")
    if not results["tested"]:
        raise UserError(f"{directory}: judged no test split; run it again with wording.test=chosen or all")
    choice = cast("WordingChoice", read_checked(directory, FILE))
    tested = [Path(run) for run in results["tested"]]
    return ReadWording(choice, tuple(run if run.is_dir() else runs / "evaluate" / run.name for run in tested))


def with_tested(runs: Sequence[Path], wordings: Sequence[ReadWording]) -> tuple[Path, ...]:
    """The runs, and behind them those that the wordings tested, each once."""
    by_path = {
        run.resolve(): run for run in (*runs, *(run for wording in wordings for run in wording.tested))
    }
    return tuple(by_path.values())


def choices_of(
    wordings: Sequence[ReadWording], evaluations: Sequence[Evaluation]
) -> dict[str, WordingChoice]:
    """The choices by the names that their monitors have among these evaluations.

    Raises `UserError` where two are of one monitor.
    """
    monitors = {evaluation.directory.resolve(): evaluation.monitor for evaluation in evaluations}
    choices: dict[str, WordingChoice] = {}
    for wording in wordings:
        for monitor in {monitors[run.resolve()] for run in wording.tested}:
            if monitor in choices:
                raise UserError(f"transfer.wordings: two choices are of {monitor}; expected one")
            choices[monitor] = wording.choice
    return choices
