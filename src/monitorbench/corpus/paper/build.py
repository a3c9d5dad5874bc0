"""`dataset=paper` and `paper_local`: the benchmark first, then a corpus that does not overlap with it.

Order of work: construct the candidates of every source (or find them), choose the paired splits, write
them, then fill the training cells side by side in processes. Each file is renamed into place when whole,
and the same settings and raw files give the same bytes, also after a kill.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from monitorbench.config.base import UserError
from monitorbench.config.datasets import PaperDataset
from monitorbench.construct.pair import Pair
from monitorbench.corpus.paper.benchmark import Benchmark, paired, select
from monitorbench.corpus.paper.candidates import Candidates, batches, prepare, totals, worker_pool
from monitorbench.corpus.paper.training_split import CellJob, Filled, fill_cell
from monitorbench.corpus.paper.units import SYNTHETIC, PaperInputs, units
from monitorbench.corpus.store import from_table, write_split
from monitorbench.records import Cell, Sample, Split
from monitorbench.runs.files import folder_in_the_making
from monitorbench.runs.progress import progress

_REMEDY = (
    "add sources, lower the quota, or state the shortfall with dataset.allow_short=true; "
    "plan=true shows every cell"
)


def build(inputs: PaperInputs, directory: Path, wanted: Sequence[Split]) -> dict[str, Any]:
    """Write the wanted splits below `directory`; returns the manifest's results.

    Raises `UserError` where a source is missing or broken, or where a cell can't be filled and
    `dataset.allow_short` is false.
    """
    dataset, workers = inputs.dataset, os.cpu_count() or 1
    prepared = prepare(inputs, units(inputs), workers=workers)
    benchmark = select(eligible(prepared, dataset), dataset)
    results: dict[str, Any] = {
        "constructed": totals(prepared),
        "benchmark_near_duplicates": dict(benchmark.near_duplicates),
        "headline": dict(dataset.headline),
    }
    _refuse_short(benchmark, dataset)
    shortfall: dict[str, Any] = {
        split.value: {
            cell: {trace: _short(*short) for trace, short in traces.items()} for cell, traces in cells.items()
        }
        for split, cells in benchmark.shortfall.items()
    }
    splits: dict[str, Any] = {}
    for split, samples in benchmark.samples.items():
        # Written whether wanted or not: the training split is kept apart from all three.
        if split in wanted or Split.TRAIN in wanted:
            splits[split.value] = _written(directory, split, samples)
    if Split.TRAIN in wanted:
        filled = _fill(dataset, prepared, directory, workers)
        splits[Split.TRAIN.value] = {
            "samples": sum(cell.samples for cell in filled),
            "cells": {cell.cell: _stated(cell) for cell in filled},
            "sha256": {name: digest for cell in filled for name, digest in cell.shards.items()},
        }
        shortfall[Split.TRAIN.value] = {
            cell.cell: _short(cell.asked, cell.samples) for cell in filled if cell.samples < cell.asked
        }
    return {
        **results,
        "splits": splits,
        "shortfall": {name: cells for name, cells in shortfall.items() if cells},
    }


def eligible(prepared: Sequence[Candidates], dataset: PaperDataset) -> list[Pair]:
    """The pairs of every source whose labels are good enough for a paired split."""
    pairs: list[Pair] = []
    for candidates in prepared:
        ingredient = dataset.ingredients.get(candidates.unit.source)
        if ingredient is not None and ingredient.benchmark:
            files = [file for cell in dataset.benchmark_quotas if (file := candidates.file(cell))]
            pairs += paired([sample for table in batches(files) for sample in from_table(table)])
    return pairs


def _written(directory: Path, split: Split, samples: Sequence[Sample]) -> dict[str, Any]:
    sources: dict[Cell, Counter[str]] = {}
    strata: dict[Cell, Counter[str]] = {}
    for sample in samples:
        sources.setdefault(sample.cell, Counter())[sample.source] += 1
        strata.setdefault(sample.cell, Counter())[sample.stratum] += 1
    return {
        "samples": len(samples),
        "pairs": {str(cell): counts.total() // 2 for cell, counts in sorted(sources.items())},
        "sources": _in_pairs(sources),
        "strata": _in_pairs(strata),
        "sha256": write_split(directory, split, samples),
    }


def _in_pairs(counts: Mapping[Cell, Counter[str]]) -> dict[str, dict[str, int]]:
    """Pairs by cell and name, from samples by cell and name."""
    return {str(cell): {n: c // 2 for n, c in sorted(of.items())} for cell, of in sorted(counts.items())}


def _fill(
    dataset: PaperDataset, prepared: Sequence[Candidates], directory: Path, workers: int
) -> list[Filled]:
    """Fill every training cell, the largest first; the folder is replaced as a whole."""
    shares = {name: ingredient.max_share for name, ingredient in dataset.ingredients.items()}
    if dataset.synthetic_samples:
        shares[SYNTHETIC] = 1.0
    variants = frozenset(name for name, ingredient in dataset.ingredients.items() if ingredient.variants)
    jobs = []
    for cell, quota in dataset.corpus_quotas.items():
        files = [file for candidates in prepared if (file := candidates.file(cell))]
        if quota and files:
            paired_quota = dataset.benchmark_quotas.get(cell)
            jobs.append(
                CellJob(
                    cell,
                    files,
                    quota,
                    shares,
                    paired_quota.held_out if paired_quota else (),
                    dataset.seed,
                    dataset.near_duplicates,
                    variants,
                    directory,
                    directory,
                )
            )
    jobs.sort(key=lambda job: -sum(file.stat().st_size for file in job.files))
    filled: dict[str, Filled] = {
        cell: Filled(cell, quota, 0, {}, {}, {}, {}, {})
        for cell, quota in dataset.corpus_quotas.items()
        if quota
    }
    with (
        folder_in_the_making(directory / Split.TRAIN.value) as staging,
        progress("data: fill training cells", len(jobs)) as ticker,
        worker_pool(workers) as pool,
    ):
        for done in pool.map(fill_cell, [job._replace(folder=staging) for job in jobs]):
            filled[done.cell] = done
            ticker.advance()
        for result in filled.values():
            if result.samples < result.asked and not dataset.allow_short:
                raise UserError(
                    f"dataset.corpus.{result.cell.replace('/', '.')}={result.asked}: only {result.samples} "
                    f"samples could be had; {_REMEDY}"
                )
    return list(filled.values())


def _short(asked: int, have: int) -> dict[str, int]:
    return {"asked": asked, "have": have, "missing": asked - have}


def _stated(cell: Filled) -> Mapping[str, Any]:
    return {key: value for key, value in cell._asdict().items() if key not in ("cell", "shards")}


def _refuse_short(benchmark: Benchmark, dataset: PaperDataset) -> None:
    if benchmark.shortfall[Split.TEST] and not dataset.allow_short:
        cell, traces = next(iter(benchmark.shortfall[Split.TEST].items()))
        trace, short = next(iter(traces.items()))
        raise UserError(
            f"dataset.benchmark.{cell.replace('/', '.')}.{trace}={short.asked}: only {short.have} pairs "
            f"could be had; {_REMEDY}"
        )
