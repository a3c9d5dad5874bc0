"""What is made of each source for `dataset=paper`: which adapter reads it, which construction pairs it.

The one table of the house from a source's name to its candidates. Importing it costs no torch, and no
construction here runs a model: a live subject's answers are read from `dataset.elicited`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple, TypeVar

from monitorbench.config.base import UserError
from monitorbench.config.datasets import PaperDataset
from monitorbench.config.study import Study
from monitorbench.construct.answers.capitulation import capitulation_pairs
from monitorbench.construct.answers.incentive import incentivised_answers
from monitorbench.construct.answers.labelled import labelled_samples
from monitorbench.construct.answers.preference import preference_pairs
from monitorbench.construct.answers.safety_scorer import fit_safety_scorer
from monitorbench.construct.code.incentive import special_cased_pairs
from monitorbench.construct.code.pair import twin_pairs
from monitorbench.construct.juliet.functions import juliet_twins
from monitorbench.construct.pair import Constructed
from monitorbench.construct.reasoning.cued_solutions import cued_solution_pairs
from monitorbench.construct.reasoning.incentive_solutions import incentivised_solutions
from monitorbench.corpus.code import construction_fingerprint
from monitorbench.corpus.elicited import elicited_identity, elicited_pairs
from monitorbench.records import Category, Cell, Task
from monitorbench.sources import fetch, synthetic
from monitorbench.sources.read import SourceFiles
from monitorbench.sources.safety_permission import (
    betley_insecure,
    cweval,
    cyberseceval,
    diasafety,
    hh_rlhf,
    jailbreakbench,
    juliet,
    openai_rbr,
    sven,
)
from monitorbench.sources.specification_gaming import (
    dfir_metric,
    humaneval,
    mbpp,
    reward_hacking_logs,
    truthfulqa,
)
from monitorbench.sources.sycophancy_bias import gsm8k, sycon_bench

T = TypeVar("T")

_PARTS = {"juliet": 6, "mbpp": 4}
"""Sources that are constructed in parts, so that every core has work."""
_WEIGHTS = {"mbpp": 9, "humaneval": 8, "juliet": 7, "reward_hacking_logs": 3}
_SCORER_SOURCES = ("diasafety", "jailbreakbench", "openai_rbr")
_SUBJECT_SOURCES = ("aime", "anthropic_sycophancy", "bbq", "gpqa", "mmlu")
"""Questions only: their pairs need a subject model's answers."""
_SYNTHETIC_PER_UNIT = 20_000
_ROWS_AT_A_TIME = 2048


class Unit(NamedTuple):
    """A source, or part `part` of `parts` of it (every `parts`-th row)."""

    source: str
    part: int = 0
    parts: int = 1

    @property
    def label(self) -> str:
        """A name for its folder."""
        return self.source if self.parts == 1 else f"{self.source}-{self.part}of{self.parts}"

    @property
    def weight(self) -> int:
        """How long it takes, roughly: the long ones are started first."""
        return _WEIGHTS.get(self.source, 1)


