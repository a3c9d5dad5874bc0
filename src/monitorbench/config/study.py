"""All settings as one frozen pydantic model per Hydra group, rooted at `Study`.

Past `load` nothing sees a DictConfig. Values are validated strictly (a string is no number, a boolean no
integer) and unknown keys are refused. Importing this costs neither torch nor pyarrow.
"""

from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field

from monitorbench.config.base import Config, ConfigError, as_tuple
from monitorbench.config.cluster import Cluster, Doctor, Tracking
from monitorbench.config.datasets import Annotation, Dataset
from monitorbench.config.deployment import Control, Gate, Recommend, Serve
from monitorbench.config.engine import Engine as Engine
from monitorbench.config.engine import LocalEngine as LocalEngine
from monitorbench.config.engine import TransformersEngine as TransformersEngine
from monitorbench.config.engine import VllmEngine as VllmEngine
from monitorbench.config.evaluation import (
    Calibrate,
    Combine,
    Evaluate,
    Export,
    Report,
    Scoring,
    Stakes,
    Stress,
    Transfer,
    Wording,
)
from monitorbench.config.imports import Import
from monitorbench.config.monitor import LabelWords as LabelWords
from monitorbench.config.monitor import Monitor as Monitor
from monitorbench.config.monitor import PackagedModel as PackagedModel
from monitorbench.config.monitor import Prompt as Prompt
from monitorbench.config.monitor import PromptKind as PromptKind
from monitorbench.config.monitor import Reasoning as Reasoning
from monitorbench.config.pilot import Agent, Environments, Pilot, Recorded
from monitorbench.config.sources import Cues, Elicit, Source
from monitorbench.config.training import Head, Push, Training


class Paths(Config):
    """Folders that are read and written. No path enters a content hash."""

    data: Path = Path("data")
    """Folder of built datasets."""
    runs: Path = Path("runs")
    """Folder of the runs, which the stages write."""
    models: Path = Path("models")
    """Folder of converted and merged weights, and of the hidden states that probes read."""
    sources: Path | None = None
    """Local mirror of the upstream raw files; environment: `MONITORBENCH_SOURCES`."""


_File = Annotated[Path, Field(strict=False)]


class Study(Config):
    """Root of all settings: every stage reads the same tree."""

    model_config = ConfigDict(serialize_by_alias=True)  # two keys are words of Python

    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    """Seed of everything random in a training; each dataset has a seed of its own."""
    dataset: Dataset
    """Samples to train on and to judge, in their splits."""
    source: dict[str, Source]
    """Upstream data sets that a dataset may draw from, by name."""
    cue: Cues
    elicit: Elicit = Elicit()
    annotation: Annotation = Annotation()
    export: Export = Export()
    push: Push = Push()
    monitor: Monitor
    """The model that judges, with its adapter or head."""
    prompt: Prompt
    training: Training
    head: Head
    """Probe on hidden states that `fit.py` fits."""
    engine: Engine
    """Engine that runs the model: in this process, a server, or a provider's endpoint."""
    tracking: Tracking
    cluster: Cluster
    transfer: Transfer = Transfer()
    score: Scoring = Scoring()
    stakes: Stakes = Stakes()
    evaluate: Evaluate = Evaluate()
    wording: Wording = Wording()
    stress: Stress = Stress()
    calibrate: Calibrate = Calibrate()
    combine: Combine = Combine()
    import_: Annotated[Import, Field(alias="import")] = Import()
    from_: Annotated[tuple[_File, ...], BeforeValidator(as_tuple), Field(alias="from")] = ()
    """Files of scores that `import.py` reads: one, or several of one form."""
    recommend: Recommend = Recommend()
    control: Control = Control()
    gate: Gate = Gate()
    report: Report = Report()
    doctor: Doctor = Doctor()
    serve: Serve = Serve()
    pilot: Pilot
    environment: Environments
    """Environment in which the agents of a live pilot act."""
    agent: Agent
    recorded: Recorded | None = None
    """Recorded set that `pilot.py` reads in place of running anything."""
    outcomes: Path | None = None
    """Outcomes file that `pilot.py` reads in place of running anything."""
    operating_point: Path | None = None
    """Run of `calibrate.py` whose threshold `score.py` and `export.py` apply, and `serve.py` as a guardrail;
    null: the judge's own answers."""
    paths: Paths = Paths()
    monitors: tuple[str, ...] = ()
    """Candidates of `choose`: monitors by name, `NAME:PROMPT` for another prompt than `prompt`, files of
    recorded verdicts (`.jsonl`), or training runs, whose adapter is taken."""
    adapters: tuple[Path, ...] = ()
    """More adapters of the monitor's weights: `evaluate.py` judges with `monitor.adapter` and then with each,
    one run per adapter, in one start of the engine; `serve.py` serves each by name. Training runs, or PEFT's
    folders."""
    plan: bool = False
    """Print what the stage would do and how long it takes, and do nothing."""
    run: Path | None = None
    """Run directory that `score.py`, `report.py`, `export.py`, `merge.py`, `push.py` and the import of
    `annotate.py` read."""

    def required_run(self) -> Path:
        """Return `run`; raise `ConfigError` where none is set."""
        if self.run is None:
            raise ConfigError("run=null: no value given; expected run=DIRECTORY")
        return self.run
