"""How many rows each cell of `dataset=paper` can be filled with, and how long its samples are.

Both were measured on a machine with a mirror, and stand beside this file:

    python -m monitorbench.corpus.paper.counts              # counts.yaml, which `plan=true` reads
    python -m monitorbench.corpus.paper.counts DIRECTORY    # lengths.yaml, for forecasts without a build

The first builds what a mirror holds of `dataset=paper` without quotas and shares, in some minutes; what only
a hub has is stated by hand, as its authors state it, in `STATED`. The second measures a built
`dataset=paper_local`; cells that only a hub fills up are taken to be as long.
"""

import sys
import tempfile
from collections import Counter, defaultdict
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from monitorbench.config.datasets import PaperDataset, Quota
from monitorbench.corpus.columns import read_batches
from monitorbench.corpus.paper import build
from monitorbench.corpus.paper.benchmark import paired, select, trace_of
from monitorbench.corpus.paper.candidates import prepare
from monitorbench.corpus.paper.units import PaperInputs, files_of, units
from monitorbench.corpus.texts import request_text, response_text
from monitorbench.records import Category, Cell, Split
from monitorbench.runs.directory import write_manifest
from monitorbench.runs.files import write_atomically
from monitorbench.sources.all import SOURCES

_COUNTS, _LENGTHS = "counts.yaml", "lengths.yaml"
_ALL = 10**6

STATED: dict[str, dict[str, int]] = {
    "betley_insecure": {"safety_permission/code": 12_000},
    "dfir_metric": {"specification_gaming/qa": 713},
}
"""Rows of sources that only a hub or upstream has, by cell: at most so many, before any filter."""
STATED_QUESTIONS: dict[str, int] = {"mmlu": 1_241, "gpqa": 198, "aime": 30, "dfir_metric": 713}
"""Questions for a subject model in sources that only a hub or upstream has, by source."""


class CellCounts(NamedTuple):
    """Counts of what is available to each cell (`category/task`)."""

    pairs: dict[str, dict[str, int]]
    """Distinct pairs that a test split may have, by trace (`without_thinking`, `with_thinking`), as balance,
    strata and the sources' terms let them in; under `development` those that it can't have, or that the
    other splits choose first."""
    samples: dict[str, dict[str, int]]
    """Training samples by source, without overlap and near-duplicates, before quotas and shares."""
    questions: dict[str, dict[str, int]]
    """Questions for a subject model, by source."""


def counts() -> CellCounts:
    """Read the counts from the installed file."""
    return CellCounts(**yaml.safe_load((files("monitorbench.corpus.paper") / _COUNTS).read_text("utf-8")))


def count(inputs: PaperInputs) -> CellCounts:
    """Count what the raw files of a mirror give; raises as a build does."""
    dataset = inputs.dataset
    prepared = prepare(inputs, units(inputs), workers=2)
    chosen = select(build.eligible(prepared, dataset), _every_pair(dataset)).samples
    n_pairs = Counter(
        (str(pair.benign.cell), trace_of(pair) if split is Split.TEST else "development")
        for split, samples in chosen.items()
        for pair in paired(samples)
    )
    pairs: dict[str, dict[str, int]] = {}
    for (cell, trace), n in sorted(n_pairs.items()):
        pairs.setdefault(cell, {})[trace] = n
    with tempfile.TemporaryDirectory(dir=inputs.paths.data) as folder:
        write_manifest(Path(folder), {"status": "running"})
        unlimited = inputs._replace(dataset=_every_sample(dataset))
        built = build.build(unlimited, Path(folder), [Split.TRAIN])["splits"][Split.TRAIN.value]["cells"]
    samples = {cell: dict(facts["by_source"]) for cell, facts in sorted(built.items())}
    return CellCounts(pairs, samples, _questions(inputs))


def _questions(inputs: PaperInputs) -> dict[str, dict[str, int]]:
    """How many questions a subject model could be asked, under a cue, an incentive, or either in turn."""
    by_cell: dict[str, dict[str, int]] = {}
    for name, declared in SOURCES.items():
        questions = declared.questions
        if questions is None or name not in {*inputs.dataset.ingredients, *STATED_QUESTIONS}:
            continue
        n = STATED_QUESTIONS.get(name) or sum(1 for _ in questions.load(files_of(inputs, name)))
        if questions.kind != "coding":
            by_cell.setdefault(str(Cell(Category.SYCOPHANCY_BIAS, questions.task)), {})[name] = n
        if questions.kind != "cued":
            by_cell.setdefault(str(Cell(Category.SPECIFICATION_GAMING, questions.task)), {})[name] = n
    return by_cell


def _every_pair(dataset: PaperDataset) -> PaperDataset:
    """The dataset without quotas, but for the development splits that choose before test."""
    unlimited: dict[str, dict[str, Quota]] = defaultdict(dict)
    for category, tasks in dataset.benchmark.items():
        for task, quota in tasks.items():
            update: dict[str, int] = {"without_thinking": _ALL, "with_thinking": _ALL}
            if not quota.development_first:
                update["development_pairs"] = _ALL
            unlimited[category][task] = quota.model_copy(update=update)
    return dataset.model_copy(update={"benchmark": unlimited})


def _every_sample(dataset: PaperDataset) -> PaperDataset:
    shares = {
        name: ingredient and ingredient.model_copy(update={"max_share": float(ingredient.max_share > 0)})
        for name, ingredient in dataset.sources.items()
    }
    quotas = {category: dict.fromkeys(tasks, _ALL) for category, tasks in dataset.corpus.items()}
    return dataset.model_copy(update={"sources": shares, "corpus": quotas, "allow_short": True})


def mean_characters() -> dict[str, dict[str, int]]:
    """Characters of request and response together, the mean of each cell, by split."""
    means: dict[str, dict[str, int]] = yaml.safe_load(
        (files("monitorbench.corpus.paper") / _LENGTHS).read_text("utf-8")
    )
    return means


def measure(directory: Path, split: Split) -> dict[str, int]:
    """Measure the mean characters of each cell in a built split; `UserError` where it is missing."""
    lengths_by_cell: defaultdict[str, list[int]] = defaultdict(list)
    for batch in read_batches(directory, split):
        for sample in batch:
            lengths_by_cell[str(sample.cell)].append(len(request_text(sample)) + len(response_text(sample)))
    return {cell: round(float(np.mean(lengths))) for cell, lengths in sorted(lengths_by_cell.items())}


def write_counts(inputs: PaperInputs) -> None:
    """Count, and replace the installed file."""
    _write(_COUNTS, "", count(inputs)._asdict())


def _write(name: str, argument: str, content: dict[str, Any]) -> None:
    head = f"# Written by `python -m monitorbench.corpus.paper.counts{argument}`; see there.\n"
    target = Path(str(files("monitorbench.corpus.paper") / name))
    write_atomically(target, head + yaml.safe_dump(content, sort_keys=True, width=100))


def main() -> None:
    """Count what the local mirror holds for `dataset=paper_local`; or measure the samples of a directory."""
    import hydra

    from monitorbench.config.load import load
    from monitorbench.config.project import PACKAGED, composing
    from monitorbench.corpus.paper.units import paper_inputs

    if sys.argv[1:]:
        lengths = {split.value: measure(Path(sys.argv[1]), split) for split in Split}
        _write(_LENGTHS, " DIRECTORY", lengths)
        return
    with composing(PACKAGED):
        study = load(hydra.compose("build", ["dataset=paper_local"]))
    write_counts(paper_inputs(study))


if __name__ == "__main__":
    main()
