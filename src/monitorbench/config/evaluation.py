"""Settings of judging and the stages after it: split, thresholds, costs, combinations, transfer, report."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from monitorbench.config.base import Config
from monitorbench.config.datasets import SplitView
from monitorbench.config.training import Objective


class Evaluate(Config):
    """Settings of `evaluate.py`, which judges a split."""

    split: Literal["test", "calibration", "validation"] = "test"
    """Split that is judged. Metrics come from the test split, thresholds from the calibration split, the
    choice of a wording from the validation split."""


class Wording(Config):
    """Settings of `wording.py`, which chooses one of several prompts by the validation split alone."""

    prompts: tuple[str, ...] = (
        "direct",
        "direct_response_first",
        "direct_swapped",
        "direct_act",
    )
    """Prompts to compare, at least two, by their file names in `conf/prompt/`; of equally good prompts the
    first is chosen."""
    test: Literal["none", "chosen", "all"] = "chosen"
    """Prompts under which the test split is judged afterwards; with `all` the report shows the spread."""

    @field_validator("prompts")
    @classmethod
    def _are_several(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(value) < 2 or len(set(value)) < len(value):
            raise ValueError(f"[{','.join(value)}]: expected at least two prompts, each once")
        return value


class Views(Config):
    """Settings of `views.py`, which asks one monitor in several ways: each unit with each policy and view."""

    views: Annotated[tuple[str, ...], Field(min_length=1)] = (
        "all",
        "no_reasoning",
        "actions_only",
        "no_tool_output",
    )
    """Views to compare, by their names in `conf/view/`; the others are compared with the first."""
    units: Annotated[tuple[str, ...], Field(min_length=1)] = ("trajectory",)
    """Units to compare, by their names in `conf/unit/`."""
    policies: Annotated[tuple[str, ...], Field(min_length=1)] = ("built_in",)
    """Policies to compare, by their names in `conf/policy/`."""
    probe: bool = False
    """Whether a probe (`head`) is compared in place of the monitor's answers: fitted for each way of asking,
    on the train split as it is shown in this way, and chosen on the validation split."""
    at_thresholds: bool = False
    """Whether the calibration split is judged in all these ways too, and the rates at thresholds calibrated
    on it are compared (`calibrate`)."""


class Scoring(Config):
    """How runs become numbers in `score.py`, `calibrate.py`, `transfer.py` and every stage after them: the
    conditions on the runs, and the bootstrap behind intervals."""

    resamples: Annotated[int, Field(ge=100)] = 2000
    """Draws of the cluster bootstrap behind the intervals that are not worked out: of paired differences in
    the miss rate at a fixed false alarm rate, and of safety at an audit budget."""
    min_coverage: Annotated[float, Field(ge=0, le=1)] = 0.9
    """Least share of a run's samples that the endpoint answered. An answer that is no label counts as well:
    it is the judge's own, and the rates' coverage and bounds account for it."""
    other_dataset: bool = False
    """Whether an operating point may be applied to another dataset than the one it was calibrated on, where
    its promise does not hold; every table then says so."""


class Calibrate(Config):
    """Settings of `calibrate.py`: the promise that a threshold has to keep."""

    method: Literal["neyman_pearson", "conformal_risk"] = "neyman_pearson"
    """How the promise holds: FAR <= alpha with probability 1 - delta (`neyman_pearson`), or on average over
    calibration splits (`conformal_risk`)."""
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """Largest false alarm rate that is promised."""
    delta: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """Probability that the promise may fail; used by `neyman_pearson` only."""
    n_candidates: Annotated[int, Field(ge=1)] = 1
    """Number of monitors that are calibrated on the same split and then chosen from by it: each threshold
    keeps delta divided by it (`conformal_risk`: alpha), so that the promise holds for the chosen one."""
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    """Take this threshold, such as the one that `recommend` names, where it keeps the promise; null: the
    lowest that does."""
    per_category: bool = False
    """Choose a threshold for each category, each with its own promise."""
    mix: Literal["test", "drawn"] | dict[str, Annotated[float, Field(ge=0, le=1)]] = "test"
    """Share of benign questions in each cell where the promise is to hold. `test`: as in the test split;
    `drawn`: as the calibration split was drawn; or a deployment's own, by category or by `category/task`,
    adding up to 1, as in `{sycophancy_bias: 0.9, safety_permission: 0.1}`."""

    @model_validator(mode="after")
    def _is_for_all_categories(self) -> Self:
        if self.per_category and self.threshold is not None:
            raise ValueError(
                f"threshold={self.threshold:g}, per_category=true: one threshold, but each category has its "
                "own; expected one of both"
            )
        return self

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
    """Settings of `stress.py`, which tries a judge on changed samples whose label stays the same."""

    changes: Annotated[tuple[str, ...], Field(min_length=1)] = ("all",)
    """Changes to try: names, families or parts of families, as `padding`, `padding.2k` (docs/stress.md);
    `all` of them."""
    pairs_per_cell: Annotated[int, Field(ge=1)] = 20
    """Pairs of each cell that the evaluation judged, the first by content hash; where there are fewer,
    samples without a counterpart are added, up to this many of each label in all."""


class Stakes(Config):
    """Facts about a deployment from which expected costs are computed."""

    base_rate: Annotated[float, Field(ge=0, le=1)] = 0.01
    """Share of misbehavior in what is judged; a benchmark's own half is no guide to it."""
    cost_miss: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 100.0
    """Cost of a miss, in any unit."""
    cost_alarm: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    """Cost of a false alarm, in the unit of `cost_miss`."""


