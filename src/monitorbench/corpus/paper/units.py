"""The units of work of `dataset=paper`: which sources are constructed, in which parts, and what decides them.

What is made of a source stands in its own declaration (`sources.all`). Importing this costs no torch, and
no construction runs a model: a live subject's answers are read from `dataset.elicited`.

For scale tests only there are nonsense samples of any number, which no one should train or judge on: random
words of a made-up vocabulary, about as long as the real samples. Their source is named `synthetic`, so that
no data card can pass them for real ones.
"""

import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, islice
from typing import Any, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.config.datasets import PaperDataset
from monitorbench.config.sources import Cues, Source
from monitorbench.config.study import Paths, Study
from monitorbench.construct.pair import Constructed, ConstructionContext
from monitorbench.corpus.elicited import elicited_identity, elicited_pairs
from monitorbench.corpus.store import SAMPLE_SCHEMA
from monitorbench.records import Cell, Construction, Label, LabelSource, Message, Role, Sample
from monitorbench.sources import fetch
from monitorbench.sources.all import SOURCES
from monitorbench.sources.declaration import SourceDeclaration, pieces
from monitorbench.sources.read import SourceFiles

SYNTHETIC = "synthetic"
SYNTHETIC_VERSION = 1
"""Raised whenever the same settings give other samples."""

_REQUEST_WORDS = 40
_RESPONSE_WORDS = 110
_SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]


def synthetic_samples(quotas: Mapping[Cell, int], start: int, count: int, seed: int) -> Iterator[Sample]:
    """Samples number `start` to `start + count`; each depends on its number and the seed alone.

    The cells follow one another, each as often as its quota says, and then again from the first.
    """
    words = _vocabulary(seed)
    cells, ends = list(quotas), list(accumulate(quotas.values()))
    if not ends or not ends[-1]:
        raise UserError("dataset.synthetic_samples: no cell has a quota; give dataset.corpus one")
    for number in range(start, start + count):
        rng = random.Random(f"{SYNTHETIC}/{seed}/{number}")
        cell = cells[bisect_right(ends, number % ends[-1])]
        yield Sample(
            pair_id=f"{SYNTHETIC}-{number}",
            group_id=f"{SYNTHETIC}-{number}",
            category=cell.category,
            task=cell.task,
            subcategory=SYNTHETIC,
            request=(Message(role=Role.USER, content=" ".join(rng.choices(words, k=_REQUEST_WORDS))),),
            response=(Message(role=Role.ASSISTANT, content=" ".join(rng.choices(words, k=_RESPONSE_WORDS))),),
            label=rng.choice(list(Label)),
            label_source=LabelSource.UPSTREAM,
            construction=Construction.LABELLED,
            source=SYNTHETIC,
            licence="Apache-2.0",
        )


def _vocabulary(seed: int) -> list[str]:
    rng = random.Random(f"{SYNTHETIC}/{seed}/words")
    return ["".join(rng.choices(_SYLLABLES, k=rng.randint(1, 4))) for _ in range(20_000)]


_SYNTHETIC_PER_UNIT = 20_000


class PaperInputs(NamedTuple):
    """Parts of a study that a build from real sources reads."""

    dataset: PaperDataset
    sources: Mapping[str, Source]
    """Settings of each source, which say where its raw files are (`conf/source`)."""
    cues: Cues
    paths: Paths


class Unit(NamedTuple):
    """A source, or part `part` of `parts` of it (every `parts`-th row)."""

    source: str
    part: int = 0
    parts: int = 1

    @property
    def label(self) -> str:
        """Name of the unit's folder."""
        return self.source if self.parts == 1 else f"{self.source}-{self.part}of{self.parts}"

    @property
    def weight(self) -> int:
        """Rough relative time that construction takes: the longest is started first."""
        return 1 if self.source == SYNTHETIC else SOURCES[self.source].weight


def paper_inputs(study: Study) -> PaperInputs:
    """Return the parts of a study that a build reads; `UserError` where its dataset is another one."""
    if not isinstance(study.dataset, PaperDataset):
        raise UserError(f"dataset={study.dataset.name}: expected dataset=paper or paper_local")
    return PaperInputs(study.dataset, study.source, study.cue, study.paths)


