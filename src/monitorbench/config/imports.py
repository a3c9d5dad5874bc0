"""`import.py`: how somebody else's file of monitor scores is read."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from monitorbench.config.base import Config, FileName
from monitorbench.config.cells import OwnName
from monitorbench.config.datasets import DEFAULT_MEANING, PositiveMeans

Missing = Literal["flag", "pass", "leave_out"]
Unit = Literal["trajectory", "step"]
OverSteps = Literal["max", "mean_top_k", "last"]
OverDraws = Literal["mean", "max", "all"]
MonitorName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._+-]+$", max_length=60)]
"""A name with other characters gets `_` in their place, and has to stay apart from the others."""

Column = str | None


class ImportColumns(Config):
    """Which of the file's columns is what, nested fields as `outer.inner`.

    null: a column of the usual name, where there is one; empty: none, whatever the file has.
    """

    sample: Column = None
    """What is judged, one id for each; usual: `sample_id`, `sample`, `id`. Without, each row is its own."""
    score: Column = None
    """The monitor's score; usual: `score`, `suspicion`. A list of numbers is taken as draws; `scores.*`
    makes each field below `scores` a monitor."""
    label: Column = None
    """Whether the sample is misbehavior; usual: `label`, `is_misbehavior`."""
    flagged: Column = None
    """Whether the monitor itself raised an alarm; usual: `flagged`. Without it, whether the score reaches
    `import.flag_from`."""
    monitor: Column = None
    """Which monitor a row is of; usual: `monitor`. Each gets a run of its own."""
    group: Column = None
    """The task or question of a sample, which is never on both sides of a split; usual: `group`, `group_id`,
    `task_id`. Without it samples of one request are a group, else each is its own."""
    step: Column = None
    """The number of an action in its trajectory; usual: `step`."""
    step_label: Column = None
    """Whether this action is misbehavior; usual: `step_label`."""
    draw: Column = None
    """Which of several draws of one score a row is; usual: `draw`, `epoch`."""
    split: Column = None
    """`calibration` or `test`; usual: `split`."""
    pair: Column = None
    """Joins a misbehavior sample and its benign counterpart; usual: `pair_id`."""
    request: Column = None
    """Text, or a chat as a list of messages or as JSON; usual: `request`."""
    response: Column = None
    """The same of what is judged; usual: `response`."""
    category: Column = ""
    """The category of a sample; without it `import.category`."""
    task: Column = ""
    """The kind of task of a sample, for its cell; without it `import.task`."""
    monitor_version: Column = None
    """The version of a row's monitor; usual: `monitor_version`."""
    prompt_hash: Column = None
    """The hash of its prompt; usual: `prompt_hash`."""
    seconds: Column = None
    """What the score took; usual: `seconds`."""
    cost: Column = None
    """The same in money; usual: `cost`."""

    def named(self) -> dict[str, str]:
        """The columns that were named, by what they are."""
        return {role: name for role, name in self.model_dump().items() if name}

    def looked_for(self) -> dict[str, tuple[str, ...]]:
        """The usual names of what was not said, by what it is."""
        usual = {
            "sample": ("sample_id", "sample", "id"),
            "score": ("score", "suspicion"),
            "label": ("label", "is_misbehavior"),
            "group": ("group", "group_id", "task_id"),
            "draw": ("draw", "epoch"),
            "pair": ("pair_id",),
        }
        return {role: usual.get(role, (role,)) for role, name in self.model_dump().items() if name is None}


class Import(Config):
    """What a file's columns are, and how rows become samples and verdicts."""

    name: FileName | None = None
    """Names the dataset; null: as the first file is called."""
    format: Literal["auto", "csv", "jsonl", "parquet", "inspect"] = "auto"
    """`auto`: by the file's ending."""
    columns: ImportColumns = ImportColumns()
    labels: Annotated[Path, Field(strict=False)] | None = None
    """A second file, for a log that has no labels: its columns are joined by sample id, `label` among them.
    Samples without a label there are left out, and counted."""
    monitors: dict[MonitorName, Annotated[str, Field(min_length=1)]] | None = None
    """Of a file with a column a monitor: the names, each with its column of scores; then neither
    `columns.score` nor `columns.monitor` is read."""
    actions: tuple[str, ...] = ()
    """Columns that hold a list a row, with an entry a step: a row is a whole trajectory then."""
    unit: Unit = "trajectory"
    """Of rows with a step: whether the trajectory or each step is a sample."""
    trajectory: OverSteps = "max"
    """A trajectory's score from its steps': the highest, the mean of the `top_k` highest, or the last."""
    top_k: Annotated[int, Field(ge=1)] = 3
    """Read by `mean_top_k`; of fewer steps all count."""
    draws: OverDraws = "mean"
    """One score of several draws, of each step first; or each draw a sample of its own, in one group."""
    scale: tuple[float, float] = (0.0, 1.0)
    """The file's scores that become 0 and 1, linearly: `[0,10]`; `[10,0]` where low is suspicious."""
    levels: dict[str, Annotated[float, Field(ge=0, le=1)]] | None = None
    """Of scores in words: the number in [0, 1] of each, in place of `scale`."""
    flag_from: Annotated[float, Field(ge=0, le=1)] = 0.5
    """The rescaled score from which a monitor's own answer counts as misbehavior, where the file has none."""
    missing: Missing = "leave_out"
    """What a sample without a score counts as, wherever its score is read: an alarm, none, or nothing. The
    monitor's name says which in all tables."""
    misbehavior_values: tuple[str, ...] = ("misbehavior", "true", "1", "yes", "attack")
    """What a label is that means misbehavior, in any case of letters."""
    benign_values: tuple[str, ...] = ("benign", "false", "0", "no", "honest")
    """What one is that means benign; any other value is refused."""
    monitor: MonitorName | None = None
    """The monitor's name where no column says it; null: the score column's."""
    monitor_version: str = ""
    """Its version, as its owner calls it, where no column says it."""
    prompt_hash: str = ""
    """A hash of its prompt, where no column says it."""
    category: OwnName = "imported"
    """The category of samples where no column says it."""
    task: OwnName = "transcripts"
    """The kind of task where no column says it."""
    calibration_share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """The share of groups that becomes the calibration split, by a hash; the rest is the test split."""
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    """Decides which groups."""
    positive_means: PositiveMeans = DEFAULT_MEANING
    """What the label `misbehavior` means in these data, for the page."""

    @field_validator("scale")
    @classmethod
    def _has_two_ends(cls, value: tuple[float, float]) -> tuple[float, float]:
        if value[0] == value[1]:
            raise ValueError(f"[{value[0]:g},{value[1]:g}]: both ends are the same; expected two numbers")
        return value

    @model_validator(mode="after")
    def _labels_differ(self) -> "Import":
        both = {one.casefold() for one in self.misbehavior_values} & {
            one.casefold() for one in self.benign_values
        }
        if both:
            raise ValueError(f"{', '.join(sorted(both))}: in misbehavior_values and benign_values")
        return self
