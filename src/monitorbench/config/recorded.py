"""Recorded agent runs that the pilot can be read from: `conf/recorded/<name>.yaml`."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from monitorbench.config.base import Config
from monitorbench.config.sources import Source

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$")]


class ReflexionPrograms(Config):
    """Two of Reflexion's programming runs, matched by task."""

    kind: Literal["reflexion_programs"]
    name: Name
    source: Source
    agent: Name
    condition: Name
    """What the treated runs are called in an outcomes file."""
    baseline: Name
    """A folder below `programming_runs/root` of the archive."""
    treated: Name


class ReflexionAlfworld(Config):
    """Reflexion's ALFWorld trials: two arms after the same number of retries, matched by game."""

    kind: Literal["reflexion_alfworld"]
    name: Name
    source: Source
    agent: Name
    condition: Name
    trial: Annotated[int, Field(ge=1)]
    """Retries that either arm has had, counted from 0: the first attempt is trial 0."""


class Fireact(Config):
    """Two of FireAct's fine-tuned agents, matched by question; `treated` is the condition's name too."""

    kind: Literal["fireact"]
    name: Name
    source: Source
    baseline: Name
    """A part of exactly one file's name."""
    treated: Name


class WhoAndWhen(Config):
    """Failed runs with marked mistakes, and how a critic's scores on them are read."""

    kind: Literal["who_and_when"]
    name: Name
    source: Source
    scores: Path | None
    """JSON lines with `task`, `step` and `score`; None: only strategies that need no critic."""
    threshold: Annotated[float, Field(ge=0, le=1)]
    """The critic fires at the first step whose score exceeds it."""
    min_step: Annotated[int, Field(ge=0)]
    """The first step, counted from 0, at which anything may fire."""
    resamples: Annotated[int, Field(ge=100)]
    seed: Annotated[int, Field(ge=0, lt=2**31)]


RecordedPair = ReflexionPrograms | ReflexionAlfworld | Fireact
"""Sets with runs under two conditions: what a pilot's decision can be made from."""
Recorded = Annotated[
    ReflexionPrograms | ReflexionAlfworld | Fireact | WhoAndWhen, Field(discriminator="kind")
]
