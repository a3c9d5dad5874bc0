"""`runs compare A B`: what differs in the settings, and B minus A in MR, FAR and AUROC, sample by sample.

Promises: only samples that both judged are compared, and how many these are is said; both are drawn on the
same groups. Each judge's own answers are compared, not those at a calibrated threshold.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table
from rich.text import Text

from monitorbench.catalog.found import Run
from monitorbench.catalog.links import settings
from monitorbench.config.base import UserError
from monitorbench.metrics.columns import Columns
from monitorbench.metrics.transfer import Difference, difference
from monitorbench.report.tables.numbers import p_value, signed_with_interval
from monitorbench.scoring.evaluations import read_evaluation

RESAMPLES = 2000
SEED = 0
_DECISIVE: dict[str, tuple[str, ...]] = {
    "train": ("dataset", "monitor", "prompt", "training", "seed"),
    "fit": ("dataset", "monitor", "prompt", "head", "engine", "seed"),
    "evaluate": ("dataset", "monitor", "prompt", "engine", "evaluate"),
    "calibrate": ("calibrate", "score", "run"),
    "gate": ("gate", "monitor", "prompt", "engine", "run", "operating_point"),
    "wording": ("dataset", "monitor", "engine", "wording", "seed"),
    "stress": ("stress", "run", "operating_point", "seed"),
    "transfer": ("transfer", "score", "stakes", "seed"),
    "pilot": ("pilot", "environment", "agent", "monitor", "engine", "recorded", "outcomes", "seed"),
    "serve": ("monitor", "engine"),
}
"""The settings that a kind of run reads; where files lie is none of them."""
_MEASURES = (
    ("MR", "miss_rate_difference", "miss_rate_p"),
    ("FAR", "false_alarm_rate_difference", "false_alarm_rate_p"),
    ("AUROC", "auroc_difference", "auroc_p"),
)


class Changed(NamedTuple):
    """A setting that two runs have not in common; None where a run lacks it."""

    key: str
    first: Any
    second: Any


class Comparison(TypedDict):
    """`runs compare --json`."""

    first: str
    second: str
    settings: list[dict[str, Any]]
    n_only_first: int | None
    """Samples that only one of the two judged; None where the runs are no evaluations."""
    n_only_second: int | None
    difference: Difference | None
    """`second` minus `first`: what metrics call `tuned` and `base`."""


def compared(first: Run, second: Run, datasets: Path) -> Comparison:
    """Two runs of one kind, beside each other.

    Raises `UserError` where they are of different kinds, or judged no sample that both have.
    """
    if first.kind != second.kind:
        raise UserError(
            f"{first.path.name} is of {first.kind}, {second.path.name} of {second.kind}; expected two runs "
            "of one kind"
        )
    if first.path.resolve() == second.path.resolve():
        raise UserError(f"{first.path.name}: given twice; expected two runs")
    changed = [one._asdict() for one in changes(first, second)]
    made = Comparison(
        first=first.path.name,
        second=second.path.name,
        settings=changed,
        n_only_first=None,
        n_only_second=None,
        difference=None,
    )
    if first.kind != "evaluate":
        return made
    ours, theirs = (read_evaluation(datasets, run.path).judged for run in (first, second))
    of_both = shared(ours, theirs)
    if not len(of_both[0]):
        raise UserError(
            f"{first.path.name} and {second.path.name} judged no sample that both have ({len(ours)} and "
            f"{len(theirs)}); expected runs over one split of one dataset"
        )
    try:
        made["difference"] = difference(*of_both, resamples=RESAMPLES, seed=SEED)
    except ValueError as error:
        raise UserError(f"{first.path.name}, {second.path.name}: {error}") from error
    made["n_only_first"], made["n_only_second"] = len(ours) - len(of_both[0]), len(theirs) - len(of_both[1])
    return made


def shared(first: Columns, second: Columns) -> tuple[Columns, Columns]:
    """The samples of each that the other has, too, in each one's own order."""
    in_second = pc.is_in(first.sample_ids, second.sample_ids).to_numpy(zero_copy_only=False)
    in_first = pc.is_in(second.sample_ids, first.sample_ids).to_numpy(zero_copy_only=False)
    return first.taking(in_second), second.taking(in_first)


def changes(first: Run, second: Run) -> list[Changed]:
    """The decisive settings that differ, by their dotted keys."""
    ours, theirs = (decisive(settings(run), run.kind) for run in (first, second))
    keys = dict.fromkeys([*ours, *theirs])
    return [Changed(key, ours.get(key), theirs.get(key)) for key in keys if ours.get(key) != theirs.get(key)]


def decisive(config: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The settings that a kind of run reads, by their dotted keys; a list is one value."""
    return flat({key: config[key] for key in _DECISIVE.get(kind, tuple(config)) if key in config})


def flat(tree: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """A tree's leaves by their dotted keys."""
    found: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            found |= flat(value, f"{above}{key}.")
        else:
            found[f"{above}{key}"] = value
    return found


def print_comparison(to: Console, found: Comparison) -> None:
    """In words and tables of at most 80 columns."""
    to.print(Text(f"A  {found['first']}\nB  {found['second']}\n"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("setting", "A", "B"):
        table.add_column(name, overflow="fold", max_width=34)
    for one in found["settings"]:
        table.add_row(*(Text(short(one[key])) for key in ("key", "first", "second")))
    to.print(table if found["settings"] else Text("the settings are the same"))
    both = found["difference"]
    if both is None:
        return
    alone = f"; {found['n_only_first']} only by A, {found['n_only_second']} only by B"
    differs = found["n_only_first"] or found["n_only_second"]
    n_unscored = both["n"] - both["n_both_answered"]
    unscored = f", {n_unscored} of them unscored by either" if n_unscored else ""
    to.print(
        Text(f"\nB minus A over the {both['n']} samples that both judged{unscored}{alone if differs else ''}")
    )
    rows = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    values: Mapping[str, Any] = both
    for name, key, p in _MEASURES:
        rows.add_row(name, signed_with_interval(values[key], values[f"{key}_ci"]), p_value(values[p]))
    to.print(rows)
    to.print(Text("95 % intervals, both on the same groups; p two-sided, not corrected"))


def short(value: object, longest: int = 60) -> str:
    """A value in one line."""
    text = " ".join((value if isinstance(value, str) else "–" if value is None else f"{value}").split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
