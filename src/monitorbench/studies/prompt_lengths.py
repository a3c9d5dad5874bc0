"""How many samples a split's view has and how many tokens their prompts have, with how that was counted.

On the built dataset with the monitor's own tokenizer where both are here; without the tokenizer by
characters. Where the dataset is not built: a user's own files are read into a folder that is gone
afterwards; of `dataset=paper` stand in its quotas, or the rows that were counted of its sources, at the mean
lengths of their cells. Nothing is fetched.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from monitorbench.config.base import UserError
from monitorbench.config.datasets import PaperDataset, SplitView, StarterDataset
from monitorbench.config.study import Monitor, Prompt, Study
from monitorbench.corpus.build import directory_of, ensure
from monitorbench.corpus.columns import read_columns, read_some
from monitorbench.corpus.store import n_rows, read_split
from monitorbench.engines.endpoint.limits import estimated_tokens
from monitorbench.engines.weights import tokenizer_here, weights_identity
from monitorbench.judging.identity import NO_SHOTS
from monitorbench.prompts.few_shot import Shots, draw_shots
from monitorbench.prompts.render import Renderer
from monitorbench.prompts.wording import PromptWording, published_prompt
from monitorbench.records import Sample, Split
from monitorbench.runs.directory import RunDirectory

if TYPE_CHECKING:
    from monitorbench.corpus.paper.plan import CellPlan

_COUNTED_WHOLE = 4000
"""A split of at most so many samples is counted whole."""
_PER_CELL = 200
"""Number of samples that stand for each cell of a larger split."""


def dataset_here(study: Study) -> RunDirectory | None:
    """The study's dataset where it is built here; None where it is not, or raw files that name it lack.

    Files of a known checksum need not be here: their dataset may have been built elsewhere.
    """
    if isinstance(study.dataset, PaperDataset):  # which alone needs the packages that parse code
        from monitorbench.corpus.paper import plan as paper_plan
        from monitorbench.corpus.paper.units import paper_inputs

        inputs = paper_inputs(study)
        missing = [inputs.sources[name] for name in paper_plan.missing_sources(inputs)]
        if not all(file.sha256 for source in missing for file in source.files):
            return None
    directory = directory_of(study)
    return directory if directory.done else None


def weights_here(monitor: Monitor) -> str | None:
    """The identity of the monitor's weights; None where neither they nor their commit are here."""
    try:
        return weights_identity(monitor)
    except UserError:
        return None


class PromptCount(NamedTuple):
    """The samples of a view and their prompts."""

    n: int
    """Number of samples; those that are too long are left out."""
    tokens: float
    """Tokens of all their prompts together."""
    how: str
    """How the samples and how their tokens were counted, in a few words."""

    @property
    def mean(self) -> float:
        """Tokens of one prompt."""
        return self.tokens / self.n if self.n else 0.0


class _Lengths(NamedTuple):
    """Tokens of the prompts of a split's samples, or of some of them."""

    by_id: Mapping[str, int]
    by_cell: Mapping[str, Sequence[int]]
    how: str


@contextmanager
def prompt_counter() -> Iterator["PromptCounter"]:
    """A counter with a folder for what it reads, which is removed behind the body."""
    with TemporaryDirectory(prefix="monitorbench-plan-") as folder:
        yield PromptCounter(Path(folder))


class PromptCounter:
    """Counts prompts for many runs of one dataset, and reads each split once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        """Where a user's own files are read into that are not built yet."""
        self._lengths: dict[tuple[str, ...], _Lengths] = {}
        self._datasets: dict[str, RunDirectory | None] = {}
        self._views: dict[tuple[str, ...], PromptCount] = {}

    def dataset(self, study: Study) -> RunDirectory | None:
        """`dataset_here`, looked up once; of files that are not built all splits, in the counter's folder.

        Raises `UserError` where such files can't be read.
        """
        views = {"train", "validation", "calibration", "test", "splits"}
        key = study.dataset.model_dump_json(exclude=views)
        if key not in self._datasets:
            self._datasets[key] = dataset_here(study) or self._read(study)
        return self._datasets[key]

    def _read(self, study: Study) -> RunDirectory | None:
        if isinstance(study.dataset, PaperDataset | StarterDataset):
            return None  # which take minutes
        aside = study.model_copy(update={"paths": study.paths.model_copy(update={"data": self._folder})})
        ensure(aside, tuple(Split))
        return directory_of(aside)

    def count(self, study: Study, split: Split, at_most: int | None = None) -> PromptCount:
        """Count the configured view of a split; longer prompts than `at_most` tokens are left out.

        Raises `UserError` where the dataset is not built, and is not one whose rows were counted.
        """
        view, data = study.dataset.view(split.value), self.dataset(study)
        judge = (study.prompt.model_dump_json(), study.monitor.model_dump_json(exclude={"adapter"}))
        name = (str(data and data.path), study.dataset.name, split.value, *judge, study.engine.kind)
        key = (*name, view.model_dump_json(), str(at_most))
        if key not in self._views:
            if data is not None and any((data.path / split.value).glob("*.parquet")):
                if name not in self._lengths:
                    models = study.paths.models if study.engine.by_token_ids else None
                    self._lengths[name] = _lengths_of(
                        study.monitor, study.prompt, models, study.dataset.train, data.path, split
                    )
                self._views[key] = _in_view(self._lengths[name], data.path, split, view, at_most)
            elif isinstance(study.dataset, PaperDataset):
                self._views[key] = _by_quotas(study, study.dataset, split, view)
            else:
                raise UserError(
                    f"plan=true: dataset={study.dataset.name} is not built, so its samples are not known; "
                    "run `monitorbench build` with the same settings first"
                )
        return self._views[key]


