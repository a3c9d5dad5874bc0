"""What judging and the stages after it read: split, thresholds, costs, combinations, transfer, report."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from monitorbench.config.base import Config
from monitorbench.config.datasets import SplitView
from monitorbench.config.training import Objective


class Evaluate(Config):
    """`evaluate.py`: what is judged."""

    split: Literal["test", "calibration", "validation"] = "test"
    """Metrics come from the test split, thresholds from the calibration split, the choice of a wording from
    the validation split."""


class Wording(Config):
    """`wording.py`: which of several prompts a monitor is asked with, by the validation split alone."""

    prompts: tuple[str, ...] = (
        "direct",
        "direct_category",
        "direct_response_first",
        "direct_swapped",
        "direct_act",
    )
    """Names of files in `conf/prompt/`, at least two; of equal ones the first is chosen."""
    test: Literal["none", "chosen", "all"] = "chosen"
    """Under which of them the test split is judged afterwards; with `all` the report shows the spread."""

    @field_validator("prompts")
    @classmethod
    def _are_several(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(value) < 2 or len(set(value)) < len(value):
            raise ValueError(f"[{','.join(value)}]: expected at least two prompts, each once")
        return value


class Scoring(Config):
    """Which runs `score.py`, `transfer.py`, `calibrate.py` and `combine.py` take."""

    min_coverage: Annotated[float, Field(ge=0, le=1)] = 0.9
    """The share of a run's samples that got an answer from the endpoint. One that is no label counts as well:
    it is the judge's own, and the rates' coverage and bounds tell of it."""
    other_dataset: bool = False
    """Whether an operating point may be applied to another dataset than the one it was calibrated on, where
    its promise does not hold; every table says so then."""


class Calibrate(Config):
    """`calibrate.py`: the promise a threshold has to keep."""

    method: Literal["neyman_pearson", "conformal_risk"] = "neyman_pearson"
    """FAR <= alpha with probability 1 - delta, or on average over calibration splits."""
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """The false alarm rate to keep to."""
    delta: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """Read by `neyman_pearson` only."""
    per_category: bool = False
    """A threshold for each category, each with its own promise."""
    mix: Literal["test", "drawn"] | dict[str, Annotated[float, Field(ge=0, le=1)]] = "test"
    """What share of benign questions each cell has where the promise is to hold: as in the test split; as the
    calibration split was drawn; or a deployment's own, by category or by `category/task`, adding up to 1, as
    in `{sycophancy_bias: 0.9, safety_permission: 0.1}`."""

    @field_validator("mix")
    @classmethod
    def _adds_up(cls, value: str | dict[str, float]) -> str | dict[str, float]:
        if isinstance(value, str):
            return value
        if abs(sum(value.values()) - 1) > 1e-6:
            raise ValueError(f"the shares add up to {sum(value.values()):g}, expected 1")
        if len({"/" in name for name in value}) > 1:
            raise ValueError(f"{', '.join(value)}: expected categories only, or cells (category/task) only")
        return value


class Stress(Config):
    """`stress.py`: which changes that keep the label a judge is tried under, and on how much."""

    changes: Annotated[tuple[str, ...], Field(min_length=1)] = ("all",)
    """Names, families or parts of them, as `padding`, `padding.2k` (docs/stress.md); `all` of them."""
    pairs_per_cell: Annotated[int, Field(ge=1)] = 20
    """Of each cell that the evaluation judged, the first pairs by content hash; where there are fewer, also
    samples without a counterpart, so many of each label in all."""


class Stakes(Config):
    """A deployment, for expected costs: how much of what is judged misbehaves, and what errors cost."""

    base_rate: Annotated[float, Field(ge=0, le=1)] = 0.01
    """Share of misbehavior; a benchmark's own half is no guide to it."""
    cost_miss: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 100.0
    """In any unit."""
    cost_alarm: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    """In the unit of `cost_miss`."""


class Report(Config):
    """`report.py`: how much it shows."""

    worst: Annotated[int, Field(ge=0)] = 10
    """Misses, and false alarms, of each cell of a monitor that are shown with their text."""
    other_points: bool = False
    """Whether published points of other datasets are drawn among the run's own miss and false alarm rates."""


class Export(Config):
    """`export.py`: a dataset, or a run's scores, in other people's formats."""

    format: Literal["chat", "hub", "inspect"] = "chat"
    """`chat`: chats for TRL. `hub`: a repository with a card. `inspect`: the scores of the evaluation `run`
    as an Inspect log, read at `operating_point` where one is given."""
    repo: str | None = None
    """`owner/name` on the hub."""
    private: bool = True
    """Whether a new repository is private."""
    dry_run: bool = True
    """Show what a push would upload, and upload nothing."""


Baseline = Literal["length", "bag_of_words", "echo", "overlap", "form", "all_shortcuts"]


