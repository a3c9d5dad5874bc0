"""One monitor's verdicts on many samples, as columns: the metrics' input, for a million samples or ten.

Promises: the order of the samples is kept; an answer or a score that is not there is NaN, never 0; equal
names have one number, and numbers follow the order of the names, so that a seed draws the same groups in
whatever order the samples come.

A *cell* is `overall`, a category, or a `category/task`; a *slice* cuts across the cells: by task, by whether
the response has a reasoning trace, by source; or is a stratum of one cell (`category/task:stratum`). Where a
cell has a *headline* stratum, the cell's number is that stratum's; overall and a category have all samples.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from monitorbench.metrics.auroc import Flags, Scores
from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.metrics.rates import Judged
from monitorbench.records import Category, Label, Task, vocabulary

BoolArray = NDArray[np.bool_]
Answers = Sequence[bool | None] | FloatArray
"""True or 1: flagged as misbehavior; False or 0: passed as benign; None or NaN: unscored."""

UNPAIRED = -1
OVERALL = "overall"
WITH_THINKING, WITHOUT_THINKING = "with_thinking", "without_thinking"


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """One entry a sample in each column but those called `…_names`, all [samples]."""

    sample_ids: pa.Array
    """Strings."""
    is_misbehavior: BoolArray
    flagged: FloatArray
    """1 where the answer is misbehavior, 0 where it is benign, NaN where it is unscored."""
    scores: FloatArray
    """Scores in [0, 1], NaN where there is none."""
    groups: IntArray
    """Index into `group_names`."""
    group_names: pa.Array
    """Sorted; some may be of no sample here."""
    pairs: IntArray
    """The number of the sample's pair, `UNPAIRED` where `pair_id` is empty."""
    categories: IntArray
    """Index into `category_names`."""
    category_names: tuple[str, ...]
    """`records.vocabulary`: the paper's, whether they are there or not, then a team's own."""
    tasks: IntArray
    """Index into `task_names`."""
    task_names: tuple[str, ...]
    sources: IntArray
    """Index into `source_names`."""
    source_names: tuple[str, ...]
    strata: IntArray
    """Index into `stratum_names`."""
    stratum_names: tuple[str, ...]
    has_thinking: BoolArray
    n_quotes: IntArray
    """Evidence quotes that the monitor gave, and how many of them are in the judged text."""
    n_grounded: IntArray
    located: IntArray | None = None
    """[samples, 6]: what `metrics.evidence.located` says; None of data without gold spans."""
    headline: Mapping[str, str] = field(default_factory=dict)
    """The stratum whose numbers are a `category/task` cell's, for the cells that have one."""

    def __len__(self) -> int:
        return len(self.is_misbehavior)

    def taking(self, rows: IntArray | BoolArray) -> "Columns":
        """The samples at `rows`, in that order, or those that a mask [samples] marks."""
        indices = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        arrays: dict[str, Any] = {name: getattr(self, name)[indices] for name in _ARRAYS}
        if self.located is not None:
            arrays["located"] = self.located[indices]
        return replace(self, sample_ids=self.sample_ids.take(pa.array(indices)), **arrays)

    def answering(
        self,
        flagged: FloatArray,
        scores: FloatArray,
        n_quotes: IntArray | None = None,
        n_grounded: IntArray | None = None,
    ) -> "Columns":
        """Return these samples with a monitor's answers, all [samples]; no quotes unless given."""
        none = np.zeros(len(self), dtype=np.int64)
        return replace(
            self,
            flagged=flagged,
            scores=scores,
            n_quotes=none if n_quotes is None else n_quotes,
            n_grounded=none if n_grounded is None else n_grounded,
        )

    def in_cells(self, cells: Sequence[str]) -> BoolArray:
        """Which samples are in one of these `category/task` cells."""
        is_listed = [
            [f"{category}/{task}" in cells for task in self.task_names] for category in self.category_names
        ]
        inside: BoolArray = np.array(is_listed, dtype=np.bool_)[self.categories, self.tasks]
        return inside

    @property
    def cells(self) -> IntArray:
        """A number for each sample's `category/task` cell."""
        return self.categories * len(self.task_names) + self.tasks

    def group_ids(self) -> pa.Array:
        """The names of the samples' groups."""
        return self.group_names.take(pa.array(self.groups))


