"""The audit of a built dataset: `card.md` and `audit.json` in its directory.

Counts, lengths, sources, licences and shares of every split and cell, what was rejected while it was built,
what is short, and the shortcut checks, of each cell and of each stratum of it that has 20 samples of each
label. What a shortcut gives away is marked, at the top and with the rule that does.
"""

import logging
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from rich.table import Table
from rich.text import Text

from monitorbench.config.study import Monitor, Study
from monitorbench.config.terminal import Console
from monitorbench.corpus.build import ensure
from monitorbench.corpus.card import card
from monitorbench.corpus.columns import some_groups
from monitorbench.corpus.store import read_split
from monitorbench.corpus.surface import CHECKED_PER_CELL, samples_by_cell, shortcuts_of
from monitorbench.corpus.texts import request_text, response_text
from monitorbench.metrics.columns import stratum_name
from monitorbench.metrics.marks import (
    MARK,
    NO_STRATUM,
    SHORT_WORDS,
    SIGN,
    SURFACES,
    ShortcutMarks,
    SurfaceCheck,
    in_words,
    shown_name,
)
from monitorbench.records import Sample, Split
from monitorbench.runs.directory import read_finished, record_files
from monitorbench.runs.files import write_atomically, write_json
from monitorbench.runs.progress import progress

_log = logging.getLogger(__name__)

_MEASURED_PER_CELL = 1000
_PRINTED = tuple(surface for surface in SURFACES if surface != "source")
"""Checks of the terminal's table, which has 80 columns; the card has all."""


class StratumFacts(TypedDict):
    """One stratum of one cell of one split."""

    samples: int
    pairs: int
    shortcuts: ShortcutMarks | None
    """Checks of the stratum; None where it has too few samples of a label."""


class CellFacts(TypedDict):
    """One cell of one split."""

    samples: int
    pairs: int
    groups: int
    labels: dict[str, int]
    sources: dict[str, int]
    licences: dict[str, int]
    constructions: dict[str, int]
    strata: dict[str, StratumFacts]
    """Strata of a cell that has several; samples without a stratum count under the empty name."""
    with_thinking: int
    tokens: dict[str, float]
    """Median, 95th percentile and maximum of request and response together, of up to 1,000 samples."""
    shortcuts: ShortcutMarks
    """Checks of up to 3,000 samples, whole groups by hash; of the headline stratum, where the cell has one. A
    test split that is made apart from its train split is also checked by classifiers fitted on the latter."""


def audit(study: Study) -> Path:
    """Audit the study's dataset, building it where it is not there; returns its directory."""
    directory = ensure(study)
    manifest = read_finished(directory)
    built = [split for split in Split if split in manifest["results"]["splits"]]
    count = _token_counter(study.monitor, study.paths.models)
    headline = manifest["results"].get("headline", {})
    facts: dict[str, dict[str, CellFacts]] = {}
    # Where all splits are shares of one pool, fitting on one of them shows what cross-validation does.
    is_made_apart = "constructed" in manifest["results"] and Split.TRAIN in built
    train = _checked(read_split(directory, Split.TRAIN)) if is_made_apart else {}
    for split in built:
        cells, facts[split.value] = samples_by_cell(read_split(directory, split)), {}
        fitted_on = train if split is Split.TEST else {}
        with progress(f"data: audit {split}", len(cells)) as ticker:
            for cell, members in cells.items():
                facts[split.value][cell] = _facts(members, headline.get(cell), count, fitted_on.get(cell, []))
                ticker.advance()
    marked = [
        f"{split}: {shown_name(name)} by {in_words(surface, check)}"
        for split, of_cells in facts.items()
        for name, shortcuts in _all_shortcuts(of_cells).items()
        for surface, check in shortcuts["checks"].items()
        if check["marked"]
    ]
    report = {"tokenizer": study.monitor.name, "marked": marked, "splits": facts}
    write_json(directory / "audit.json", report)
    write_atomically(directory / "card.md", card(directory.name, manifest, report))
    record_files(directory, "audit.json", "card.md")
    _print(facts, marked)
    _log.info("data card: %s", directory / "card.md")
    return directory


def _all_shortcuts(cells: Mapping[str, CellFacts]) -> dict[str, ShortcutMarks]:
    """The checks of each cell, and of those of its strata that have any."""
    by_name: dict[str, ShortcutMarks] = {}
    for cell, facts in cells.items():
        by_name[cell] = facts["shortcuts"]
        for stratum, of in facts["strata"].items():
            if of["shortcuts"] is not None:
                by_name[stratum_name(cell, stratum)] = of["shortcuts"]
    return by_name


