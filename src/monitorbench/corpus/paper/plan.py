"""What `dataset.plan=true` prints: what each cell could be filled with, before anything is constructed.

By rows that were counted on a machine with a mirror (`corpus.paper.counts`), so neither a mirror nor a
network is needed. A source whose raw files are missing here is named.
"""

from collections.abc import Mapping
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table

from monitorbench.config.sources import Source
from monitorbench.corpus.paper.counts import STATED, Counts, counts
from monitorbench.corpus.paper.quota import cell_size
from monitorbench.corpus.paper.units import PaperInputs
from monitorbench.sources import fetch


class CellPlan(NamedTuple):
    """One cell: what is asked for, and what there is."""

    cell: str
    pairs_asked: int
    pairs: int
    """Of the test split, counted without a subject model."""
    development_asked: int
    """Of validation and calibration together."""
    development: int
    samples_asked: int
    samples: int
    """Of the training split, counted without a subject model, within every source's share."""
    stated: int
    """Rows, before any filter, of sources that were not counted."""
    questions: int
    """That a subject model can be asked: each may give a pair for every cue kind."""


def plan(inputs: PaperInputs, known: Counts) -> list[CellPlan]:
    """The plan of every cell of a dataset, from what was counted."""
    dataset = inputs.dataset
    used = {name: ingredient.max_share for name, ingredient in dataset.ingredients.items()}
    planned = []
    for cell, quota in dataset.benchmark_quotas.items():
        there = known.pairs.get(cell, {})
        asked = {"without_thinking": quota.without_thinking, "with_thinking": quota.with_thinking}
        taken = sum(min(n, there.get(trace, 0)) for trace, n in asked.items())
        per_split = dataset.development_pairs if quota.development_pairs is None else quota.development_pairs
        samples = {name: n for name, n in known.samples.get(cell, {}).items() if name in used}
        samples_asked = dataset.corpus_quotas.get(cell, 0)
        stated = sum(of.get(cell, 0) for name, of in STATED.items() if name in used)
        planned.append(
            CellPlan(
                cell,
                sum(asked.values()),
                taken,
                2 * per_split,
                min(2 * per_split, sum(there.values()) - taken),
                samples_asked,
                cell_size(samples, used, samples_asked),
                stated,
                sum(n for name, n in known.questions.get(cell, {}).items() if name in used),
            )
        )
    return planned


def print_plan(inputs: PaperInputs) -> None:
    """A line a cell, what is missing here, and what would fill the rest; 80 columns, one screen."""
    cells = plan(inputs, counts())
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("cell")
    for name in ("test", "asked", "dev", "asked", "train", "asked", "rows", "quest."):
        table.add_column(name, justify="right")
    for one in cells:
        table.add_row(
            one.cell,
            f"{one.pairs}",
            f"{one.pairs_asked}",
            f"{one.development}",
            f"{one.development_asked}",
            f"{one.samples:,}",
            f"{one.samples_asked:,}",
            f"{one.stated:,}" if one.stated else "-",
            f"{one.questions:,}" if one.questions else "-",
        )
    console = Console(width=80, highlight=False, soft_wrap=False)
    console.print(f"dataset={inputs.dataset.name}: what its cells can be filled with. Nothing is built.")
    console.print(table)
    console.print(
        "test, dev (validation and calibration): pairs; train: samples; all without a subject model, counted "
        "from raw files, without near-duplicates.\n"
        "rows: of sources that were not counted here, as published, before any filter.\n"
        "quest.: questions for a subject model (data_build/elicit.py, dataset.elicited=DIR); each may give a "
        f"pair for each of {len(inputs.cues.kinds)} cue kinds, where the model caves in."
    )
    short = [one.cell for one in cells if one.pairs < one.pairs_asked or one.samples < one.samples_asked]
    console.print(
        f"In all {sum(c.pairs for c in cells):,} of {sum(c.pairs_asked for c in cells):,} test pairs and "
        f"{sum(c.samples for c in cells):,} of {sum(c.samples_asked for c in cells):,} training samples; "
        f"short: {', '.join(short) or 'none'}."
    )
    console.print(_here(inputs))


def _here(inputs: PaperInputs) -> str:
    """Which sources' raw files this machine has, and where the others are."""
    names = [name for name in inputs.dataset.ingredients if name in inputs.sources]
    missing = [name for name in names if not _is_here(inputs, name, inputs.sources[name])]
    line = f"Raw files here: of {len(names) - len(missing)} of {len(names)} sources."
    if not missing:
        return line
    by_origin: dict[str, list[str]] = {}
    for name in missing:
        source = inputs.sources[name]
        origin = source.origin if source.origin != "none" else "mirror only"
        by_origin.setdefault("hub, gated" if "Gated" in source.note else origin, []).append(name)
    return f"{line} Missing: {_in_words(by_origin)}. data_build/mirror.py fetches them."


def _is_here(inputs: PaperInputs, name: str, source: Source) -> bool:
    cache = inputs.paths.data / ".sources"
    return all(fetch.is_here(name, source, file, inputs.paths.sources, cache) for file in source.files)


def _in_words(by_origin: Mapping[str, list[str]]) -> str:
    return "; ".join(f"{', '.join(names)} ({origin})" for origin, names in sorted(by_origin.items()))
