"""The parts that stages are declared with.

A stage's module is imported when it is run, so that help and a mistyped setting cost nothing heavy.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monitorbench.cli.stage import Compose, Stage
from monitorbench.config.study import Study

if TYPE_CHECKING:
    from monitorbench.studies.forecast import PlannedRun

FROM_FILES = "it reads files alone and runs no model, which takes seconds"
"""Why most stages have no plan."""


def stage(
    name: str,
    function: str | Callable[[Study, Compose], Path],
    text: str,
    *,
    reads: str,
    plan: str | Callable[[Study, Compose], None] | None = None,
    no_plan: str = FROM_FILES,
    runs: Callable[[Study], Sequence["PlannedRun"]] | None = None,
    is_live: bool = False,
    judges: Callable[[Study], bool] = lambda study: False,
    no_frozen: str = "",
    after_sweep: Callable[[Sequence[tuple[Study, Path]]], None] | None = None,
    value: Callable[[Path], float] | None = None,
    exit_code: Callable[[Sequence[Path]], int] | None = None,
    needs: Sequence[str] = (),
) -> Stage:
    """The stage whose primary config is `name`.

    `function` and `plan` take the study and what composes others, or are named as `module:function`, which
    takes the study alone. `reads` are the top-level settings that the stage reads.
    """
    return Stage(
        name,
        _imported(function) if isinstance(function, str) else function,
        text,
        reads=tuple(reads.split()),
        plan=_imported(plan) if isinstance(plan, str) else plan,
        no_plan=no_plan,
        runs=runs,
        is_live=is_live,
        judges=judges,
        no_frozen=no_frozen,
        after_sweep=after_sweep,
        value=value,
        exit_code=exit_code,
        needs=needs,
        resolve=_resolved,
    )


def _imported(path: str) -> Callable[[Study, Compose], Any]:
    """The function `module:function` of a study, imported when it is called."""
    module, _, attribute = path.partition(":")
    return lambda study, compose: getattr(import_module(module), attribute)(study)


def _resolved(study: Study, stage_name: str) -> Study:
    from monitorbench.runs.selectors import resolved

    return resolved(study, stage_name)


def evaluation(study: Study) -> "list[PlannedRun]":
    """The runs that a plan counts for a stage that judges."""
    from monitorbench.studies.forecast import PlannedRun

    return [PlannedRun("evaluate", study)]


def asks_a_model(study: Study) -> bool:
    """Whether the study's monitor asks its engine anything: recorded verdicts and word counts don't."""
    return study.monitor.kind == "language_model" and study.monitor.verdicts is None


def one_table(jobs: Sequence[tuple[Study, Path]]) -> None:
    """Show the runs of a sweep in one table."""
    from monitorbench.scoring.sweep_table import show_sweep

    show_sweep(jobs)
