"""How many samples a split's view has and how many tokens their prompts have; said with how it was counted.

On the built dataset with the monitor's own tokenizer where both are here; without the tokenizer by
characters. Where `dataset=paper` is not built: its quotas, or the rows that were counted of its sources, at
the mean lengths of their cells.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from monitorbench.config.base import UserError
from monitorbench.config.datasets import PaperDataset, SplitView
from monitorbench.config.study import Prompt, Study
from monitorbench.corpus.build import directory_of
from monitorbench.corpus.columns import read_columns, read_some
from monitorbench.corpus.paper import plan as paper_plan
from monitorbench.corpus.paper.counts import counts
from monitorbench.corpus.paper.lengths import mean_characters
from monitorbench.corpus.paper.units import paper_inputs
from monitorbench.corpus.store import n_rows, read_split
from monitorbench.engines.endpoint_limits import estimated_tokens
from monitorbench.engines.tokenizer_here import tokenizer_here
from monitorbench.judging.judge import NO_SHOTS
from monitorbench.metrics.columns import Columns
from monitorbench.prompts.few_shot import Shots, draw_shots
from monitorbench.prompts.published import published_prompt
from monitorbench.prompts.render import Renderer
from monitorbench.prompts.wording import PromptWording
from monitorbench.records import Sample, Split
from monitorbench.runs.directory import RunDirectory

_EVERY_ONE = 4000
"""A split of at most so many samples is counted whole."""
_PER_CELL = 200
"""Else so many of each cell stand for all."""


def dataset_here(study: Study) -> RunDirectory | None:
    """The study's dataset as far as it is built here; None where it is not, or raw files that name it lack.

    Nothing is fetched.
    """
    if isinstance(study.dataset, PaperDataset) and paper_plan.missing_sources(paper_inputs(study)):
        return None
    directory = directory_of(study)
    return directory if directory.done else None


class Counted(NamedTuple):
    """The samples of a view and their prompts."""

    n: int
    """Those that were too long are left out."""
    tokens: float
    """Of all their prompts together."""
    how: str
    """How the samples and how their tokens were counted, in a few words."""

    @property
    def mean(self) -> float:
        """Tokens of one prompt."""
        return self.tokens / self.n if self.n else 0.0


class _Known(NamedTuple):
    """The lengths of a split's samples, or of some of them."""

    by_id: Mapping[str, int]
    by_cell: Mapping[str, Sequence[int]]
    how: str