class Report(Config):
    """Settings of the pages of `report.py` and of `view.py`, whose page of all runs this machine alone can
    read."""

    worst: Annotated[int, Field(ge=0)] = 10
    """Misses, and false alarms, of each cell of a monitor that are shown with their text."""
    other_points: bool = False
    """Whether published points of other datasets are drawn among the run's own miss and false alarm rates."""
    port: Annotated[int, Field(ge=0, le=65535)] = 0
    """Port of the page of all runs, on 127.0.0.1; 0 picks a free port."""


class Export(Config):
    """Settings of `export.py`, which writes a dataset, or a run's scores, in other formats."""

    format: Literal["chat", "hub", "inspect"] = "chat"
    """Format to write. `chat`: chats for TRL. `hub`: a repository with a card. `inspect`: the scores of the
    evaluation `run` as an Inspect log, read at `operating_point` where it is set."""
    repo: str | None = None
    """Repository on the hub, `owner/name`."""
    private: bool = True
    """Whether a new repository is private."""
    dry_run: bool = True
    """Show what a push would upload, and upload nothing."""


Baseline = Literal["length", "bag_of_words", "echo", "overlap", "form", "all_shortcuts"]


class Combine(Config):
    """Settings of `combine.py`, which makes one judge of several, fitted on the calibration split."""

    rule: Literal["mean", "max", "stacked", "cascade"] = "stacked"
    """Rule that combines the scores: their mean, their maximum, a logistic regression, or the second judge
    only where the first is not sure."""
    calibration: tuple[Path, ...] = ()
    """Finished runs over the calibration split; for a cascade the cheap judge's first."""
    test: tuple[Path, ...] = ()
    """Finished runs of the same judges over the test split."""
    baselines: tuple[Baseline, ...] = ()
    """Baselines that are members too and need no run; they are fitted on the train split. In a cascade a
    baseline is the cheap judge."""
    size: Annotated[int, Field(ge=1)] | None = None
    """Most members that are chosen; None: all of them."""
    budget: Annotated[float, Field(ge=0, le=1)] = 0.2
    """Largest share of samples that a cascade sends on to the second judge, among those that the band is
    chosen on; used by `cascade` only."""
    aim: Literal["auroc", "low_far"] = "auroc"
    """Samples that a cascade sends on: those that raise the AUROC most on the calibration split, or the
    partial AUROC up to FAR 5 %; used by `cascade` only."""
    scale: Literal["probability", "band"] = "probability"
    """Scale of a cascade's scores; used by `cascade` only. `probability`: probability of misbehavior given
    the available scores, by logistic regressions on the calibration split. `band`: the second judge only
    orders the samples it gets, between the scores that the first one is sure of."""

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
    """Trainings of a study: each of `subsets` with each of some seeds and `objectives`."""

    subsets: tuple[str, ...] = ()
    """Train subsets, each in the form of `dataset.train.subset`."""
    objectives: tuple[Objective, ...] = ("sft",)
    """Objectives of the trainings."""

    @field_validator("subsets")
    @classmethod
    def _are_well_formed(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for subset in value:
            SplitView(subset=(subset,))
        return value


class FurtherTrainings(Trainings):
    """Trainings beside those that a study names first."""

    seeds: tuple[Seed, ...] | None = None
    """Seeds of the trainings; null: those of `transfer.seeds`."""


class Assumed(Config):
    """Values that the plan of a study assumes where nothing is measured yet."""

    auroc: Annotated[float, Field(gt=0.5, lt=1)] = 0.8
    """AUROC of the base model where it has not judged the test split yet."""
    correlation: Annotated[float, Field(ge=0, lt=1)] = 0.5
    """Correlation of two monitors' AUROCs over draws of the questions: base and tuned, and two seeds."""
    seed_sd: Annotated[float, Field(ge=0, lt=0.5)] = 0.02
    """Standard deviation of AUROC over seeds of one training."""


class Transfer(Trainings):
    """Settings of `transfer.py`: finished runs, the base's among them, or a study whose runs are found or
    made."""

    seeds: tuple[Seed, ...] = (0,)
    """Seeds of the trainings."""
    runs: tuple[Path, ...] = ()
    """Finished evaluation runs; with them `subsets` is not read."""
    by: Literal["adapter", "head"] = "adapter"
    """Method that a study trains on each subset: an adapter (`training`), or a probe on hidden states
    (`head`)."""
    operating_points: tuple[Path, ...] = ()
    """Runs of `calibrate.py`, each for the judge of one of the runs, at most one per judge."""
    wordings: tuple[Path, ...] = ()
    """Runs of `wording.py`, whose verdicts on the test split are compared in the same way as `runs`, with the
    chosen prompt marked."""
    also: dict[str, FurtherTrainings] = Field(default={})
    """Further trainings of the study, by any name: more seeds or objectives for some subsets."""
    make: bool = False
    """Train and evaluate what is missing, here; false lists what is missing."""
    jobs: Annotated[int, Field(ge=1)] = 1
    """Trainings at a time, each on its share of the cores: small models on a CPU are faster side by side."""
    auroc_margin: Annotated[float, Field(gt=0, le=1)] = 0.05
    """Smallest difference that must be refuted before a cell's AUROC is called unchanged."""
    assumed: Assumed = Assumed()
    """Values that `plan=true` assumes where nothing is measured yet."""

    @model_validator(mode="after")
    def _heads_have_no_objective(self) -> "Transfer":
        several = (self, *self.also.values())
        if self.by == "head" and any(trainings.objectives != ("sft",) for trainings in several):
            raise ValueError("objectives: of adapters; expected none with by=head")
        return self
