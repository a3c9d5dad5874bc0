"""The audit of a built dataset: `card.md` and `audit.json` in its directory.

Counts, lengths, sources, licences and shares of every split and cell, what was rejected while it was
built, what is short, and the surface checks. A cell that its surface gives away is named at the top.
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
from monitorbench.corpus.surface import SURFACES, Surface, SurfaceCheck, surface_checks
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
    with progress("data: audit", len(built)) as ticker:
        for split in built:
            facts[split.value] = _facts(read_split(directory, split), study.dataset.seed, count)
            ticker.advance()
    leaking = [
        f"{split}: {cell} by {surface} ({check['auroc']:.2f})"
        for split, cells in facts.items()
        for cell, cell_facts in cells.items()
        for surface, check in cell_facts["surface"].items()
        if check["leaks"]
    ]
    report = {"tokenizer": study.monitor.name, "leaks": leaking, "splits": facts}
    write_json(directory / "audit.json", report)
    write_atomically(directory / "card.md", card(directory.name, manifest, report))
    record_files(directory, "audit.json", "card.md")
    _print(facts, leaking)
    _log.info("data card: %s", directory / "card.md")
    return directory


def _facts(samples: Sequence[Sample], seed: int, count: Any) -> dict[str, CellFacts]:
    by_cell: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        by_cell[str(sample.cell)].append(sample)
    facts: dict[str, CellFacts] = {}
    for cell, members in sorted(by_cell.items()):
        checked = _some(members, _CHECKED_PER_CELL)
        tokens = sorted(count([_whole(sample) for sample in _some(members, _MEASURED_PER_CELL)]))
        labels = Counter(sample.pair_id for sample in members)
        facts[cell] = CellFacts(
            samples=len(members),
            pairs=sum(1 for size in labels.values() if size == 2),
            groups=len({sample.group_id for sample in members}),
            labels=_counts(sample.label.value for sample in members),
            sources=_counts(sample.source for sample in members),
            licences=_counts(sample.licence for sample in members),
            constructions=_counts(sample.construction.value for sample in members),
            with_thinking=sum(sample.has_thinking for sample in members),
            tokens={
                "median": statistics.median(tokens),
                "p95": tokens[int(0.95 * (len(tokens) - 1))],
                "max": tokens[-1],
            },
            surface=surface_checks(checked, seed=seed)[cell],
        )
    return facts


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


def _print(facts: Mapping[str, Mapping[str, CellFacts]], leaking: Sequence[str]) -> None:
    console = Console(width=80)
    for line in leaking:
        console.print(f"LEAKS {line}", style="bold", markup=False)
    for split, cells in facts.items():
        table = Table(title=f"{split}: AUROC of the surface alone", title_justify="left", box=None)
        table.add_column("cell")
        for name in ("samples", "pairs", "tokens", *SURFACES):
            table.add_column(name.replace("_", " "), justify="right")
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