def _checked(samples: Sequence[Sample]) -> dict[str, list[Sample]]:
    """Samples of each cell that are enough to check it."""
    return {cell: _some(members, CHECKED_PER_CELL) for cell, members in samples_by_cell(samples).items()}


def _facts(members: Sequence[Sample], headline: str | None, count: Any, train: Sequence[Sample]) -> CellFacts:
    tokens = sorted(count([_whole(sample) for sample in _some(members, _MEASURED_PER_CELL)]))
    cell = str(members[0].cell)
    checked = shortcuts_of(_some(members, CHECKED_PER_CELL), headline=headline, train=train)
    strata = _counts(sample.stratum for sample in members)
    return CellFacts(
        samples=len(members),
        pairs=_n_pairs(members),
        groups=len({sample.group_id for sample in members}),
        labels=_counts(sample.label.value for sample in members),
        sources=_counts(sample.source for sample in members),
        licences=_counts(sample.licence for sample in members),
        constructions=_counts(sample.construction.value for sample in members),
        strata={
            stratum: StratumFacts(
                samples=n,
                pairs=_n_pairs([sample for sample in members if sample.stratum == stratum]),
                shortcuts=checked.get(stratum_name(cell, stratum)),
            )
            for stratum, n in strata.items()
            if len(strata) > 1
        },
        with_thinking=sum(sample.has_thinking for sample in members),
        tokens={
            "median": statistics.median(tokens),
            "p95": tokens[int(0.95 * (len(tokens) - 1))],
            "max": tokens[-1],
        },
        shortcuts=checked[cell],
    )


def _n_pairs(members: Sequence[Sample]) -> int:
    sizes = Counter(sample.pair_id for sample in members)
    return sum(1 for size in sizes.values() if size == 2)


def _whole(sample: Sample) -> str:
    return f"{request_text(sample)}\n{response_text(sample)}"


def _counts(values: Any) -> dict[str, int]:
    return dict(sorted(Counter(values).items(), key=lambda item: (-item[1], item[0])))


def _some(samples: Sequence[Sample], limit: int) -> list[Sample]:
    """Whole groups by hash, until there are `limit` samples."""
    return [samples[row] for row in some_groups([sample.group_id for sample in samples], limit)]


def _token_counter(monitor: Monitor, models: Path) -> Any:
    """Counts tokens with the monitor's own tokenizer; the renderer's template is not counted."""
    from tokenizers import Tokenizer

    from monitorbench.engines.weights import weights_folder

    tokenizer = Tokenizer.from_file(str(weights_folder(monitor, models) / "tokenizer.json"))

    def count(texts: Sequence[str]) -> list[int]:
        return [
            len(encoding.ids) for encoding in tokenizer.encode_batch(list(texts), add_special_tokens=False)
        ]

    return count


def _print(facts: Mapping[str, Mapping[str, CellFacts]], marked: Sequence[str]) -> None:
    console = Console(width=80)
    for line in marked:
        console.print(f"MARKED {line}", style="bold", markup=False, highlight=False)
    for split, cells in facts.items():
        title = f"{split}: AUROC of what needs no reading ({SIGN} its lower bound exceeds {MARK:.2f})"
        table = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0))
        table.add_column("cell", overflow="fold")
        for name in ("samples", *(SHORT_WORDS[surface] for surface in _PRINTED)):
            table.add_column(name, justify="right", no_wrap=True)
        category = ""
        for cell, of in cells.items():
            if category != (category := cell.partition("/")[0]):
                table.add_row(Text(category, style="bold"))
            table.add_row(*_row(f" {cell.partition('/')[2]}", of, of["shortcuts"]))
            for stratum, of_stratum in of["strata"].items():
                table.add_row(*_row(f"  {stratum or NO_STRATUM}", of_stratum, of_stratum["shortcuts"]))
        console.print(table)


def _row(name: str, facts: CellFacts | StratumFacts, found: ShortcutMarks | None) -> list[Text]:
    """A row of the table; `found` is None where nothing could be checked."""
    checks = [_shown(found["checks"][surface]) if found else "" for surface in _PRINTED]
    return [Text(text) for text in (name, str(facts["samples"]), *checks)]


def _shown(check: SurfaceCheck) -> str:
    """An AUROC in at most five characters, the last one for the mark."""
    value = "–" if check["auroc"] is None else f"{check['auroc']:.2f}".removeprefix("0")
    return value + (SIGN if check["marked"] else " ")
