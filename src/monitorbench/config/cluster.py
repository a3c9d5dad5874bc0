"""Where runs are launched (`conf/cluster/*.yaml`) and tracked (`conf/tracking/*.yaml`)."""

from typing import Annotated, Literal

from pydantic import Field

from monitorbench.config.base import Config

_Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:+@,/-]+$")]


class AssumedPace(Config):
    """How fast one GPU (where `gpus` is 0, the machine) is taken to be, where a forecast has no measurement.

    A model of another size is taken to be slower or faster by its parameters.
    """

    parameters: Annotated[float, Field(gt=0)]
    """Of the model that the two numbers are for."""
    training_tokens_per_second: Annotated[float, Field(gt=0)]
    """Tokens of samples in optimizer steps."""
    evaluation_prompt_tokens_per_second: Annotated[float, Field(gt=0)]
    """Tokens of prompts that are judged, also of a training's validations."""


class Cluster(Config):
    """The resources of one run of a sweep, and how many runs go at a time."""

    name: _Word
    """What folders call it."""
    partition: _Word | None = None
    """null: the cluster's default, as for `account` and `memory`."""
    account: _Word | None = None
    """Slurm's account; null: none is named."""
    gpus: Annotated[int, Field(ge=0)] = 0
    """On one node."""
    gpu_type: _Word | None = None
    """As in `--gres=gpu:TYPE:N`; null: any."""
    cpus: Annotated[int, Field(ge=1)]
    """CPUs of one job."""
    memory: Annotated[str, Field(pattern=r"^\d+[KMGT]?$")] | None = None
    """Per node, such as `64G`."""
    time: Annotated[str, Field(pattern=r"^(\d+|\d+:\d\d|\d+:\d\d:\d\d|\d+-\d+(:\d\d){0,2})$")] | None = None
    """Slurm's wall time, such as `12:00:00`: a run that needs longer is resumed where it was."""
    grace_seconds: Annotated[int, Field(ge=1, le=65535)] = 120
    """How long before its time limit a run gets the signal to save and stop."""
    parallel: Annotated[int, Field(ge=1)] | None = 8
    """Runs at a time; null: as many as the cluster gives."""
    options: tuple[Annotated[str, Field(pattern=r"^--[^\r\n]+$")], ...] = ()
    """More of sbatch's options, one a line, such as `--constraint=nvlink`."""
    setup: tuple[Annotated[str, Field(pattern=r"^[^\r\n]+$")], ...] = ()
    """Lines of bash before a run, such as `module load cuda/12.8`. One that fails ends the run."""
    assumed: AssumedPace | None = None
    """What a plan (`plan=true`) takes where no such run was timed before; null: it gives no hours then."""


class Tracking(Config):
    """Weights & Biases. Its key is in the environment or in `wandb login`'s file, never here."""

    mode: Literal["offline", "online", "disabled"]
    """`offline` writes into the run directory and connects to nothing."""
    project: Annotated[str, Field(min_length=1)] = "monitorbench"
    """W&B's project."""
    entity: Annotated[str, Field(min_length=1)] | None = None
    """A user or a team; null: the key's own."""
    group: Annotated[str, Field(min_length=1)] | None = None
    """What runs are shown together; null: `<dataset>-<experiment>`, of a sweep or a transfer study its name,
    else the dataset's."""
    after_seconds: Annotated[float, Field(ge=0)] = 0.0
    """W&B is started once numbers have come for so long; a shorter run has none there. With more than 0 nor
    have tables and pages, which come at once."""