def _in_view(
    lengths: _Lengths, data: Path, split: Split, view: SplitView, at_most: int | None
) -> PromptCount:
    """The count of a built split's view."""
    samples = read_columns(data, split, view)
    limit = float("inf") if at_most is None else at_most
    prompt_lengths = [lengths.by_id.get(sample_id) for sample_id in samples.sample_ids.to_pylist()]
    how = f"{split.value} of {data.name}, {lengths.how}"
    if None not in prompt_lengths:
        fitting = [length for length in prompt_lengths if length is not None and length <= limit]
        return PromptCount(len(fitting), float(sum(fitting)), how)
    n, tokens = 0.0, 0.0
    for cell, of_cell in lengths.by_cell.items():
        n_in_cell, in_cell = int(samples.in_cells([cell]).sum()), np.array(of_cell)
        fits = in_cell <= limit
        n += n_in_cell * fits.mean()
        tokens += n_in_cell * (in_cell * fits).mean()
    return PromptCount(round(n), tokens, f"{how} of {_PER_CELL} samples a cell")


def _lengths_of(
    monitor: Monitor, prompt: Prompt, models: Path | None, train_view: SplitView, data: Path, split: Split
) -> _Lengths:
    """Tokens of the prompts of a built split, all of them or some of each cell, as `_measure` has them."""
    is_whole = n_rows(data, split) <= _COUNTED_WHOLE
    samples = read_split(data, split) if is_whole else read_some(data, split, _PER_CELL)
    shots = NO_SHOTS
    if prompt.shots:
        train = read_split(data, Split.TRAIN, train_view)
        categories = {sample.category for sample in samples}
        shots = draw_shots(train, prompt.shots, prompt.shots_seed, prompt.shot_characters, categories)
    measure, how = _measure(monitor, published_prompt(data, prompt), shots, models)
    by_id = {sample.id: measure(sample) for sample in samples}
    by_cell: defaultdict[str, list[int]] = defaultdict(list)
    for sample in samples:
        by_cell[str(sample.cell)].append(by_id[sample.id])
    return _Lengths(by_id, by_cell, how)


def _measure(
    monitor: Monitor, prompt: Prompt, shots: Shots, models: Path | None
) -> tuple[Callable[[Sample], int], str]:
    """A function that gives the tokens of a sample's prompt, or of both prompts, and its name.

    With a folder of `models` the monitor's tokenizer is looked for; without it characters are counted.
    """
    acts = prompt.max_new_tokens if prompt.judge_user is not None else 0
    tokenizer = tokenizer_here(monitor, models) if models is not None else None
    if tokenizer is not None:
        try:
            renderer = Renderer(prompt, tokenizer, monitor.opening, monitor.reasoning, monitor.template_date)
        except ValueError as error:
            raise UserError(f"monitor={monitor.name}, prompt={prompt.name}: {error}") from error

        def by_ids(sample: Sample) -> int:
            second = len(renderer.behind_acts(sample, "")) + acts if acts else 0
            return len(renderer.render(sample, shots.beside(sample))) + second

        return by_ids, "by its tokenizer"
    wording = PromptWording(prompt)

    def by_characters(sample: Sample) -> int:
        second = estimated_tokens(len(wording.system) + len(wording.judge_user(sample, ""))) if acts else 0
        first = estimated_tokens(len(wording.system) + len(wording.user(sample, shots.beside(sample))))
        return first + second + acts

    return by_characters, "by characters (3 a token)"


def _by_quotas(study: Study, dataset: PaperDataset, split: Split, view: SplitView) -> PromptCount:
    """The count of an unbuilt `dataset=paper`: its quotas, or its counted rows where it may be short."""
    from monitorbench.corpus.paper import plan as paper_plan
    from monitorbench.corpus.paper.counts import counts, mean_characters
    from monitorbench.corpus.paper.units import paper_inputs

    around = len(PromptWording(study.prompt).system) + len(study.prompt.user)
    lengths = mean_characters()[split.value]
    cells = paper_plan.plan(paper_inputs(study), counts())
    n, tokens = 0, 0
    for cell in cells:
        if not view.keeps(*cell.cell.split("/")):
            continue
        n_in_cell = _n_of_cell(cell, split, is_full=not dataset.allow_short)
        if view.pairs_per_cell is not None:
            n_in_cell = min(n_in_cell, view.pairs_per_cell * (1 if split is Split.TRAIN else 2))
        n += n_in_cell
        tokens += n_in_cell * estimated_tokens(around + lengths.get(cell.cell, 0))
    quotas, filled = (sum(_n_of_cell(cell, split, is_full=full) for cell in cells) for full in (True, False))
    if not n:
        raise UserError(
            f"dataset.{split}.subset={','.join(view.subset)}: no sample of dataset={dataset.name} is in it"
        )
    mode = "as counted" if dataset.allow_short else "assumed to be filled"
    how = f"{split.value}: dataset={dataset.name} is not built; quotas of {quotas:,}, counted rows fill "
    return PromptCount(n, float(tokens), f"{how}{filled:,} ({mode}); tokens by characters")


def _n_of_cell(cell: "CellPlan", split: Split, *, is_full: bool) -> int:
    match split:
        case Split.TRAIN:
            return cell.samples_asked if is_full else cell.samples
        case Split.TEST:
            return 2 * (cell.pairs_asked if is_full else cell.pairs)
        case _:  # two splits share them, and a pair has two samples
            return cell.development_asked if is_full else cell.development
