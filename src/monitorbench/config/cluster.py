"""Settings of the machines: clusters (`conf/cluster/*.yaml`), tracking in W&B (`conf/tracking/*.yaml`), and
`monitorbench doctor`."""

from typing import Annotated, Literal

from pydantic import Field

from monitorbench.config.base import Config

_Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:+@,/-]+$")]


class AssumedPace(Config):
    """Speed assumed for one GPU (for the machine where `gpus` is 0) where a forecast has no measurement.

    A model of another size is assumed to be slower or faster in proportion to its parameters.
    """

    parameters: Annotated[float, Field(gt=0)]
    """Parameters of the model that the two speeds are for."""
    training_tokens_per_second: Annotated[float, Field(gt=0)]
    """Training speed: tokens of samples in optimizer steps, per second."""
    evaluation_prompt_tokens_per_second: Annotated[float, Field(gt=0)]
    """Judging speed: prompt tokens per second, also in a training's validations."""


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
