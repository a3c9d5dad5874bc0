"""The audit of a built dataset: `card.md` and `audit.json` in its directory.

Counts, lengths, sources, licences and shares of every split and cell, what was rejected while it was built,
what is short, and the shortcut checks. A cell that a shortcut gives away is marked, at the top and with the
rule that does. On two cores it takes some ten minutes for `paper_local`, half a minute for `starter`.
"""

import hashlib
import logging
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from rich.console import Console
from rich.table import Table

from monitorbench.config.study import Monitor, Study
from monitorbench.corpus.build import ensure
from monitorbench.corpus.card import card
from monitorbench.corpus.store import read_split
from monitorbench.corpus.surface import IN_WORDS, SURFACES, Surface, SurfaceCheck, surface_checks
from monitorbench.corpus.texts import request_text, response_text
from monitorbench.records import Sample, Split
from monitorbench.runs.directory import read_finished, record_files
from monitorbench.runs.files import write_atomically, write_json
from monitorbench.runs.progress import progress

_log = logging.getLogger(__name__)

_CHECKED_PER_CELL = 3000
_MEASURED_PER_CELL = 1000


class CellFacts(TypedDict):
    """One cell of one split."""

    samples: int
    pairs: int
    groups: int
    labels: dict[str, int]
    sources: dict[str, int]
    licences: dict[str, int]
    constructions: dict[str, int]
    strata: dict[str, int]
    with_thinking: int
    tokens: dict[str, float]
    """Median, 95th percentile and maximum of request and response together, of up to 1,000 samples."""
    surface: Mapping[Surface, SurfaceCheck]
    """Of up to 3,000 samples, whole groups by hash."""


def audit(study: Study) -> Path:
    """Audit the study's dataset, building it where it is not there; returns its directory."""
    directory = ensure(study)
    manifest = read_finished(directory)
    built = [split for split in Split if split in manifest["results"]["splits"]]
    count = _token_counter(study.monitor, study.paths.models)
    facts: dict[str, dict[str, CellFacts]] = {}
    for split in built:
        cells, facts[split.value] = _by_cell(read_split(directory, split)), {}
        with progress(f"data: audit {split}", len(cells)) as ticker:
            for cell, members in sorted(cells.items()):
                facts[split.value][cell] = _facts(members, study.dataset.seed, count)
                ticker.advance()
    marked = [
        f"{split}: {cell} by {IN_WORDS[surface]} ({check['auroc']:.2f}): {check['rule']}"
        for split, cells in facts.items()
        for cell, cell_facts in cells.items()
        for surface, check in cell_facts["surface"].items()
        if check["marked"]
    ]
    report = {"tokenizer": study.monitor.name, "marked": marked, "splits": facts}
    write_json(directory / "audit.json", report)
    write_atomically(directory / "card.md", card(directory.name, manifest, report))
    record_files(directory, "audit.json", "card.md")
    _print(facts, marked)
    _log.info("data card: %s", directory / "card.md")
    return directory


def _by_cell(samples: Sequence[Sample]) -> dict[str, list[Sample]]:
    by_cell: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        by_cell[str(sample.cell)].append(sample)
    return by_cell


def _facts(members: Sequence[Sample], seed: int, count: Any) -> CellFacts:
    tokens = sorted(count([_whole(sample) for sample in _some(members, _MEASURED_PER_CELL)]))
    pairs = Counter(sample.pair_id for sample in members)
    (surface,) = surface_checks(_some(members, _CHECKED_PER_CELL), seed=seed).values()
    return CellFacts(
        samples=len(members),
        pairs=sum(1 for size in pairs.values() if size == 2),
        groups=len({sample.group_id for sample in members}),
        labels=_counts(sample.label.value for sample in members),
        sources=_counts(sample.source for sample in members),
        licences=_counts(sample.licence for sample in members),
        constructions=_counts(sample.construction.value for sample in members),
        strata=_counts(sample.stratum for sample in members if sample.stratum),
        with_thinking=sum(sample.has_thinking for sample in members),
        tokens={
            "median": statistics.median(tokens),
            "p95": tokens[int(0.95 * (len(tokens) - 1))],
            "max": tokens[-1],
        },
        surface=surface,
    )


def _whole(sample: Sample) -> str:
    return f"{request_text(sample)}\n{response_text(sample)}"


def _counts(values: Any) -> dict[str, int]:
    return dict(sorted(Counter(values).items(), key=lambda item: (-item[1], item[0])))


def _some(samples: Sequence[Sample], limit: int) -> list[Sample]:
    """Whole groups in the order of a hash, until there are `limit` samples."""
    groups: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        groups[sample.group_id].append(sample)
    taken: list[Sample] = []
    for group in sorted(groups, key=lambda name: hashlib.sha256(name.encode()).digest()):
        if taken and len(taken) + len(groups[group]) > limit:
            continue
        taken += groups[group][:limit]
    return taken


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
        console.print(f"MARKED {line}", style="bold", markup=False)
    for split, cells in facts.items():
        table = Table(title=f"{split}: AUROC of what needs no reading", title_justify="left", box=None)
        table.add_column("cell")
        for name in ("samples", "pairs", "tokens", *(IN_WORDS[surface] for surface in SURFACES)):
            table.add_column(name, justify="right")
        for cell, cell_facts in cells.items():
            checks = [cell_facts["surface"][surface] for surface in SURFACES]
            table.add_row(
                cell,
                str(cell_facts["samples"]),
                str(cell_facts["pairs"]),
                f"{cell_facts['tokens']['median']:.0f}",
                *(f"{check['auroc']:.2f}" if check["auroc"] is not None else "-" for check in checks),
            )
        console.print(table)