class Counter:
    """Counts for many runs of one dataset: what is read for the first is kept for the others."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], _Known] = {}
        self._datasets: dict[str, RunDirectory | None] = {}
        self._views: dict[tuple[str, ...], Counted] = {}

    def dataset(self, study: Study) -> RunDirectory | None:
        """`dataset_here`, looked up once."""
        views = {"train", "validation", "calibration", "test", "splits"}
        key = study.dataset.model_dump_json(exclude=views)
        if key not in self._datasets:
            self._datasets[key] = dataset_here(study)
        return self._datasets[key]

    def count(self, study: Study, split: Split, at_most: int | None = None) -> Counted:
        """The configured view of a split; `at_most` are the tokens that a prompt may have.

        Raises `UserError` where the dataset is not built, and is not one whose rows were counted.
        """
        view = study.dataset.view(split.value)
        data = self.dataset(study)
        judge = (study.prompt.model_dump_json(), study.monitor.model_dump_json(exclude={"adapter"}))
        named = (str(data and data.path), study.dataset.name, split.value, *judge, study.engine.kind)
        key = (*named, view.model_dump_json(), str(at_most))
        if key not in self._views:
            if data is not None and any((data.path / split.value).glob("*.parquet")):
                if (known := self._known.get(named)) is None:
                    known = self._known[named] = _lengths(study, data.path, split)
                self._views[key] = _of_built(study, data.path, split, known, at_most)
            else:
                self._views[key] = _of_quotas(study, split, view)
        return self._views[key]


def _of_built(study: Study, path: Path, split: Split, known: _Known, at_most: int | None) -> Counted:
    samples = read_columns(path, split, study.dataset.view(split.value))
    limit = float("inf") if at_most is None else at_most
    whole = [known.by_id.get(name) for name in samples.sample_ids.to_pylist()]
    how = f"{split.value} of {path.name}, {known.how}"
    if None not in whole:
        kept = [length for length in whole if length is not None and length <= limit]
        return Counted(len(kept), float(sum(kept)), how)
    n, tokens = 0.0, 0.0
    for cell, of_cell in _cells(samples).items():
        lengths = np.array(known.by_cell[cell])
        fits = lengths <= limit
        n += of_cell * fits.mean()
        tokens += of_cell * (lengths * fits).mean()
    return Counted(round(n), tokens, f"{how} of {_PER_CELL} samples a cell")


def _cells(samples: Columns) -> dict[str, int]:
    """Samples by `category/task`."""
    names = [f"{c}/{t}" for c in samples.category_names for t in samples.task_names]
    found = {name: int(samples.in_cells([name]).sum()) for name in names}
    return {name: n for name, n in found.items() if n}


def _lengths(study: Study, path: Path, split: Split) -> _Known:
    """Tokens of the prompts of a built split, all of them or some of each cell."""
    is_whole = n_rows(path, split) <= _EVERY_ONE
    samples = read_split(path, split) if is_whole else read_some(path, split, _PER_CELL)
    measure, how = _measure(study, published_prompt(path, study.prompt), _shots(study, path, samples))
    by_id = {sample.id: measure(sample) for sample in samples}
    by_cell: defaultdict[str, list[int]] = defaultdict(list)
    for sample in samples:
        by_cell[str(sample.cell)].append(by_id[sample.id])
    return _Known(by_id, by_cell, how)


def _shots(study: Study, path: Path, judged: Sequence[Sample]) -> Shots:
    if not study.prompt.shots:
        return NO_SHOTS
    train = read_split(path, Split.TRAIN, study.dataset.train)
    prompt = study.prompt
    categories = {sample.category for sample in judged}
    return draw_shots(train, prompt.shots, prompt.shots_seed, prompt.shot_characters, categories)


def _measure(study: Study, prompt: Prompt, shots: Shots) -> tuple[Callable[[Sample], int], str]:
    """What gives the tokens of a sample's prompt, or of both prompts, and what to call that."""
    acts = prompt.max_new_tokens if prompt.judge_user is not None else 0
    tokenizer = tokenizer_here(study.monitor, study.paths.models) if study.engine.by_token_ids else None
    if tokenizer is not None:
        monitor = study.monitor
        try:
            renderer = Renderer(prompt, tokenizer, monitor.opening, monitor.reasoning)
        except ValueError as error:
            raise UserError(f"monitor={monitor.name}, prompt={prompt.name}: {error}") from error

        def by_ids(sample: Sample) -> int:
            behind = len(renderer.behind_acts(sample, "")) + acts if acts else 0
            return len(renderer.render(sample, shots.beside(sample))) + behind

        return by_ids, "by its tokenizer"
    wording = PromptWording(prompt)

    def by_characters(sample: Sample) -> int:
        behind = estimated_tokens(len(wording.system) + len(wording.judge_user(sample, ""))) if acts else 0
        here = estimated_tokens(len(wording.system) + len(wording.user(sample, shots.beside(sample))))
        return here + behind + acts

    return by_characters, "by characters (3 a token)"


def _of_quotas(study: Study, split: Split, view: SplitView) -> Counted:
    """What `dataset=paper` will have: a build that may not be short has its quotas, else what was counted."""
    dataset = study.dataset
    if not isinstance(dataset, PaperDataset):
        raise UserError(
            f"--plan: dataset={dataset.name} is not built, so its samples are not known; run "
            f"data_build/build.py with the same settings first"
        )
    wording = PromptWording(study.prompt)
    around = len(wording.system) + len(study.prompt.user)
    lengths = mean_characters()[split.value]
    cells = paper_plan.plan(paper_inputs(study), counts())
    n, tokens = 0, 0
    for cell in cells:
        if not view.keeps(*cell.cell.split("/")):
            continue
        of_cell = _n_of_cell(cell, split, is_full=not dataset.allow_short)
        if view.pairs_per_cell is not None:
            of_cell = min(of_cell, view.pairs_per_cell * (1 if split is Split.TRAIN else 2))
        n += of_cell
        tokens += of_cell * estimated_tokens(around + lengths.get(cell.cell, 0))
    asked, counted = (sum(_n_of_cell(cell, split, is_full=full) for cell in cells) for full in (True, False))
    what = "as counted" if dataset.allow_short else "taken as full"
    how = f"{split.value}: dataset={dataset.name} is not built; quotas of {asked:,}, counted rows fill "
    return Counted(n, float(tokens), f"{how}{counted:,} ({what}); tokens by characters")


def _n_of_cell(cell: paper_plan.CellPlan, split: Split, *, is_full: bool) -> int:
    match split:
        case Split.TRAIN:
            return cell.samples_asked if is_full else cell.samples
        case Split.TEST:
            return 2 * (cell.pairs_asked if is_full else cell.pairs)
        case _:  # two splits share them, and a pair has two samples
            return cell.development_asked if is_full else cell.development
