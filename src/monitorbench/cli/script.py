"""A stage as a script.

Its module is imported when it is run, so that help and a mistyped setting cost nothing heavy.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from monitorbench.config.entry import Script
from monitorbench.config.extras import require
from monitorbench.config.study import Study

if TYPE_CHECKING:
    from monitorbench.forecast.work import Run


def stage(
    name: str,
    function: str | Callable[[Study], Path],
    text: str,
    *,
    is_live: bool = False,
    after_sweep: Callable[[Sequence[tuple[Study, Path]]], None] | None = None,
    value: Callable[[Path], float] | None = None,
    exit_code: Callable[[Sequence[Path]], int] | None = None,
    runs: Callable[[Study], Sequence["Run"]] | None = None,
    needs: Sequence[str] = (),
) -> Script:
    """The stage whose primary config is `name`; `function` takes the study, `module:function` or itself.

    `needs` are modules of an extra without which the stage could not finish: asked for before it begins.
    """

    def run(study: Study) -> Path:
        for module in needs:
            require(module, f"monitorbench {name}")
        if callable(function):
            return function(study)
        module, _, attribute = function.partition(":")
        directory: Path = getattr(import_module(module), attribute)(study)
        return directory

    return Script(
        run,
        name,
        text=text,
        is_live=is_live,
        after_sweep=after_sweep,
        runs=runs,
        resolve=_resolved,
        value=value,
        exit_code=exit_code,
    )


def _resolved(study: Study, stage: str) -> Study:
    from monitorbench.catalog.selectors import resolved

    return resolved(study, stage)


def evaluation(study: Study) -> "list[Run]":
    """What a plan counts of a stage that judges."""
    from monitorbench.forecast.work import Run

    return [Run("evaluate", study)]


def one_table(jobs: Sequence[tuple[Study, Path]]) -> None:
    """Show the runs of a sweep in one table."""
    from monitorbench.scoring.sweep_table import show_sweep

    show_sweep(jobs)
