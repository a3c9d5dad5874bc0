"""Settings of recorded runs, which others published: the sets of `conf/recorded/*.yaml`."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from monitorbench.config.base import Config, FileName
from monitorbench.config.sources import Source


class _RecordedSet(Config):
    name: FileName
    """Name of the recorded set in folder names."""
    source: Source
    """Files of the recorded set."""


class ReflexionPrograms(_RecordedSet):
    """Two of Reflexion's programming runs, matched by task."""

    kind: Literal["reflexion_programs"]
    agent: FileName
    """Name of the agent in outcomes files."""
    condition: FileName
    """Name of the treated runs' condition in outcomes files."""
    baseline: FileName
    """Folder below `programming_runs/root` of the archive with the runs without intervention."""
    treated: FileName
    """Log of the runs with intervention."""


class ReflexionAlfworld(_RecordedSet):
    """Reflexion's ALFWorld trials: two arms after the same number of retries, matched by game."""

    kind: Literal["reflexion_alfworld"]
    agent: FileName
    """Name of the agent in outcomes files."""
    condition: FileName
    """Name of the intervention in outcomes files."""
    trial: Annotated[int, Field(ge=1)]
    """Retries that either arm has had, counted from 0: the first attempt is trial 0."""


class Fireact(_RecordedSet):
    """Runs of two of FireAct's fine-tuned agents, matched by question; `treated` is the condition's name
    too."""

    kind: Literal["fireact"]
    baseline: FileName
    """Agent without intervention: a string that occurs in exactly one file's name."""
    treated: FileName
    """Agent that answers in place of `baseline`."""


class WhoAndWhen(_RecordedSet):
    """Failed runs with marked mistakes, and how a critic's scores on them are read."""

    kind: Literal["who_and_when"]
    scores: Path | None = None
    """Critic's scores as JSON lines with `task`, `step` and `score`; None: only strategies that need no
    critic."""
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.6
    """Score above which the critic fires, at the first step that exceeds it."""
    min_step: Annotated[int, Field(ge=0)] = 0
    """First step, counted from 0, at which anything may fire."""
    resamples: Annotated[int, Field(ge=100)] = 10_000
    """Bootstrap draws behind the intervals."""
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    """Seed of the bootstrap draws."""


Recorded = Annotated[
    ReflexionPrograms | ReflexionAlfworld | Fireact | WhoAndWhen, Field(discriminator="kind")
]
"""All sets with runs under two conditions: what a pilot's decision can be made from."""