def units(study: Study, dataset: PaperDataset) -> list[Unit]:
    """The units of a dataset, in the order their candidates are read; `UserError` for an unknown source."""
    made = []
    for name in sorted(dataset.ingredients):
        if name not in study.source and name != humaneval.SOURCE:
            known = ", ".join(sorted({*study.source, humaneval.SOURCE}))
            raise UserError(f"dataset.sources.{name}: no such source; conf/source has {known}")
        if name in _SUBJECT_SOURCES and dataset.elicited is None:
            continue
        parts = _PARTS.get(name, 1)
        made += [Unit(name, part, parts) for part in range(parts)]
    parts = -(-dataset.synthetic_samples // _SYNTHETIC_PER_UNIT)
    return made + [Unit(synthetic.SOURCE, part, parts) for part in range(parts)]


def unit_identities(study: Study, dataset: PaperDataset) -> dict[str, Any]:
    """What decides the candidates of every unit, by label."""
    return {unit.label: unit_identity(study, unit) for unit in units(study, dataset)}


def unit_identity(study: Study, unit: Unit) -> dict[str, Any]:
    """What decides a unit's candidates: raw files by checksum, settings that its recipe reads, code."""
    dataset = _paper(study)
    identity: dict[str, Any] = {"unit": unit, "seed": dataset.seed, "code": construction_fingerprint()}
    if unit.source == synthetic.SOURCE:
        return identity | {"samples": dataset.synthetic_samples, "quotas": dataset.corpus_quotas}
    names = [unit.source]
    if unit.source.startswith("hh_rlhf"):
        names += _scorers(dataset)
        identity["filter"] = dataset.preference.model_dump(mode="json")
    if unit.source == "gsm8k":
        identity["cues"] = study.cue.model_dump(mode="json")
    if unit.source in (*_SUBJECT_SOURCES, "gsm8k"):
        identity["elicited"] = elicited_identity(study, dataset)
    identity["on_bad_row"] = dataset.on_bad_row
    return identity | {"sources": [_source_identity(study, name) for name in names]}


def construct(study: Study, unit: Unit, bad_rows: Counter[str]) -> Iterator[Constructed]:
    """The candidates of one unit, piece by piece; rows that its adapters passed over go to `bad_rows`."""
    dataset = _paper(study)
    if unit.source == synthetic.SOURCE:
        quotas = {
            Cell(Category(category), Task(task)): quota
            for category, tasks in dataset.corpus.items()
            for task, quota in tasks.items()
        }
        start = unit.part * _SYNTHETIC_PER_UNIT
        count = min(_SYNTHETIC_PER_UNIT, dataset.synthetic_samples - start)
        yield from (
            Constructed(piece, Counter())
            for piece in _pieces(synthetic.samples(quotas, start, count, dataset.seed))
        )
        return
    if unit.source == humaneval.SOURCE:
        yield _gaming(humaneval.load(), dataset.seed)
        return
    files = _files(study, unit.source)
    yield from _constructed(study, dataset, unit, files)
    if unit.part == 0:  # every part reads all rows
        bad_rows.update(files.bad_rows)


def _constructed(
    study: Study, dataset: PaperDataset, unit: Unit, files: SourceFiles
) -> Iterator[Constructed]:
    name, licence, seed = unit.source, files.source.licence, dataset.seed
    match name:
        case "hh_rlhf" | "hh_rlhf_train":
            scorer_rows = {source: _labelled(study, source) for source in _scorers(dataset)}
            scorer = fit_safety_scorer(scorer_rows, seed=seed) if scorer_rows else None
            rows = list(hh_rlhf.load(files))
            yield preference_pairs(rows, dataset.preference, scorer, source=name, licence=licence)
        case "sven":
            yield twin_pairs(sven.load(files), source=name, licence=licence, seed=seed)
        case "cweval":
            yield twin_pairs(cweval.load(files), source=name, licence=licence, seed=seed)
        case "juliet":
            cases = islice(juliet.load(files), unit.part, None, unit.parts)
            twins, fell = juliet_twins(cases)
            made = twin_pairs(twins, source=name, licence=licence, seed=seed)
            yield Constructed(made.samples, made.fell + fell)
        case "mbpp":
            yield _gaming(islice(mbpp.load(files), unit.part, None, unit.parts), seed)
        case "sycon_bench":
            yield capitulation_pairs(sycon_bench.load(files), source=name, licence=licence)
        case "gsm8k":
            solved = list(gsm8k.load_solved(files))
            yield cued_solution_pairs(solved, study.cue, seed=seed, source=name, licence=licence)
            yield incentivised_solutions(solved, seed=seed, source=name, licence=licence)
            yield elicited_pairs(study, dataset, name, files)
        case "truthfulqa" | "dfir_metric":
            load = truthfulqa.load if name == "truthfulqa" else dfir_metric.load
            yield incentivised_answers(list(load(files)), seed=seed, source=name, licence=licence)
        case _ if name in _SUBJECT_SOURCES:
            yield elicited_pairs(study, dataset, name, files)
        case _:
            for piece in _pieces(_labelled_rows(name, files)):
                yield labelled_samples(piece, source=name, licence=licence)


def _labelled_rows(name: str, files: SourceFiles) -> Iterator[Any]:
    match name:
        case "betley_insecure":
            return betley_insecure.load(files)
        case "cyberseceval":
            return cyberseceval.load(files)
        case "diasafety":
            return diasafety.load(files)
        case "jailbreakbench":
            return jailbreakbench.load(files)
        case "openai_rbr":
            return openai_rbr.load(files)
        case "reward_hacking_logs":
            return reward_hacking_logs.load(files)
    raise UserError(
        f"dataset.sources.{name}: no recipe for this source; leave it out with dataset.sources.{name}=null"
    )


def _gaming(problems: Iterable[Any], seed: int) -> Constructed:
    pairs, counts = special_cased_pairs(list(problems), seed=seed)
    fell = Counter({reason: count for reason, count in counts.items() if not reason.startswith("kept")})
    return Constructed(list(chain.from_iterable(pairs)), fell)


def _labelled(study: Study, name: str) -> list[Any]:
    return list(_labelled_rows(name, _files(study, name)))


def _scorers(dataset: PaperDataset) -> list[str]:
    return [name for name in _SCORER_SOURCES if name in dataset.ingredients]


def _files(study: Study, name: str) -> SourceFiles:
    dataset = _paper(study)
    cache = study.paths.data / ".sources"
    return fetch.find(name, study.source[name], study.paths.sources, cache, dataset.on_bad_row)


def _source_identity(study: Study, name: str) -> dict[str, Any]:
    if name == humaneval.SOURCE:
        try:
            return {"name": name, "sha256": humaneval.fingerprint()}
        except FileNotFoundError as error:
            raise UserError(str(error)) from error
    source = study.source[name]
    if all(file.sha256 for file in source.files):
        # Known without the files: a machine that only reads a built dataset needs no mirror.
        digests = [file.sha256 for file in source.files]
        return {"name": name, "licence": source.licence, "revision": source.revision, "files": digests}
    return {"licence": source.licence, **fetch.identity(_files(study, name))}


def _paper(study: Study) -> PaperDataset:
    if not isinstance(study.dataset, PaperDataset):
        raise UserError(f"dataset={study.dataset.name}: expected dataset=paper or paper_local")
    return study.dataset


def _pieces(rows: Iterable[T]) -> Iterator[list[T]]:
    iterator = iter(rows)
    while piece := list(islice(iterator, _ROWS_AT_A_TIME)):
        yield piece
