"""Plan that `plan=true` prints: what each cell could be filled with, before anything is constructed.

The rows were counted on a machine with a mirror (`corpus.paper.counts`), so neither a mirror nor a
network is needed. A source whose raw files are missing here is named.
"""

from collections.abc import Mapping
from typing import NamedTuple

from rich import box
from rich.table import Table

from monitorbench.config.sources import Source
from monitorbench.config.terminal import Console
from monitorbench.corpus.elicited import elicited_identity
from monitorbench.corpus.paper.counts import STATED, CellCounts, counts
from monitorbench.corpus.paper.units import PaperInputs
from monitorbench.corpus.selection import cell_size
from monitorbench.sources import fetch


class CellPlan(NamedTuple):
    """One cell: what is asked for, and what there is."""

    cell: str
    pairs_asked: int
    pairs: int
    """Pairs available to the test split, counted without a subject model."""
    development_asked: int
    """Pairs asked for validation and calibration together."""
    development: int
    samples_asked: int
    samples: int
    """Training samples available, counted without a subject model, within every source's share."""
    stated: int
    """Rows, before any filter, of sources that were not counted."""
    questions: int
    """Questions that a subject model can be asked: each may give a pair for every cue kind."""


def plan(inputs: PaperInputs, known: CellCounts) -> list[CellPlan]:
    """The plan of every cell of a dataset, from what was counted."""
    dataset = inputs.dataset
    used = {name: ingredient.max_share for name, ingredient in dataset.ingredients.items()}
    planned = []
    for cell, quota in dataset.benchmark_quotas.items():
        available = known.pairs.get(cell, {})
        wanted = {"without_thinking": quota.without_thinking, "with_thinking": quota.with_thinking}
        n_test = sum(min(n, available.get(trace, 0)) for trace, n in wanted.items())
        per_split = dataset.development_pairs_of(cell)
        if quota.development_first:
            n_test = min(n_test, max(0, sum(available.values()) - 2 * per_split))
        samples = {name: n for name, n in known.samples.get(cell, {}).items() if name in used}
        samples_asked = dataset.corpus_quotas.get(cell, 0)
        stated = sum(of.get(cell, 0) for name, of in STATED.items() if name in used)
        planned.append(
            CellPlan(
                cell,
                sum(wanted.values()),
                n_test,
                2 * per_split,
                min(2 * per_split, sum(available.values()) - n_test),
                samples_asked,
                cell_size(samples, used, samples_asked),
                stated,
                sum(n for name, n in known.questions.get(cell, {}).items() if name in used),
            )
        )
    return planned


def print_plan(inputs: PaperInputs) -> None:
    """A line a cell, what is missing here, and what would fill the rest; 80 columns, one screen.

    Raises `UserError` for answers in `dataset.elicited` that a build would refuse.
    """
    n_elicited = len(elicited_identity(inputs.dataset.elicited))
    cells = plan(inputs, counts())
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column(f"dataset={inputs.dataset.name}", no_wrap=True)
    for name in ("test", "dev", "train", "rows", "quest."):
        table.add_column(name, justify="right", no_wrap=True)
    for row in cells:
        table.add_row(
            row.cell,
            f"{row.pairs}/{row.pairs_asked}",
            f"{row.development}/{row.development_asked}",
            f"{row.samples:,}/{row.samples_asked:,}",
            f"{row.stated:,}" if row.stated else "-",
            f"{row.questions:,}" if row.questions else "-",
        )
    pairs, pairs_asked = sum(row.pairs for row in cells), sum(row.pairs_asked for row in cells)
    samples, samples_asked = sum(row.samples for row in cells), sum(row.samples_asked for row in cells)
    console = Console(width=80, highlight=False)
    console.print(table)
    console.print(
        f"In all {pairs:,} of {pairs_asked:,} test pairs, {samples:,} of {samples_asked:,} train samples.\n"
        "Have/asked. test, dev (validation and calibration): pairs; train: samples, without near-duplicates; "
        "as counted from raw files, no subject model asked. rows: of sources not counted, as published, "
        "unfiltered. quest.: for a subject model (`monitorbench elicit`, dataset.elicited=DIR); each may "
        "give a pair for each kind of cue (cue=default) or incentive (cue=incentive)."
    )
    if n_elicited:
        console.print(f"The answers of {n_elicited} runs (dataset.elicited) are not counted in it.")
    if pairs < pairs_asked and not inputs.dataset.allow_short:
        console.print("With these rows alone a build stops; dataset.allow_short=true states what is short.")
    console.print(_here(inputs))


def _here(inputs: PaperInputs) -> str:
    """Which sources' raw files this machine has, and where the others are."""
    names = _named(inputs)
    missing = missing_sources(inputs)
    line = f"Raw files here: {len(names) - len(missing)} of {len(names)} sources."
    if not missing:
        return line
    by_origin: dict[str, list[str]] = {}
    for name in missing:
        source = inputs.sources[name]
        origin = source.origin if source.origin != "none" else "mirror only"
        by_origin.setdefault("hub, gated" if "Gated" in source.note else origin, []).append(name)
    return f"{line} `monitorbench mirror` fetches: {_in_words(by_origin)}."


def missing_sources(inputs: PaperInputs) -> list[str]:
    """The sources of a dataset whose raw files this machine lacks; nothing is fetched."""
    return [name for name in _named(inputs) if not _is_here(inputs, name, inputs.sources[name])]


def _named(inputs: PaperInputs) -> list[str]:
    return [name for name in sorted(inputs.dataset.ingredients) if name in inputs.sources]


def _is_here(inputs: PaperInputs, name: str, source: Source) -> bool:
    cache = inputs.paths.data / ".sources"
    return all(fetch.is_here(name, source, file, inputs.paths.sources, cache) for file in source.files)


def _in_words(by_origin: Mapping[str, list[str]]) -> str:
    return "; ".join(f"{', '.join(names)} ({origin})" for origin, names in sorted(by_origin.items()))
