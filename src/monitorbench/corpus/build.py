"""Build a dataset's directory: assemble, check, split, write, manifest.

`ensure` is what every later stage calls: it finds the directory by the hash of what decides its
content, and builds what is not there yet.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from monitorbench.config.base import UserError
from monitorbench.config.datasets import OwnDataset, PaperDataset, StarterDataset
from monitorbench.config.study import Study
from monitorbench.corpus.selection import CORPUS_VERSION, assign_splits
from monitorbench.corpus.store import ALL_NAMED, write_split
from monitorbench.records import Sample, Split
from monitorbench.runs.directory import RunDirectory, read_manifest
from monitorbench.runs.files import write_atomically
from monitorbench.runs.progress import progress
from monitorbench.sandbox.run import SandboxUnavailable

_log = logging.getLogger(__name__)


def print_plan(study: Study) -> None:
    """Print what a build would make: the cells of `dataset=paper`, the splits of any other dataset."""
    if isinstance(study.dataset, PaperDataset):
        from monitorbench.corpus.paper.plan import print_plan as print_cells
        from monitorbench.corpus.paper.units import paper_inputs

        print_cells(paper_inputs(study))
        return
    directory = directory_of(study)
    built = _splits_of(directory)
    for split in map(Split, study.dataset.splits):
        state = "done" if split in built else "to be built, in seconds to minutes"
        print(f"{split.value}: {state}: {directory.path}")


def ensure(study: Study, splits: Sequence[Split] = ()) -> Path:
    """The directory of the study's dataset, built when `dataset.splits` or `splits` are not all there.

    Raises `UserError` when a source is missing or broken, when a cell can't be filled, or when equal
    content has opposite labels.
    """
    wanted = {*map(Split, study.dataset.splits), *splits}
    directory = directory_of(study)
    if wanted <= _splits_of(directory):
        _log.info("data: reusing %s", directory.path)
        return directory.path
    with directory.owned():
        present = _splits_of(directory)  # another process may have built it in the meantime
        if not wanted <= present:
            with directory.recording(study) as results:
                try:
                    results.update(_built(study, directory.path, [s for s in Split if s in wanted | present]))
                except SandboxUnavailable as error:
                    raise UserError(str(error)) from error
    return directory.path


def _splits_of(directory: RunDirectory) -> set[Split]:
    """Splits that are built of a dataset; none where its build was not finished."""
    return set(map(Split, read_manifest(directory.path)["results"]["splits"])) if directory.done else set()


def directory_of(study: Study) -> RunDirectory:
    """Return the directory of the study's dataset, built or not.

    A hash of the settings, raw files and versions that decide its content names it.
    """
    match study.dataset:
        case StarterDataset() as dataset:
            from monitorbench.corpus import starter

            try:
                inputs = starter.inputs(dataset)
            except FileNotFoundError as error:
                raise UserError(str(error)) from error
        case PaperDataset() as dataset:
            from monitorbench.corpus.paper.units import paper_inputs, unit_identities

            views = {"splits", "train", "validation", "calibration", "test", "elicited", "on_bad_row"}
            inputs = {
                "dataset": dataset.model_dump(mode="json", exclude=views),
                "candidates": unit_identities(paper_inputs(study)),
                "corpus": CORPUS_VERSION,
            }
        case dataset:
            from monitorbench.corpus import own_files

            inputs = own_files.inputs(dataset)
    return RunDirectory(study.paths.data, study.dataset.name, inputs, is_shared=True)


def _built(study: Study, directory: Path, wanted: Sequence[Split]) -> dict[str, Any]:
    # Each kind imports its own: datasets of a user's files need none of the packages that parse code.
    facts: dict[str, Any] = {}
    match study.dataset:
        case StarterDataset() as dataset:
            from monitorbench.corpus import starter

            with progress("data: build and check", starter.N_CELLS) as ticker:
                samples, dropped = starter.assemble(dataset, ticker.advance)
            splits_of = assign_splits(samples, dataset.shares, dataset.seed)
            samples = [sample.model_copy(update={"split": splits_of[sample.group_id]}) for sample in samples]
        case PaperDataset():
            from monitorbench.corpus.paper import build as paper
            from monitorbench.corpus.paper.units import paper_inputs

            return paper.build(paper_inputs(study), directory, wanted)
        case dataset:
            from monitorbench.corpus import own_files

            samples, dropped, run_statuses, all_named = own_files.assemble(dataset)
            if run_statuses:
                facts["logs"] = run_statuses
            if all_named:
                facts[ALL_NAMED] = True
            for kind, text in own_files.published_prompts(dataset).items():
                write_atomically(directory / "prompts" / f"{kind}.txt", text)
            refuse_ambiguous_names(samples)
            if isinstance(dataset, OwnDataset):
                facts["positive_means"] = dataset.positive_means
    refuse_contradictions(samples)
    return {
        **facts,
        "dropped": dropped,
        "splits": {split.value: _written(directory, split, samples) for split in wanted},
    }


def _written(directory: Path, split: Split, samples: Sequence[Sample]) -> dict[str, Any]:
    members = [sample for sample in samples if sample.split is split]
    return {
        "samples": len(members),
        "pairs": _count_pairs(members),
        "sha256": write_split(directory, split, members),
    }


def refuse_contradictions(samples: Sequence[Sample]) -> None:
    """Raise `UserError` where an id occurs twice: equal content, with equal or opposite labels."""
    labels: dict[str, Sample] = {}
    for sample in samples:
        earlier = labels.setdefault(sample.id, sample)
        if earlier is not sample:
            kind = "opposite labels" if earlier.label is not sample.label else "the same label"
            raise UserError(
                f"samples of pair {sample.pair_id} have equal content and {kind} (id {sample.id}); "
                f"keep one of them"
            )


def refuse_ambiguous_names(samples: Sequence[Sample]) -> None:
    """Raise `UserError` where a category is called as a cell is in the names of runs: `a_b` and `a/b`."""
    categories = {sample.category for sample in samples}
    for category, task in sorted({(sample.category, sample.task) for sample in samples}):
        if f"{category}_{task}" in categories:
            raise UserError(
                f"category {category}_{task} and cell {category}/{task}: runs over both would have one "
                "name; rename one of them"
            )


def _count_pairs(samples: Sequence[Sample]) -> dict[str, int]:
    pairs = {(str(sample.cell), sample.pair_id) for sample in samples}
    return dict(sorted(Counter(cell for cell, _ in pairs).items()))
