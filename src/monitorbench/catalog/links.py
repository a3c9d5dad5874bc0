"""Which runs a run was made from: a transfer study from evaluations, these from trainings and fits.

Folders are compared by name, which ends in a hash: a folder of runs may have been moved since.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from monitorbench.catalog.found import Run

_SETTINGS: dict[str, tuple[str, ...]] = {
    "evaluate": ("monitor.adapter", "monitor.head"),
    "serve": ("monitor.adapter", "operating_point"),
    "pilot": ("monitor.adapter",),
    "calibrate": ("run",),
    "transfer": ("transfer.runs", "transfer.operating_points", "transfer.wordings"),
    "recommend": ("recommend.runs", "recommend.pilot"),
}
"""The settings of each kind that name runs it read."""
_RESULTS = ("judged", "runs", "tested", "episodes", "combined.runs")
"""What a manifest's results say of it, as far as a kind has them."""


def sources(run: Run) -> set[str]:
    """The names of the folders that a run was made from; some of them may be no runs."""
    config = settings(run)
    named = [_at(config, key) for key in _SETTINGS.get(run.kind, ())]
    named += [_at(run.manifest.get("results", {}), key) for key in _RESULTS]
    return {name for value in named for path in _strings(value) for name in _names(Path(path))}


def readers(run: Run, others: Sequence[Run]) -> list[Run]:
    """The other runs that were made from this one."""
    return [other for other in others if other.path != run.path and run.path.name in sources(other)]


def settings(run: Run) -> Mapping[str, Any]:
    """A run's `config.json`; empty where it has none that can be read."""
    try:
        found = json.loads((run.path / "config.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _names(path: Path) -> Iterator[str]:
    """What may be the run's name: an adapter is a folder inside it, a sweep's link leads to it."""
    for one in (path, path.resolve()) if path.is_symlink() else (path,):
        yield from (one.name, one.parent.name)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (one for one in value if isinstance(one, str))


def _at(tree: Any, key: str) -> Any:
    for part in key.split("."):
        tree = tree.get(part) if isinstance(tree, Mapping) else None
    return tree
