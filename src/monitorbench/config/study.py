"""All settings as one frozen pydantic model per Hydra group, rooted at `Study`.

The settings of the machines are here too: folders, clusters (`conf/cluster/*.yaml`), tracking in W&B
(`conf/tracking/*.yaml`) and `monitorbench doctor`.

Past `load` nothing sees a DictConfig. Values are validated strictly (a string is no number, a boolean no
integer) and unknown keys are refused. Importing this costs neither torch nor pyarrow.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from monitorbench.config.base import Config, ConfigError, as_words
from monitorbench.config.datasets import Dataset
from monitorbench.config.deployment import Control, Gate, Recommend, Serve
from monitorbench.config.engine import Engine as Engine
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
    Views,
    Wording,
)
from monitorbench.config.imports import Import
from monitorbench.config.labelling import Annotation, Labelling
from monitorbench.config.monitor import LabelWords as LabelWords
from monitorbench.config.monitor import Monitor as Monitor
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


_Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:+@,/-]+$")]


class AssumedPace(Config):
    """Speed assumed for one GPU (for the machine where `gpus` is 0) where a forecast has no measurement.

    A model of another size is assumed to be slower or faster in proportion to its parameters.
    """

    parameters: Annotated[float, Field(gt=0)]
    """Parameters of the model that the speeds are for."""
    training_tokens_per_second: Annotated[float, Field(gt=0)]
    """Training speed: tokens of samples in optimizer steps, per second."""
    reproducible_prompt_tokens_per_second: Annotated[float, Field(gt=0)]
    """Judging speed with `engine.scores=reproducible`, in prompt tokens per second."""
    fast_prompt_tokens_per_second: Annotated[float, Field(gt=0)]
    """Judging speed with `engine.scores=fast`, and that of a training's validations."""


class Cluster(Config):
    """Resources of one run of a sweep, and how many runs go at a time."""

    name: _Word
    """Name of the cluster's settings in folder names."""
    partition: _Word | None = None
    """Slurm partition; null: the cluster's default."""
    account: _Word | None = None
    """Slurm account; null: the cluster's default."""
    gpus: Annotated[int, Field(ge=0)] = 0
    """GPUs of one run, all on one node."""
    gpu_type: _Word | None = None
    """GPU type, as in `--gres=gpu:TYPE:N`; null: any."""
    cpus: Annotated[int, Field(ge=1)]
    """CPU cores of one run."""
    memory: Annotated[str, Field(pattern=r"^\d+[KMGT]?$")] | None = None
    """Memory per node, such as `64G`; null: the cluster's default."""
    time: Annotated[str, Field(pattern=r"^(\d+|\d+:\d\d|\d+:\d\d:\d\d|\d+-\d+(:\d\d){0,2})$")] | None = None
    """Slurm's wall time, such as `12:00:00`; a run that needs longer is resumed where it stopped."""
    grace_seconds: Annotated[int, Field(ge=1, le=65535)] = 120
    """Seconds before its time limit at which a run gets the signal to save and stop."""
    parallel: Annotated[int, Field(ge=1)] | None = 8
    """Most runs at a time; null: as many as the cluster gives."""
    options: tuple[Annotated[str, Field(pattern=r"^--[^\r\n]+$")], ...] = ()
    """Further options of sbatch, one per entry, such as `--constraint=nvlink`."""
    setup: tuple[Annotated[str, Field(pattern=r"^[^\r\n]+$")], ...] = ()
    """Lines of bash that run before each run, such as `module load cuda/12.8`. A line that fails ends the
    run."""
    assumed: AssumedPace | None = None
    """Speed that a plan (`plan=true`) assumes where no such run was timed before; null: the plan then gives
    no hours."""


class Tracking(Config):
    """Settings of Weights & Biases. Its key is in the environment or in `wandb login`'s file, never here."""

    mode: Literal["offline", "online", "disabled"]
    """Mode of W&B: `offline` writes into the run directory and connects to nothing."""
    project: Annotated[str, Field(min_length=1)] = "monitorbench"
    """W&B project."""
    entity: Annotated[str, Field(min_length=1)] | None = None
    """W&B user or team; null: the key's own."""
    group: Annotated[str, Field(min_length=1)] | None = None
    """Group under which W&B shows runs together; null: `<dataset>-<experiment>`, for a sweep or a transfer
    study its name, otherwise the dataset's name."""
    after_seconds: Annotated[float, Field(ge=0)] = 0.0
    """Seconds of incoming numbers after which W&B is started; a shorter run does not appear in W&B. With more
    than 0, neither do tables and pages, which come all at once."""


class Doctor(Config):
    """Model that the trials run, and the time and disk space they may take."""

    model: Literal["tiny", "monitor"] = "tiny"
    """Model of the trials. `tiny` is made on the spot; `monitor` takes the monitor's own weights, and may
    download them."""
    seconds: Annotated[float, Field(gt=0)] = 570
    """Seconds that all trials together may take; a single trial may take half of them."""
    disk_gib: Annotated[float, Field(ge=0)] = 10
    """Free space in GiB required below `paths.runs` and `paths.models`."""


def _is_named(value: object) -> object:
    """Refuse an empty text, as an unset variable leaves it, which as a path is the current folder."""
    if value == "":
        raise ValueError("no file given; expected its name")
    return value


_File = Annotated[Path, Field(strict=False), BeforeValidator(_is_named)]


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
    label: Labelling = Labelling()
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
    views: Views = Views()
    stress: Stress = Stress()
    calibrate: Calibrate = Calibrate()
    combine: Combine = Combine()
    import_: Annotated[Import, Field(alias="import")] = Import()
    from_: Annotated[tuple[_File, ...], BeforeValidator(as_words), Field(alias="from")] = ()
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
    recorded verdicts (`.jsonl`), training runs, whose adapter is taken, or fits of a probe, with the prompt
    of the fit."""
    adapters: tuple[Path, ...] = ()
    """More adapters of the monitor's weights: `evaluate.py` judges with `monitor.adapter` and then with each,
    one run per adapter, in one start of the engine; `serve.py` serves each by name. Training runs, or PEFT's
    folders."""
    plan: bool = False
    """Print what the stage would do and how long it takes, and do nothing."""
    run: Path | None = None
    """Run directory that `score.py`, `report.py`, `export.py`, `merge.py`, `push.py` and the import of
    `annotate.py` read."""

    def on_split(self, split: str) -> "Study":
        """Return the study with `evaluate.split` set."""
        return self.model_copy(update={"evaluate": self.evaluate.model_copy(update={"split": str(split)})})

    def required_run(self) -> Path:
        """Return `run`; raise `ConfigError` where none is set."""
        if self.run is None:
            raise ConfigError("run=null: no value given; expected run=DIRECTORY")
        return self.run
