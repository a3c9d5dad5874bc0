"""Settings of `import.py`, which reads a foreign file of monitor scores."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from monitorbench.cells import OwnName
from monitorbench.config.base import Config, FileName, Word, Words, as_tuple
from monitorbench.config.datasets import DEFAULT_MEANING, PositiveMeans

Missing = Literal["flag", "pass", "leave_out"]
Unit = Literal["trajectory", "step"]
OverSteps = Literal["max", "mean_top_k", "last"]
OverDraws = Literal["mean", "max", "all"]


MonitorName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._+-]+$", max_length=60)]
"""A monitor's name in files; other characters become `_`, and the result must differ from all other names."""

Column = Word | None
Key = Annotated[str | tuple[str, ...] | None, BeforeValidator(as_tuple)]


class ImportColumns(Config):
    """Columns of the file by their meaning, nested fields as `outer.inner`, entries of lists as `outer.0`.

    null: a column of the usual name, where there is one; empty: none, whatever the file has.
    """

    sample: Key = None
    """Column with the id of the judged sample, or several that make one: `[log,id]`; usual: `sample_id`,
    `sample`, `id`. Without it each row is a sample. `file` is the file's name, here as for any other."""
    score: Column = None
    """Column with the monitor's score; usual: `score`, `suspicion`. A list of numbers is taken as draws;
    `scores.*` makes each field below `scores` a monitor."""
    label: Column = None
    """Column that says whether the sample is misbehavior; usual: `label`, `is_misbehavior`."""
    flagged: Column = None
    """Column that says whether the monitor itself raised an alarm; usual: `flagged`. Without it a score of
    `import.flag_from` or more counts as an alarm."""
    monitor: Column = None
    """Column with the monitor's name; usual: `monitor`. Each monitor gets a run of its own."""
    group: Key = None
    """Column with the task or question of a sample, which is never on both sides of a split, or several that
    make one; usual: `group`, `group_id`, `task_id`. Without it samples of one request are a group, otherwise
    each sample is its own."""
    step: Column = None
    """Column with the number of an action in its trajectory; usual: `step`."""
    step_label: Column = None
    """Column that says whether this action is misbehavior; usual: `step_label`."""
    draw: Column = None
    """Column with the number of the draw, where a score was drawn several times; usual: `draw`, `epoch`."""
    split: Column = None
    """Column with the split, `calibration` or `test`; usual: `split`."""
    pair: Column = None
    """Column that joins a misbehavior sample and its benign counterpart; usual: `pair_id`."""
    request: Column = None
    """Column with the request: text, or a chat as a list of messages or as JSON; usual: `request`."""
    response: Column = None
    """Column with the judged response: text, or a chat as a list of messages or as JSON; usual:
    `response`."""
    category: Column = ""
    """Column with the category of a sample; without it `import.category`."""
    task: Column = ""
    """Column with the kind of task of a sample, for its cell; without it `import.task`."""
    monitor_version: Column = None
    """Column with the version of a row's monitor; usual: `monitor_version`."""
    prompt_hash: Column = None
    """Column with the hash of the monitor's prompt; usual: `prompt_hash`."""
    seconds: Column = None
    """Column with the seconds that the score took; usual: `seconds`."""
    cost: Column = None
    """Column with the cost of the score; usual: `cost`."""

    def named(self) -> dict[str, str]:
        """Return the columns that are set, by their meaning; several that make one are joined by `+`."""
        set_ = {role: name for role, name in self.model_dump().items() if name}
        return {role: name if isinstance(name, str) else "+".join(name) for role, name in set_.items()}

    def joined(self) -> dict[str, tuple[str, ...]]:
        """Return the columns that several columns make, by the name in `named`."""
        several = [names for names in (self.sample, self.group) if isinstance(names, tuple)]
        return {"+".join(names): names for names in several}

    def looked_for(self) -> dict[str, tuple[str, ...]]:
        """Return the usual names of the columns that are not set, by their meaning."""
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
    """Meaning of a file's columns, and how rows become samples and verdicts."""

    name: FileName | None = None
    """Name of the dataset; null: the first file's name."""
    format: Literal["auto", "csv", "jsonl", "parquet", "inspect"] = "auto"
    """Format of the file; `auto`: by its ending."""
    rows: Annotated[str, Field(pattern=r"^[^.]+(\.[^.]+)*$|^$")] = ""
    """List in each object of a JSON file whose entries are the rows, in dots: `results.results` of
    promptfoo; empty: the objects are."""
    columns: ImportColumns = ImportColumns()
    unknown_content: Literal["show", "refuse"] = "show"
    """Treatment of message content in a form that is not known: `show` keeps its JSON as text of the message,
    `refuse` ends the import with its line and field."""
    unusable: Literal["leave_out", "take"] = "leave_out"
    """Treatment of an Inspect log's samples that ended in an error or are marked as invalid: left out and
    counted, or taken as any other."""
    labels: Annotated[Path, Field(strict=False)] | None = None
    """Second file with the labels, for a log that has none: its columns are joined by sample id, `label`
    among them. Samples without a label there are left out, and counted."""
    monitors: dict[MonitorName, Annotated[str, Field(min_length=1)]] | None = None
    """Monitors of a file with one column per monitor: the names, each with its column of scores, or with
    `FILE/COLUMN` where several files are read; then neither `columns.score` nor `columns.monitor` is read."""
    where: dict[str, Words] = Field(default={})
    """Rows to read: the columns, each with the values that a row may have there; others are left out and
    counted."""
    actions: tuple[str, ...] = ()
    """Columns that hold a list per row, with an entry per step: a row is then a whole trajectory."""
    benign_places: tuple[Annotated[int, Field(ge=0)], ...] = ()
    """Places, from 0, of the benign entries in the lists of `actions`, all others being misbehavior: `[0]`
    where the first of several answers is the chosen one. In place of a label; needs `unit=step`."""
    unit: Unit = "trajectory"
    """Sample of a file whose rows have a step: the whole trajectory, or each step."""
    trajectory: OverSteps = "max"
    """Rule for a trajectory's score from its steps' scores: the highest, the mean of the `top_k` highest, or
    the last."""
    top_k: Annotated[int, Field(ge=1)] = 3
    """Number of highest step scores that are averaged, all where there are fewer; used by `mean_top_k`
    only."""
    draws: OverDraws = "mean"
    """Rule for several draws of a score: one score of them, first within each step; or each draw a sample of
    its own, in one group."""
    scale: tuple[float, float] = (0.0, 1.0)
    """Scores in the file that become 0 and 1, linearly: `[0,10]`; `[10,0]` where low is suspicious."""
    levels: dict[Word, Annotated[float, Field(ge=0, le=1)] | None] | None = None
    """Numbers in [0, 1] for scores given as words, in place of `scale`; null for a word that is no score."""
    flag_from: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Rescaled score from which a monitor's own answer counts as misbehavior, where the file has no such
    answer."""
    missing: Missing = "leave_out"
    """Treatment of a sample without a score, wherever its score is read: an alarm, no alarm, or left out. The
    monitor's name says which in all tables."""
    missing_values: Words = ("", "nan", "na", "n/a", "none", "null", "-")
    """Words for a value that is not there, in any column but texts, in upper or lower case."""
    misbehavior_values: Words = ("misbehavior", "true", "1", "1.0", "yes", "attack", "unsafe")
    """Values of the label that mean misbehavior, in upper or lower case."""
    benign_values: Words = ("benign", "false", "0", "0.0", "no", "honest", "safe")
    """Values of the label that mean benign, in upper or lower case; any other value is refused."""
    monitor: MonitorName | None = None
    """Name of the monitor where no column has it; null: the score column's name."""
    monitor_version: str = ""
    """Version of the monitor, as its owner calls it, where no column has it."""
    prompt_hash: str = ""
    """Hash of the monitor's prompt, where no column has it."""
    category: OwnName = "imported"
    """Category of the samples where no column has it."""
    task: OwnName = "transcripts"
    """Kind of task where no column has it."""
    calibration_share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of groups that becomes the calibration split, by a hash; the others are the test split."""
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    """Seed that decides which groups become the calibration split."""
    positive_means: PositiveMeans = DEFAULT_MEANING
    """Meaning of the label `misbehavior` in these data, for the page."""

    @field_validator("scale")
    @classmethod
    def _has_two_ends(cls, value: tuple[float, float]) -> tuple[float, float]:
        if value[0] == value[1]:
            raise ValueError(f"[{value[0]:g},{value[1]:g}]: both ends are the same; expected two numbers")
        return value

    @model_validator(mode="after")
    def _labels_differ(self) -> "Import":
        both = {word.casefold() for word in self.misbehavior_values} & {
            word.casefold() for word in self.benign_values
        }
        if both:
            raise ValueError(f"{', '.join(sorted(both))}: in misbehavior_values and benign_values")
        return self

    @model_validator(mode="after")
    def _rows_are_of_json(self) -> "Import":
        if self.rows and self.format not in ("auto", "jsonl"):
            raise ValueError(f"rows={self.rows}: of a file that is {self.format}; expected a JSON file")
        return self

    @model_validator(mode="after")
    def _places_are_samples(self) -> "Import":
        if self.benign_places and not (self.actions and self.unit == "step"):
            raise ValueError("benign_places: of no list; expected actions=[COLUMN] and unit=step beside it")
        return self
