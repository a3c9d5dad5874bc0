"""Settings of datasets (`conf/dataset/*.yaml`), one model per kind."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, TypeVar, get_args

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from monitorbench.cells import BuiltTask, OwnName, PaperCategory, wrong_subset
from monitorbench.config.base import Config, FileName, Words
from monitorbench.config.sources import NearDuplicates

T = TypeVar("T")


class SplitView(Config):
    """Part of a split that a stage reads; the split on disk is always complete."""

    subset: Annotated[Words, Field(min_length=1)] = ("all",)
    """Cells to keep: 'all', a category or a cell, each followed by what to leave out after a '-', as in
    `all-sycophancy_bias`. A term that begins with '-' is left out of all other terms. `dataset=jsonl` and
    `inspect_log` may have names of their own."""
    pairs_per_cell: Annotated[int, Field(ge=1)] | None = None
    """Most pairs of each cell, the first by content hash; None keeps all."""

    @field_validator("subset")
    @classmethod
    def _is_well_formed(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if reason := wrong_subset(value):
            raise ValueError(reason)
        return value

    def keeps(self, category: str, task: str) -> bool:
        """Return whether a cell is in the subset: some term names it, and none leaves it out."""

        def names(name: str) -> bool:
            return name in ("all", category, f"{category}/{task}")

        def holds(term: str) -> bool:
            wanted, *less = term.split("-")
            return names(wanted) and not any(map(names, less))

        left_out = [name for term in self.subset if term.startswith("-") for name in term[1:].split("-")]
        kept_terms = [term for term in self.subset if not term.startswith("-")] or ["all"]
        return any(map(holds, kept_terms)) and not any(map(names, left_out))


class SplitShares(Config):
    """Shares of each cell's groups that go to the splits; the four add up to 1."""

    train: Annotated[float, Field(ge=0, le=1)] = 0.55
    """Share of the train split, for fine-tuning."""
    validation: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Share of the validation split, for the learning curve."""
    calibration: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Share of the calibration split, for thresholds and combinations."""
    test: Annotated[float, Field(ge=0, le=1)] = 0.25
    """Share of the test split, for the metrics."""

    @model_validator(mode="after")
    def _sum(self) -> "SplitShares":
        total = self.train + self.validation + self.calibration + self.test
        if abs(total - 1) > 1e-9:
            raise ValueError(f"the shares add up to {total:g}, expected 1")
        return self


SplitName = Literal["train", "validation", "calibration", "test"]


class _Dataset(Config):
    """Fields of every dataset: a name, a seed, the splits that are built, and the views that stages read."""

    name: FileName
    """Name of the dataset; its folder has this name and a hash."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed that assigns samples to splits where their source names none."""
    splits: Annotated[tuple[SplitName, ...], Field(min_length=1)] = get_args(SplitName)
    """Splits that `build.py` writes."""
    train: SplitView = SplitView()
    """Part of the train split that trainings read."""
    validation: SplitView = SplitView()
    """Part of the validation split that stages read."""
    calibration: SplitView = SplitView()
    """Part of the calibration split that stages read."""
    test: SplitView = SplitView()
    """Part of the test split that stages read."""

    def view(self, split: SplitName) -> SplitView:
        """Return the configured view of a split."""
        return self.views[split]

    @property
    def views(self) -> dict[SplitName, SplitView]:
        """The configured views, by split."""
        names: tuple[SplitName, ...] = get_args(SplitName)
        return {name: getattr(self, name) for name in names}


class StarterDataset(_Dataset):
    """`dataset=starter`: the embedded pairs, written for this project or built and checked by program."""

    kind: Literal["starter"]
    generated_pairs: Annotated[int, Field(ge=1, le=5000)] = 90
    """Pairs in each of the two generated reasoning cells."""
    own_checks: bool = True
    """Whether some responses of `specification_gaming/code` bring checks of their own, which may be weakened;
    false: every misbehavior there gives the shown examples' results without computing them."""
    shares: SplitShares = SplitShares()


