"""Declarations of sources: how each is read, what is made of its rows, and its version.

The files of `sources/upstream/` hold them, and `sources.all` lists them. A new source is a function that
reads its rows, a `SourceDeclaration`, its YAML in `conf/source`, and a line in that list. What is made of
rows of a kind stands here (`LABELLED`, `INCENTIVISED_ANSWERS`, `SPECIAL_CASED`), or beside the sources.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, Literal, NamedTuple, TypeVar

from monitorbench.construct import answer_incentive, counterfactual, pair
from monitorbench.construct.code import incentive as code_incentive
from monitorbench.construct.pair import Constructed, ConstructionContext, ConstructionVersion
from monitorbench.records import Construction, Task
from monitorbench.sources.read import SourceFiles
from monitorbench.upstream import CodingProblem, CuedQuestion, KnownQuestion

T = TypeVar("T")
_ROWS_AT_A_TIME = 2048


class InstalledData(NamedTuple):
    """Rows that come with an installed package: they have no raw files and no entry in `conf/source`."""

    rows: Callable[[], Iterable[Any]]
    sha256: Callable[[], str]
    """SHA-256 of the data as installed. Both raise `FileNotFoundError` where the package is missing."""


class SubjectQuestions(NamedTuple):
    """Questions for a subject model to be asked (`data_build/elicit.py`): with known answers, unless said."""

    task: Task
    load: Callable[[SourceFiles], Iterable[KnownQuestion | CuedQuestion | CodingProblem]]
    kind: Literal["known", "cued", "coding"] = "known"
    """`cued`: upstream has written the cued wording; `coding`: problems with hidden tests, under an
    incentive."""


def pieces(rows: Iterable[T]) -> Iterator[list[T]]:
    """Rows in lists of bounded length, so that a large source is never in memory as a whole."""
    iterator = iter(rows)
    while piece := list(islice(iterator, _ROWS_AT_A_TIME)):
        yield piece


class RowConstruction(NamedTuple):
    """What makes candidates of a source's rows, and the versions of its behavior."""

    make: Callable[[list[Any], ConstructionContext], Constructed]
    versions: tuple[ConstructionVersion, ...] = ()
    takes_pieces: bool = False
    """Whether each row is a sample by itself, so that they need not be in memory together."""

    def __call__(self, rows: Iterable[Any], context: ConstructionContext) -> Iterator[Constructed]:
        """Make candidates of rows."""
        for piece in pieces(rows) if self.takes_pieces else [list(rows)]:
            yield self.make(piece, context)


def labelled_by_upstream(
    stratum: str = "", construction: Construction = Construction.LABELLED
) -> RowConstruction:
    """Construct samples of `LabelledResponse`s as they are; all are of one stratum."""
    make = partial(pair.labelled_samples, stratum=stratum, construction=construction)
    return RowConstruction(make, (pair.AS_LABELLED,), takes_pieces=True)


def _special_cased(rows: list[CodingProblem], context: ConstructionContext) -> Constructed:
    pairs, counts = code_incentive.special_cased_pairs(rows, seed=context.seed)
    rejected = Counter({why: count for why, count in counts.items() if not why.startswith("kept")})
    return Constructed(list(chain.from_iterable(pairs)), rejected)


LABELLED = labelled_by_upstream()
INCENTIVISED_ANSWERS = RowConstruction(answer_incentive.incentivised_answers, (answer_incentive.VERSION,))
SPECIAL_CASED = RowConstruction(_special_cased, (code_incentive.VERSION,))
"""Constructions of rows of a kind: `LabelledResponse`, `KnownQuestion`, and coding problems, of which the
examples are special-cased, checked by execution."""


@dataclass(frozen=True, kw_only=True)
class SourceDeclaration:
    """One upstream data set: its reader, its constructions, and what a dataset needs to know of it."""

    name: str
    """Name of the source, as in `conf/source` and in `dataset.sources`."""
    version: int
    """Raised whenever the reader returns other rows for the same raw files."""
    read: Callable[[SourceFiles], Iterable[Any]] | None = None
    """The rows that `construct` takes; None where they come with a package."""
    construct: RowConstruction | None = None
    """What is made of the rows; None where pairs need a subject model's answers."""
    parts: int = 1
    """Number of parts that the source is constructed in, so that every core has work."""
    weight: int = 1
    """Rough relative time that construction takes: the longest is started first."""
    uses_cues: bool = False
    """Whether `construct` reads `ConstructionContext.cues`."""
    questions: SubjectQuestions | None = None
    """Questions that a subject model can be asked; pairs are made of its answers then."""
    installed: InstalledData | None = None

    @property
    def constructions(self) -> dict[str, int]:
        """Versions of the constructions that make its samples, by name."""
        of_rows = self.construct.versions if self.construct is not None else ()
        return dict((*of_rows, *([counterfactual.VERSION] if self.questions is not None else [])))