class Combine(Config):
    """Several judges made one; what is fitted is fitted on the calibration split."""

    rule: Literal["mean", "max", "stacked", "cascade"] = "stacked"
    """Of the scores: their mean, their maximum, a logistic regression; or the second judge only where
    the first is not sure."""
    calibration: tuple[Path, ...] = ()
    """Finished runs over the calibration split; of a cascade the cheap judge's first."""
    test: tuple[Path, ...] = ()
    """The same judges' runs over the test split."""
    baselines: tuple[Baseline, ...] = ()
    """Baselines that are members too, which need no run: fitted on the train split; of a cascade the cheap
    judge."""
    size: Annotated[int, Field(ge=1)] | None = None
    """How many members are chosen at most; None: all that are given."""
    budget: Annotated[float, Field(ge=0, le=1)] = 0.2
    """Read by `cascade` only: the share of the samples that may be sent on, at most, of those that the band
    is chosen on."""
    aim: Literal["auroc", "low_far"] = "auroc"
    """Read by `cascade` only: which samples are sent on, those that raise the AUROC most on the calibration
    split, or the partial AUROC up to FAR 5 %."""
    scale: Literal["probability", "band"] = "probability"
    """Read by `cascade` only. `probability`: of misbehavior, given the scores that were asked, by logistic
    regressions on the calibration split. `band`: the second judge only orders what it is sent, between the
    scores that the first one is sure of."""

    @model_validator(mode="after")
    def _a_cascade_has_two(self) -> "Combine":
        if self.rule == "cascade" and self.size is not None:
            raise ValueError(f"size={self.size}: a cascade has two judges and chooses none; expected null")
        return self

    @field_validator("baselines")
    @classmethod
    def _named_once(cls, value: tuple[Baseline, ...]) -> tuple[Baseline, ...]:
        if len(set(value)) < len(value):
            raise ValueError(f"{', '.join(value)}: a baseline is named twice")
        return value


Seed = Annotated[int, Field(ge=0, lt=2**31)]


class Trainings(Config):
    """Every one of `subsets` with every one of `seeds` and `objectives`."""

    subsets: tuple[str, ...] = ()
    """Train subsets, each as `dataset.train.subset` takes it."""
    seeds: tuple[Seed, ...] = (0,)
    """Seeds of the trainings."""
    objectives: tuple[Objective, ...] = ("sft",)
    """Objectives of the trainings."""

    @field_validator("subsets")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for subset in value:
            SplitView(subset=(subset,))
        return value


class Assumed(Config):
    """Values that the plan of a study assumes where nothing is measured yet."""

    auroc: Annotated[float, Field(gt=0.5, lt=1)] = 0.8
    """The base's, where it has not judged the test split yet."""
    correlation: Annotated[float, Field(ge=0, lt=1)] = 0.5
    """Of two monitors' AUROCs over draws of the questions: base and tuned, and two seeds."""
    seed_sd: Annotated[float, Field(ge=0, lt=0.5)] = 0.02
    """Standard deviation of AUROC over seeds of one training."""


class Transfer(Trainings):
    """`transfer.py`: the runs, the base's among them; or a study, whose runs are found or made."""

    runs: tuple[Path, ...] = ()
    """Evaluation runs; where they are given, `subsets` is not read."""
    by: Literal["adapter", "head"] = "adapter"
    """What a study trains on each subset: an adapter (`training`), or a probe on hidden states (`head`)."""
    operating_points: tuple[Path, ...] = ()
    """Runs of `calibrate.py`, each for the judge of one of the runs, at most one a judge."""
    wordings: tuple[Path, ...] = ()
    """Runs of `wording.py`: what each judged of the test split is laid side by side as `runs` are, the chosen
    prompt marked."""
    also: dict[str, Trainings] = Field(default={})
    """More trainings of the study, by any name: further seeds or objectives for some subsets."""
    make: bool = False
    """Train and evaluate what is missing, here; else say what is missing."""
    jobs: Annotated[int, Field(ge=1)] = 1
    """Trainings at a time, each on its share of the cores: small models on a CPU are faster side by side."""
    resamples: Annotated[int, Field(ge=100)] = 2000
    """Draws of the paired cluster bootstrap."""
    auroc_margin: Annotated[float, Field(gt=0, le=1)] = 0.05
    """A cell's AUROC is called unchanged where a difference of this size or more is refuted."""
    assumed: Assumed = Assumed()
    """Values that `plan=true` assumes where nothing is measured yet."""

    @model_validator(mode="after")
    def _heads_have_no_objective(self) -> "Transfer":
        several = (self, *self.also.values())
        if self.by == "head" and any(one.objectives != ("sft",) for one in several):
            raise ValueError("objectives: of adapters; expected none with by=head")
        return self