_ARRAYS = (
    "is_misbehavior",
    "flagged",
    "scores",
    "groups",
    "pairs",
    "categories",
    "tasks",
    "sources",
    "strata",
    "has_thinking",
    "n_quotes",
    "n_grounded",
)


class Numbered(NamedTuple):
    """Names as numbers."""

    numbers: IntArray
    """[samples]: index into `names`."""
    names: pa.Array
    """Distinct, sorted."""


def columns(judged: Sequence[Judged]) -> Columns:
    """The columns of these rows."""
    groups = numbered(pa.array([row.group_id for row in judged], pa.string()))
    sources = numbered(pa.array([row.source for row in judged], pa.string()))
    strata = numbered(pa.array([row.stratum for row in judged], pa.string()))
    categories = vocabulary(Category, (row.category for row in judged))
    tasks = vocabulary(Task, (row.task for row in judged))
    category, task = ({name: i for i, name in enumerate(names)} for names in (categories, tasks))
    flagged = {Label.MISBEHAVIOR: 1.0, Label.BENIGN: 0.0, None: np.nan}
    return Columns(
        sample_ids=pa.array([row.sample_id for row in judged], pa.string()),
        is_misbehavior=np.array([row.label is Label.MISBEHAVIOR for row in judged], dtype=np.bool_),
        flagged=np.array([flagged[row.answer] for row in judged], dtype=np.float64),
        scores=np.array([row.score for row in judged], dtype=np.float64),  # None becomes NaN
        groups=groups.numbers,
        group_names=groups.names,
        pairs=pair_numbers(pa.array([row.pair_id for row in judged], pa.string())),
        categories=np.array([category[row.category] for row in judged], dtype=np.int64),
        category_names=categories,
        tasks=np.array([task[row.task] for row in judged], dtype=np.int64),
        task_names=tasks,
        sources=sources.numbers,
        source_names=tuple(sources.names.to_pylist()),
        strata=strata.numbers,
        stratum_names=tuple(strata.names.to_pylist()),
        has_thinking=np.array([row.has_thinking for row in judged], dtype=np.bool_),
        n_quotes=np.array([row.n_quotes for row in judged], dtype=np.int64),
        n_grounded=np.array([row.n_grounded for row in judged], dtype=np.int64),
    )


def numbered(names: pa.Array | pa.ChunkedArray) -> Numbered:
    """Strings as numbers, by the order of the distinct ones."""
    array = names.combine_chunks() if isinstance(names, pa.ChunkedArray) else names
    encoded = pc.dictionary_encode(array)
    order = pc.array_sort_indices(encoded.dictionary)
    number = np.empty(len(order), dtype=np.int64)
    number[order.to_numpy()] = np.arange(len(order))
    return Numbered(number[encoded.indices.to_numpy()], encoded.dictionary.take(order))


def pair_numbers(pair_ids: pa.Array | pa.ChunkedArray) -> IntArray:
    """`Columns.pairs` of these strings."""
    pairs = numbered(pair_ids)
    if len(pairs.names) and pairs.names[0].as_py() == "":  # the first of all strings
        return pairs.numbers + UNPAIRED
    return pairs.numbers


def aligned(is_misbehavior: Flags, values: Scores | Answers) -> tuple[BoolArray, FloatArray]:
    """Labels and values as arrays; raises ValueError where there isn't one value a label."""
    flags = np.asarray(is_misbehavior, dtype=np.bool_)
    array = np.asarray(values, dtype=np.float64)
    if array.shape != flags.shape:
        raise ValueError(f"expected {len(flags)} values, one a label, got {len(array)}")
    return flags, array