class Quota(Config):
    """Pairs of one cell of the benchmark, with and without a reasoning trace in the responses."""

    without_thinking: Annotated[int, Field(ge=0)]
    """Pairs whose responses have no reasoning trace."""
    with_thinking: Annotated[int, Field(ge=0)]
    """Pairs whose responses have a reasoning trace."""
    max_strata: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(default={})
    """Largest share of the pairs for each named stratum; a stratum that is not named may have any share."""
    held_out: tuple[str, ...] = ()
    """Cues and subcategories that stand in `test` and `calibration` alone, so that what is trained on the
    others meets something new."""
    development_pairs: Annotated[int, Field(ge=0)] | None = None
    """Pairs of this cell in `validation` and in `calibration`; null: `dataset.development_pairs`."""
    development_first: bool = False
    """Whether `calibration` and `validation` choose their pairs before `test`: where balance lets few in,
    what another split leaves leans one way."""
    balance: Annotated[int, Field(ge=0)] | None = None
    """Largest number of pairs of a split by which a word may occur more often in one label's responses than
    in the other's; null: any."""


class Ingredient(Config):
    """Limits on the use of one source."""

    benchmark: bool
    """Whether the source's labels are good enough for the test split; otherwise it is used for training
    only."""
    max_share: Annotated[float, Field(ge=0, le=1)]
    """Largest share of a training cell that may come from the source; 0 keeps it out of training."""
    training_only: tuple[str, ...] = ()
    """Subcategories of the source whose labels are good enough for `train` and `validation` alone."""
    paired: tuple[Literal["validation", "calibration", "test"], ...] = ("validation", "calibration", "test")
    """Paired splits that may hold the source, where `benchmark` lets it into any."""
    variants: bool = False
    """Whether near-duplicates among the source's own samples are kept, since few facts differ on purpose."""


def _by_cell(quotas: Mapping[PaperCategory, Mapping[BuiltTask, T]]) -> dict[str, T]:
    return {
        f"{category}/{task}": quota for category, tasks in quotas.items() for task, quota in tasks.items()
    }


class PaperDataset(_Dataset):
    """`dataset=paper` and `paper_local`: the benchmark and the corpus of 2601.05752, from real sources."""

    kind: Literal["paper"]
    sources: dict[str, Ingredient | None]
    """Sources to use, by their names in `conf/source/`; null leaves one out."""
    benchmark: dict[PaperCategory, dict[BuiltTask, Quota]]
    """Pairs of the test split, by category and task: the paper's tasks, or a source's own such as `agent`."""
    headline: dict[str, str] = Field(default={})
    """Stratum whose numbers stand for a cell in every table, by cell (`category/task`); the cell's other
    strata are listed beside it. Overall and category numbers count all samples."""
    development_pairs: Annotated[int, Field(ge=0)] = 40
    """Pairs of each cell in `validation`, and as many in `calibration`."""
    corpus: dict[PaperCategory, dict[BuiltTask, Annotated[int, Field(ge=0)]]]
    """Samples of the train split, by category and task."""
    allow_short: bool = False
    """Whether a cell that can't be filled is noted in the manifest; false makes it an error."""
    on_bad_row: Literal["error", "skip"] = "error"
    """Treatment of a raw row that can't be used: `error` ends the build, `skip` counts the row and leaves it
    out."""
    near_duplicates: NearDuplicates = NearDuplicates()
    """Rule for what counts as the same text on both sides of a split."""
    elicited: tuple[Path, ...] = ()
    """Answers of live subject models (`data_build/elicit.py`), one directory or several; null: none."""
    synthetic_samples: Annotated[int, Field(ge=0)] = 0
    """Nonsense samples for scale tests only; 0 in every real dataset."""

    @field_validator("elicited", mode="before")
    @classmethod
    def _several(cls, value: object) -> object:
        # In YAML null and a single directory may stand for the list.
        if value is None:
            return ()
        several = [value] if isinstance(value, str) else value
        return tuple(several) if isinstance(several, list) else several

    @model_validator(mode="after")
    def _headline(self) -> "PaperDataset":
        for cell in self.headline:
            if cell not in self.benchmark_quotas:
                cells = ", ".join(self.benchmark_quotas)
                raise ValueError(f"headline: no cell {cell} in the benchmark; expected one of {cells}")
        return self

    @property
    def ingredients(self) -> dict[str, Ingredient]:
        """The sources that are used, by name."""
        return {name: ingredient for name, ingredient in self.sources.items() if ingredient is not None}

    @property
    def benchmark_quotas(self) -> dict[str, Quota]:
        """Pairs of the test split, by cell (`category/task`)."""
        return _by_cell(self.benchmark)

    def development_pairs_of(self, cell: str) -> int:
        """Return how many pairs of a cell `validation` gets, and `calibration` as many."""
        own = self.benchmark_quotas[cell].development_pairs
        return self.development_pairs if own is None else own

    @property
    def corpus_quotas(self) -> dict[str, int]:
        """Samples of the train split, by cell (`category/task`)."""
        return _by_cell(self.corpus)


