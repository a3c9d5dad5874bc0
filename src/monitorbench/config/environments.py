"""Settings of environments (`conf/environment/*.yaml`) and of recorded runs (`conf/recorded/*.yaml`)."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from monitorbench.config.base import Config, FileName
from monitorbench.config.sources import Source


class _Environment(Config):
    name: FileName
    """Name of the environment in folder names."""
    side_by_side: ClassVar[bool]
    """Whether several of its tasks may run at once, each in a thread of its own."""

    def identity(self) -> dict[str, Any]:
        """Return the settings that decide the tasks, for a hash: all but the places on this machine."""
        return self.model_dump(mode="json", exclude={"games", "mirror", "cache"})


class TextWorldGames(_Environment):
    """Games generated on the spot: a house, objects in it, and a quest with a given number of actions."""

    side_by_side: ClassVar[bool] = False
    """False: interpreters of this process are not made for several threads."""
    kind: Literal["textworld"]
    rooms: Annotated[int, Field(ge=1, le=20)] = 5
    """Rooms of the house."""
    objects: Annotated[int, Field(ge=1, le=40)] = 10
    """Objects in the house; a quest that needs more of them gets more."""
    quest_length: Annotated[int, Field(ge=1, le=12)] = 5
    """Actions of the shortest known way to the end of the quest."""
    games: Path
    """Folder in which generated games are kept."""


class _FromSource(_Environment):
    source: Source
    """Files of the environment."""
    mirror: Path | None
    """Local mirror of the upstream raw files: `paths.sources`."""
    cache: Path
    """Folder in which downloads are kept."""


class AlfworldGames(_FromSource):
    """ALFWorld's household games. Splits are upstream's: valid_train, valid_seen, valid_unseen."""

    side_by_side: ClassVar[bool] = True
    """True: each game has a process of its own."""
    kind: Literal["alfworld"]
    plan_seconds: Annotated[float, Field(gt=0)] = 120.0
    """CPU seconds of one plan; a run that needs a longer one ends, with that reason."""


class ToolQuestions(_FromSource):
    """Questions that are answered with tools."""

    side_by_side: ClassVar[bool] = True
    kind: Literal["questions"]
    tools: Literal["search", "calculator"]
    """Tools of the agent. `search`: paragraphs to search and read, for HotPotQA; `calculator`: arithmetic,
    for GSM8K."""
    paragraphs: Annotated[int, Field(ge=2, le=100)] = 10
    """Paragraphs that can be searched for each question: its own, filled up to this number with those of
    other questions."""
    min_f1: Annotated[float, Field(gt=0, le=1)] | None = None
    """Least token F1 for which a searched answer counts as a success; None: only an exact match does."""


Environments = Annotated[TextWorldGames | AlfworldGames | ToolQuestions, Field(discriminator="kind")]
"""Every environment; `intervention/environments/open.py` opens each."""


Name = FileName


class ReflexionPrograms(Config):
    """Two of Reflexion's programming runs, matched by task."""

    kind: Literal["reflexion_programs"]
    name: Name
    """Name of the recorded set in folder names."""
    source: Source
    """Files of the recorded set."""
    agent: Name
    """Name of the agent in outcomes files."""
    condition: Name
    """Name of the treated runs' condition in outcomes files."""
    baseline: Name
    """Folder below `programming_runs/root` of the archive with the runs without intervention."""
    treated: Name
    """Log of the runs with intervention."""


class ReflexionAlfworld(Config):
    """Reflexion's ALFWorld trials: two arms after the same number of retries, matched by game."""

    kind: Literal["reflexion_alfworld"]
    name: Name
    """Name of the recorded set in folder names."""
    source: Source
    """Files of the recorded set."""
    agent: Name
    """Name of the agent in outcomes files."""
    condition: Name
    """Name of the intervention in outcomes files."""
    trial: Annotated[int, Field(ge=1)]
    """Retries that either arm has had, counted from 0: the first attempt is trial 0."""


class Fireact(Config):
    """Runs of two of FireAct's fine-tuned agents, matched by question; `treated` is the condition's name
    too."""

    kind: Literal["fireact"]
    name: Name
    """Name of the recorded set in folder names."""
    source: Source
    """Files of the recorded set."""
    baseline: Name
    """Agent without intervention: a string that occurs in exactly one file's name."""
    treated: Name
    """Agent that answers in place of `baseline`."""


class WhoAndWhen(Config):
    """Failed runs with marked mistakes, and how a critic's scores on them are read."""

    kind: Literal["who_and_when"]
    name: Name
    """Name of the recorded set in folder names."""
    source: Source
    """Files of the recorded set."""
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


"""Sets with runs under two conditions: what a pilot's decision can be made from."""
Recorded = Annotated[
    ReflexionPrograms | ReflexionAlfworld | Fireact | WhoAndWhen, Field(discriminator="kind")
]