def present(is_misbehavior: Flags, values: Scores | Answers) -> tuple[BoolArray, FloatArray]:
    """Labels and values of the samples that have a value; raises as `aligned`."""
    flags, array = aligned(is_misbehavior, values)
    is_present = ~np.isnan(array)
    return flags[is_present], array[is_present]


def by_cell(judged: Columns) -> dict[str, BoolArray]:
    """Which samples are in each cell that is present; `overall` always is, a category before its tasks.

    Of a `category/task` with a headline stratum these are that stratum's samples, where there are any. Raises
    ValueError where a sample comes twice: it would be counted twice.
    """
    refuse_repeated(judged)
    cells = {OVERALL: np.ones(len(judged), dtype=np.bool_)}
    for i, category in enumerate(judged.category_names):
        inside = judged.categories == i
        cells[category] = inside
        for j, task in enumerate(judged.task_names):
            cells[f"{category}/{task}"] = _headline(
                judged, f"{category}/{task}", inside & (judged.tasks == j)
            )
    return {name: mask for name, mask in cells.items() if mask.any() or name == OVERALL}


def in_cells_numbers(judged: Columns) -> BoolArray:
    """Which samples the numbers of the `category/task` cells are of: all but what a headline leaves out."""
    if not judged.headline:
        return np.ones(len(judged), dtype=np.bool_)
    cells = [inside for name, inside in by_cell(judged).items() if "/" in name]
    return np.logical_or.reduce(cells, axis=0) if cells else np.ones(len(judged), dtype=np.bool_)


def _headline(judged: Columns, cell: str, inside: BoolArray) -> BoolArray:
    stratum = judged.headline.get(cell)
    if stratum not in judged.stratum_names:
        return inside
    of_stratum = inside & (judged.strata == judged.stratum_names.index(stratum))
    return of_stratum if of_stratum.any() else inside


def stratum_name(cell: str, stratum: str) -> str:
    """Name a stratum of a `category/task` cell among the slices; no cell's name has a colon."""
    return f"{cell}:{stratum}"


def by_stratum(judged: Columns) -> dict[str, BoolArray]:
    """Which samples are in each stratum of the `category/task` cells that have more than one."""
    masks: dict[str, BoolArray] = {}
    for i, category in enumerate(judged.category_names):
        for j, task in enumerate(judged.task_names):
            inside = (judged.categories == i) & (judged.tasks == j)
            strata = np.unique(judged.strata[inside]).tolist()
            if len(strata) > 1:
                for k in strata:
                    name = stratum_name(f"{category}/{task}", judged.stratum_names[k])
                    masks[name] = inside & (judged.strata == k)
    return masks


def by_slice(judged: Columns) -> dict[str, BoolArray]:
    """Which samples are of each task, have a trace or none, and are of each source (`source:<name>`).

    And of each stratum of a cell that has several.
    """
    slices = {f"task:{task}": judged.tasks == i for i, task in enumerate(judged.task_names)}
    slices |= {WITHOUT_THINKING: ~judged.has_thinking, WITH_THINKING: judged.has_thinking}
    slices |= {f"source:{name}": judged.sources == i for i, name in enumerate(judged.source_names) if name}
    slices |= by_stratum(judged)
    return {name: mask for name, mask in slices.items() if mask.any()}


def refuse_repeated(judged: Columns) -> None:
    """Raise ValueError where a sample comes twice."""
    if pc.count_distinct(judged.sample_ids).as_py() < len(judged):
        counted = pc.value_counts(judged.sample_ids)
        twice = counted.filter(pc.greater(counted.field("counts"), 1)).field("values")
        raise ValueError(f"{len(twice)} samples are judged more than once, the first is {twice[0].as_py()!r}")