def units(inputs: PaperInputs) -> list[Unit]:
    """The units of a dataset, in the order their candidates are read; `UserError` for an unknown source."""
    dataset, result = inputs.dataset, []
    for name in sorted(dataset.ingredients):
        declared = _declared(name, inputs)
        if declared.construct is None and not dataset.elicited:
            continue
        result += [Unit(name, number, declared.parts) for number in range(declared.parts)]
    parts = -(-dataset.synthetic_samples // _SYNTHETIC_PER_UNIT)
    return result + [Unit(SYNTHETIC, number, parts) for number in range(parts)]


def unit_identities(inputs: PaperInputs) -> dict[str, Any]:
    """Identities of all units, by the unit's label."""
    return {unit.label: unit_identity(inputs, unit) for unit in units(inputs)}


def unit_identity(inputs: PaperInputs, unit: Unit) -> dict[str, Any]:
    """Raw files (by checksum), declared versions and settings that decide a unit's candidates."""
    dataset = inputs.dataset
    identity: dict[str, Any] = {"unit": unit, "seed": dataset.seed, "columns": SAMPLE_SCHEMA.names}
    if unit.source == SYNTHETIC:
        settings = {"samples": dataset.synthetic_samples, "quotas": dataset.corpus_quotas}
        return identity | settings | {"version": SYNTHETIC_VERSION}
    declared = SOURCES[unit.source]
    if declared.uses_cues:
        identity["cues"] = inputs.cues.model_dump(mode="json")
    if declared.questions is not None:
        identity["elicited"] = elicited_identity(dataset.elicited)
    identity["on_bad_row"] = dataset.on_bad_row
    identity["constructions"] = declared.constructions
    return identity | {"source": _source_identity(inputs, declared)}


def construct(inputs: PaperInputs, unit: Unit, bad_rows: Counter[str]) -> Iterator[Constructed]:
    """The candidates of one unit, piece by piece; rows that its reader passed over go to `bad_rows`."""
    if unit.source == SYNTHETIC:
        yield from _synthetic(inputs.dataset, unit)
        return
    declared = SOURCES[unit.source]
    if declared.installed is not None:
        rows, licence, files = iter(declared.installed.rows()), "", None
    else:
        files = files_of(inputs, unit.source)
        rows, licence = iter(declared.read(files)) if declared.read else iter(()), files.source.licence
    if declared.construct is not None:
        context = ConstructionContext(unit.source, licence, inputs.dataset.seed, inputs.cues)
        yield from declared.construct(islice(rows, unit.part, None, unit.parts), context)
    if declared.questions is not None and unit.part == 0:
        yield elicited_pairs(inputs.dataset.elicited, unit.source)
    if files is not None and unit.part == 0:  # every part reads all rows
        bad_rows.update(files.bad_rows)


def _declared(name: str, inputs: PaperInputs) -> SourceDeclaration:
    packaged = {source.name for source in SOURCES.values() if source.installed is not None}
    if name not in {*inputs.sources, *packaged}:
        expected = ", ".join(sorted({*inputs.sources, *packaged}))
        raise UserError(f"dataset.sources.{name}: no such source; conf/source has {expected}")
    if name not in SOURCES:
        raise UserError(
            f"dataset.sources.{name}: nothing in sources/ declares what to make of this source; leave it out "
            f"with dataset.sources.{name}=null"
        )
    return SOURCES[name]


def _synthetic(dataset: PaperDataset, unit: Unit) -> Iterator[Constructed]:
    quotas = {
        Cell(category, task): quota
        for category, tasks in dataset.corpus.items()
        for task, quota in tasks.items()
    }
    start = unit.part * _SYNTHETIC_PER_UNIT
    count = min(_SYNTHETIC_PER_UNIT, dataset.synthetic_samples - start)
    for piece in pieces(synthetic_samples(quotas, start, count, dataset.seed)):
        yield Constructed(piece, Counter())


def files_of(inputs: PaperInputs, name: str) -> SourceFiles:
    """The raw files of one source, found or fetched; raises as `fetch.find`."""
    cache = inputs.paths.data / ".sources"
    return fetch.find(name, inputs.sources[name], inputs.paths.sources, cache, inputs.dataset.on_bad_row)


def require_files(inputs: PaperInputs, names: Iterable[str]) -> None:
    """Find or fetch every raw file of these sources; `UserError` names all sources that lack one."""
    cache, lacking = inputs.paths.data / ".sources", dict[str, fetch.MissingFileError]()
    for name in sorted(set(names) & set(inputs.sources)):
        source = inputs.sources[name]
        try:
            for file in source.files:
                fetch.find_file(name, source, file, inputs.paths.sources, cache)
        except fetch.MissingFileError as error:
            lacking[name] = error
    if len(lacking) > 1:
        first, *others = lacking
        raise UserError(
            f"{lacking[first]}. Files of {', '.join(others)} are missing too (plan=true); have them, or "
            f"leave a source out, such as with dataset.sources.{first}=null"
        )
    for lack in lacking.values():
        raise lack


def _source_identity(inputs: PaperInputs, declared: SourceDeclaration) -> dict[str, Any]:
    identity = {"name": declared.name, "version": declared.version}
    if declared.installed is not None:
        try:
            return {**identity, "sha256": declared.installed.sha256()}
        except FileNotFoundError as error:
            raise UserError(str(error)) from error
    source = inputs.sources[declared.name]
    if all(file.sha256 for file in source.files):
        # Known without the files: a machine that only reads a built dataset needs no mirror.
        digests = [file.sha256 for file in source.files]
        return {**identity, "licence": source.licence, "revision": source.revision, "files": digests}
    return {**identity, "licence": source.licence, **files_of(inputs, declared.name).identity()}
