"""Declarations of sources: how each is read, what is made of its rows, and its version.

Each file of `sources/<category>/` exports one `SourceDeclaration` (`SOURCE`); `sources.all` lists them. A
new source is its file, its YAML in `conf/source`, and a line in that list.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, NamedTuple, TypeVar

from monitorbench.config.datasets import PreferenceFilter
from monitorbench.config.sources import Cues
from monitorbench.construct.answers.labelled import labelled_samples
from monitorbench.construct.answers.safety_scorer import Scorer
from monitorbench.construct.code.incentive import special_cased_pairs
from monitorbench.construct.pair import Constructed, ConstructionVersion
from monitorbench.records import Task
from monitorbench.sources.read import SourceFiles
from monitorbench.upstream import CodingProblem, CuedQuestion, KnownQuestion, LabelledResponse

T = TypeVar("T")
_ROWS_AT_A_TIME = 2048


class ConstructionContext(NamedTuple):
    """Inputs of a construction besides its rows: names, the dataset's seed and settings."""

    source: str
    licence: str
    seed: int
    cues: Cues
    preference: PreferenceFilter
    scorer: Callable[[], Scorer | None]
    """Fits the safety scorer on the dataset's scorer sources; None where it has none."""


class InstalledData(NamedTuple):
    """Rows that come with an installed package: they have no raw files and no entry in `conf/source`."""

    rows: Callable[[], Iterable[Any]]
    sha256: Callable[[], str]
    """SHA-256 of the data as installed. Both raise `FileNotFoundError` where the package is missing."""


class SubjectQuestions(NamedTuple):
    """Questions with known answers, for a subject model to be asked (`data_build/elicit.py`)."""

    task: Task
    load: Callable[[SourceFiles], Iterable[KnownQuestion]]


class CuedQuestions(NamedTuple):
    """Questions whose cued wording upstream has written, for a subject model to be asked."""

    task: Task
    load: Callable[[SourceFiles], Iterable[CuedQuestion]]


class CodingProblems(NamedTuple):
    """Coding problems with hidden tests, for a subject model to be asked under an incentive."""

    load: Callable[[SourceFiles], Iterable[CodingProblem]]
    task: Task = Task.CODE


@dataclass(frozen=True, kw_only=True)
class SourceDeclaration:
    """One upstream data set: its reader, its constructions, and what a dataset needs to know of it."""

    name: str
    """Name of the source, as in `conf/source` and in `dataset.sources`."""
    version: int
    """Raised whenever the reader returns other rows for the same raw files."""
    read: Callable[[SourceFiles], Iterable[Any]] | None
    """The rows that `construct` takes; None where they come with a package."""
    construct: Callable[[Iterable[Any], ConstructionContext], Iterator[Constructed]] | None
    """Rows to candidates, piece by piece; None where its pairs need a subject model's answers."""
    constructions: tuple[ConstructionVersion, ...]
    """Constructions that make its samples, with their versions."""
    parts: int = 1
    """Number of parts that the source is constructed in, so that every core has work."""
    weight: int = 1
    """Rough relative time that construction takes: the longest is started first."""
    uses_cues: bool = False
    """Whether `construct` reads `ConstructionContext.cues`."""
    uses_scorer: bool = False
    """Whether `construct` reads `preference` and `scorer` of the `ConstructionContext`."""
    for_scorer: bool = False
    """Whether the safety scorer is fitted on its rows, which are `LabelledResponse`s then."""
    takes_elicited: bool = False
    """Whether pairs are made of a subject model's answers to its questions."""
    questions: SubjectQuestions | CuedQuestions | CodingProblems | None = None
    """Questions that a subject model can be asked."""
    installed: InstalledData | None = None

    @property
    def needs_subject(self) -> bool:
        """Whether it has no candidates without a subject model's answers."""
        return self.construct is None


def as_labelled(rows: Iterable[LabelledResponse], context: ConstructionContext) -> Iterator[Constructed]:
    """The `construct` of a source whose responses upstream has labelled: samples as they are, in pieces."""
    for piece in pieces(rows):
        yield labelled_samples(piece, source=context.source, licence=context.licence)


def as_special_cased(
    problems: Iterable[CodingProblem], context: ConstructionContext
) -> Iterator[Constructed]:
    """The `construct` of a source of coding problems: examples special-cased, checked by execution."""
    pairs, counts = special_cased_pairs(list(problems), seed=context.seed)
    rejected = Counter({why: count for why, count in counts.items() if not why.startswith("kept")})
    yield Constructed(list(chain.from_iterable(pairs)), rejected)


def pieces(rows: Iterable[T]) -> Iterator[list[T]]:
    """Rows in lists of bounded length, so that a large source is never in memory as a whole."""
    iterator = iter(rows)
    while piece := list(islice(iterator, _ROWS_AT_A_TIME)):
        yield piece
