"""The recorded sets there are: the files of each are found (local mirror first) and read by its own module.

A new set is a module with a `load` function, its settings in `config/pilot.py`, and a case in
`read_recorded`.
"""

from typing import assert_never

from monitorbench.config.base import UserError
from monitorbench.config.pilot import (
    Fireact,
    Recorded,
    ReflexionAlfworld,
    ReflexionPrograms,
    WhoAndWhen,
)
from monitorbench.config.study import Paths
from monitorbench.intervention.outcomes import Outcome
from monitorbench.intervention.recorded import fireact, reflexion, who_and_when
from monitorbench.intervention.recorded.localisation import Localisation, MarkedRun, localise
from monitorbench.intervention.recorded.step_scores import read_step_scores
from monitorbench.sources import fetch
from monitorbench.sources.read import SourceFiles


def read_recorded(settings: Recorded, paths: Paths) -> list[Outcome]:
    """The outcomes of a recorded set, matched by task; baseline and treated run of a task side by side.

    Raises `UserError` where a file can't be had or used, and for a set that has no treated runs.
    """
    match settings:
        case ReflexionPrograms():
            return reflexion.load_programs(settings, _find("reflexion", settings, paths))
        case ReflexionAlfworld():
            return reflexion.load_trials(settings, _find("reflexion", settings, paths))
        case Fireact():
            return fireact.load(settings, _find("fireact", settings, paths))
        case WhoAndWhen():
            raise UserError(
                f"recorded={settings.name} has failed runs only, no run with an intervention: it shows "
                "where a critic fires, no pilot; choose another recorded set for a decision"
            )
        case _:
            assert_never(settings)


def read_marked(settings: WhoAndWhen, paths: Paths) -> list[MarkedRun]:
    """The runs with marked mistakes; `UserError` where a file can't be had or used."""
    return who_and_when.load(_find("who_and_when", settings, paths))


def locate(settings: WhoAndWhen, paths: Paths) -> Localisation:
    """Find out where the critic of `settings.scores` fires, beside strategies that need no critic.

    Raises `UserError` where the runs or the scores can't be read.
    """
    runs = read_marked(settings, paths)
    scores = None if settings.scores is None else read_step_scores(settings.scores)
    return localise(
        runs,
        scores,
        threshold=settings.threshold,
        min_step=settings.min_step,
        resamples=settings.resamples,
        seed=settings.seed,
    )


def _find(name: str, settings: Recorded, paths: Paths) -> SourceFiles:
    return fetch.find(name, settings.source, paths.sources, paths.data / ".sources", "error")
