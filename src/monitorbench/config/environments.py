"""Settings of environments (`conf/environment/*.yaml`) and of recorded runs (`conf/recorded/*.yaml`)."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from monitorbench.config.base import Config, FileName
from monitorbench.config.sources import Source


class _Environment(Config):
    name: FileName
    """What folders call it."""
    side_by_side: ClassVar[bool]
    """Whether several of its tasks may run at once, each in a thread of its own."""

    def identity(self) -> dict[str, Any]:
        """The settings that decide the tasks, for a hash: all but the places on this machine."""
        return self.model_dump(mode="json", exclude={"games", "mirror", "cache"})


class TextWorldGames(_Environment):
    """Games generated on the spot: a house, things in it, and a quest of so many actions."""

    side_by_side: ClassVar[bool] = False
    """Interpreters of this process are not made for several threads."""
    kind: Literal["textworld"]
    rooms: Annotated[int, Field(ge=1, le=20)] = 5
    """Rooms of the house."""
    objects: Annotated[int, Field(ge=1, le=40)] = 10
    """Things in the house; a quest that needs more of them gets more."""
    quest_length: Annotated[int, Field(ge=1, le=12)] = 5
    """Actions of the shortest known way to the end of the quest."""
    games: Path
    """Where generated games are kept."""


class _FromSource(_Environment):
    source: Source
    """Its files."""
    mirror: Path | None
    """A local mirror of the upstream raw files: `paths.sources`."""
    cache: Path
    """Where downloads are kept."""


class AlfworldGames(_FromSource):
    """ALFWorld's household games. Splits are upstream's: valid_train, valid_seen, valid_unseen."""

    side_by_side: ClassVar[bool] = True
    """Each game has a process of its own."""
    kind: Literal["alfworld"]
    plan_seconds: Annotated[float, Field(gt=0)] = 120.0
    """CPU time of one plan; a run that needs a longer one ends, with that reason."""


class ToolQuestions(_FromSource):
    """Questions that are answered with tools."""

    side_by_side: ClassVar[bool] = True
    kind: Literal["questions"]
    tools: Literal["search", "calculator"]
    """`search`: paragraphs to search and read, for HotPotQA; `calculator`: arithmetic, for GSM8K."""
    paragraphs: Annotated[int, Field(ge=2, le=100)] = 10
    """What can be searched for each question: its own paragraphs, and other questions' up to so many."""
    min_f1: Annotated[float, Field(gt=0, le=1)] | None = None
    """The token F1 from which a searched answer counts as a success; None: only the exact match does."""


Environments = Annotated[TextWorldGames | AlfworldGames | ToolQuestions, Field(discriminator="kind")]
"""Every environment; `intervention/environments/open.py` opens each."""


Name = FileName


class ReflexionPrograms(Config):
    """Two of Reflexion's programming runs, matched by task."""

    kind: Literal["reflexion_programs"]
    name: Name
    """What folders call it."""
    source: Source
    """Its files."""
    agent: Name
    """What outcomes call the agent."""
    condition: Name
    """The name of the treated runs' condition in an outcomes file."""
    baseline: Name
    """A folder below `programming_runs/root` of the archive."""
    treated: Name
    """The log of the runs with intervention."""


class ReflexionAlfworld(Config):
    """Reflexion's ALFWorld trials: two arms after the same number of retries, matched by game."""

    kind: Literal["reflexion_alfworld"]
    name: Name
    """What folders call it."""
    source: Source
    """Its files."""
    agent: Name
    """What outcomes call the agent."""
    condition: Name
    """What outcomes call the intervention."""
    trial: Annotated[int, Field(ge=1)]
    """Retries that either arm has had, counted from 0: the first attempt is trial 0."""


class Fireact(Config):
    """Two of FireAct's fine-tuned agents, matched by question; `treated` is the condition's name too."""

    kind: Literal["fireact"]
    name: Name
    """What folders call it."""
    source: Source
    """Its files."""
    baseline: Name
    """A part of exactly one file's name."""
    treated: Name
    """The agent that answers in its place."""


class WhoAndWhen(Config):
    """Failed runs with marked mistakes, and how a critic's scores on them are read."""

    kind: Literal["who_and_when"]
    name: Name
    """What folders call it."""
    source: Source
    """Its files."""
    scores: Path | None = None
    """JSON lines with `task`, `step` and `score`; None: only strategies that need no critic."""
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.6
    """The critic fires at the first step whose score exceeds it."""
    min_step: Annotated[int, Field(ge=0)] = 0
    """The first step, counted from 0, at which anything may fire."""
    resamples: Annotated[int, Field(ge=100)] = 10_000
    """Draws of the bootstrap behind the intervals."""
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    """Of the draws."""


"""Sets with runs under two conditions: what a pilot's decision can be made from."""
Recorded = Annotated[
    ReflexionPrograms | ReflexionAlfworld | Fireact | WhoAndWhen, Field(discriminator="kind")
]