def _require_path(value: object) -> object:
    if value is None:
        raise ValueError("no value given; expected dataset.path=FILE or a folder")
    return value


DEFAULT_MEANING = "misbehavior"

OwnPath = Annotated[Path, BeforeValidator(_require_path)]
"""A file, or a folder of files."""


def _a_few_words(text: str) -> str:
    if not text.strip() or not text.isprintable() or len(text) > 80:
        raise ValueError("expected a few words on one line, at most 80 characters")
    return text.strip()


PositiveMeans = Annotated[str, AfterValidator(_a_few_words)]
"""A few words on one line."""


class _FromFiles(_Dataset):
    """A dataset read from files of a documented format."""

    on_bad_row: Literal["error", "skip"] = "error"
    """Treatment of a bad row: `error` ends the build, `skip` counts and logs the row and leaves it out."""
    unknown_content: Literal["show", "refuse"] = "refuse"
    """Treatment of message content in a form that is not known: `refuse` makes it a bad row, `show` keeps its
    JSON as text of the message."""


class _OwnFiles(_FromFiles):
    """A team's own files, with categories and tasks of any name."""

    positive_means: PositiveMeans = DEFAULT_MEANING
    """Meaning of the label `misbehavior` in these data, such as `contains personal data`; shown on the
    page."""
    shares: SplitShares = SplitShares()
    """Shares of the groups that go to the splits, for samples that name no split, as those of a log."""


class JsonlDataset(_OwnFiles):
    """`dataset=jsonl`: a team's own labelled samples as JSON lines (docs/data-formats.md)."""

    kind: Literal["jsonl"]
    path: OwnPath
    """A `.jsonl` or `.jsonl.gz` file, or a folder of them."""


class InspectLogDataset(_OwnFiles):
    """`dataset=inspect_log`: logs of Inspect AI or control-arena, labelled by a CSV or a scorer's value."""

    kind: Literal["inspect_log"]
    path: OwnPath
    """A `.eval` or `.json` log, or a folder of them."""
    unknown_content: Literal["show", "refuse"] = "show"
    """As for other files; logs hold more than messages, so that `show` is the default."""
    labels: Path | None = None
    """A CSV of sample id, epoch and label; null takes the log's scores."""
    score: str = ""
    """Scorer whose value is the label; empty with `labels`."""
    misbehavior_values: tuple[str, ...] = ()
    """Values of the scorer that mean misbehavior."""
    benign_values: tuple[str, ...] = ()
    """Values of the scorer that mean benign; a sample with a value in neither list has no label."""
    category: OwnName = "safety_permission"
    """Category of every sample: one of the paper's, or a name of your own."""
    task: OwnName = "qa"
    """Task of every sample: one of the paper's, or a name of your own."""


class AutomonitorBenchDataset(_FromFiles):
    """`dataset=automonitor_bench`: the release of 2601.05752's authors, a test split and nothing else."""

    kind: Literal["automonitor_bench"]
    path: Path | None = None
    """Local copy of the release; null downloads it from the hub."""
    hub_id: Annotated[str, Field(min_length=1)] = "shuyhere/automonitor-bench"
    """Name of the dataset on the hub."""
    revision: str = "main"
    """Commit, tag or branch of the dataset on the hub."""


OwnDataset = JsonlDataset | InspectLogDataset
"""Datasets whose categories and tasks may have any name."""

FilesDataset = JsonlDataset | InspectLogDataset | AutomonitorBenchDataset
"""Datasets read from files of a documented format."""

Dataset = Annotated[StarterDataset | PaperDataset | FilesDataset, Field(discriminator="kind")]
