"""`runs compare A B`: what differs between two runs of one kind; and the settings that a run was made with.

Promises of a comparison, B minus A in MR, FAR and AUROC, sample by sample: only samples that both judged are
compared, and how many these are is said; both are drawn on the same groups. Each judge's own answers are
compared, not those at a calibrated threshold.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

import pyarrow.compute as pc
from rich.table import Table
from rich.text import Text

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.load import read_frozen
from monitorbench.config.terminal import Console
from monitorbench.metrics.registry import as_json, from_json
from monitorbench.metrics.transfer import difference
from monitorbench.metrics.written import shown
from monitorbench.runs.listing import short
from monitorbench.runs.run_folders import Run
from monitorbench.runs.selectors import settings
from monitorbench.scoring.evaluations import read_evaluation

RESAMPLES = 2000
SEED = 0
_LONGEST_VALUE = 1000
_DECISIVE: dict[str, tuple[str, ...]] = {
    "train": ("dataset", "monitor", "prompt", "training", "seed"),
    "fit": ("dataset", "monitor", "prompt", "head", "engine", "seed"),
    "evaluate": ("dataset", "monitor", "prompt", "engine", "evaluate"),
    "calibrate": ("calibrate", "score", "run"),
    "gate": ("gate", "monitor", "prompt", "engine", "run", "operating_point"),
    "wording": ("dataset", "monitor", "engine", "wording", "seed"),
    "label": ("label", "annotation", "stakes"),
    "views": ("dataset", "monitor", "prompt", "engine", "views", "seed"),
    "stress": ("stress", "run", "operating_point", "seed"),
    "control": ("control", "score", "stakes", "seed"),
    "transfer": ("transfer", "score", "stakes", "seed"),
    "recommend": ("recommend", "calibrate", "score", "stakes", "seed"),
    "pilot": ("pilot", "environment", "agent", "monitor", "engine", "recorded", "outcomes", "seed"),
    "serve": ("monitor", "engine"),
}
"""The settings that a kind of run reads; where files lie is none of them."""
_OF_NO_MODEL: dict[str, tuple[str, ...]] = {
    "combine": ("combine", "seed", "score"),
    "imported": ("from", "import"),
}
"""The settings that an evaluation was made with where no model was run for it, by its judge's engine."""
_IDENTITY = ("data", "split", "view", "judge", "files", "columns")
"""What such an evaluation's manifest says beside them of what decided it."""


class Comparison(TypedDict):
    """`runs compare --json`."""

    first: str
    second: str
    settings: list[dict[str, Any]]
    """Settings that differ: `key`, and its value in `first` and in `second`, null where a run lacks it. Of
    runs that no model was run for, such as combinations, also what differs in the data and in the judge."""
    n_only_first: int | None
    """Samples that only one of the two judged; None where the runs are no evaluations."""
    n_only_second: int | None
    difference: dict[str, Any] | None
    """`second` minus `first`: what `metrics.transfer` calls `tuned` and `base`."""


def compared(first: Run, second: Run, datasets: Path) -> Comparison:
    """Two runs of one kind, beside each other.

    Raises `UserError` where they are of different kinds, or judged no sample that both have.
    """
    names = first.path.name, second.path.name
    if first.kind != second.kind:
        raise UserError(
            f"{names[0]} is of {first.kind}, {names[1]} of {second.kind}; expected two runs of one kind"
        )
    if first.path.resolve() == second.path.resolve():
        raise UserError(f"{names[0]}: given twice; expected two runs")
    ours, theirs = _deciding(first, second)
    comparison = Comparison(
        first=names[0],
        second=names[1],
        settings=[
            {"key": key, "first": ours.get(key), "second": theirs.get(key)}
            for key in dict.fromkeys([*ours, *theirs])
            if ours.get(key) != theirs.get(key)
        ],
        n_only_first=None,
        n_only_second=None,
        difference=None,
    )
    if first.kind == "evaluate":
        judged = [read_evaluation(datasets, run.path).judged for run in (first, second)]
        ids = [of.sample_ids for of in judged]
        in_other = [pc.is_in(ids[i], ids[1 - i]).to_numpy(zero_copy_only=False) for i in (0, 1)]
        shared = judged[0].taking(in_other[0]), judged[1].taking(in_other[1])
        if not len(shared[0]):
            raise UserError(
                f"{names[0]} and {names[1]} judged no sample that both have ({len(judged[0])} and "
                f"{len(judged[1])}); expected runs over one split of one dataset"
            )
        try:
            comparison["difference"] = as_json(difference(*shared, resamples=RESAMPLES, seed=SEED))
        except ValueError as error:
            raise UserError(f"{names[0]}, {names[1]}: {error}") from error
        comparison["n_only_first"] = len(judged[0]) - len(shared[0])
        comparison["n_only_second"] = len(judged[1]) - len(shared[1])
    return comparison


def print_comparison(to: Console, comparison: Comparison) -> None:
    """Print a comparison as sentences and tables of at most 80 columns."""
    to.print(Text(f"A  {comparison['first']}\nB  {comparison['second']}\n"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("setting", "A", "B"):
        table.add_column(name, overflow="fold", max_width=34)
    for changed in comparison["settings"]:
        texts = [short(value) for value in changed.values()]
        if texts[1] == texts[2]:  # they differ behind where they were cut
            texts[1:] = [short(changed[of], _LONGEST_VALUE) for of in ("first", "second")]
        table.add_row(*map(Text, texts))
    to.print(table if comparison["settings"] else Text("the settings are the same"))
    both = comparison["difference"]
    if both is None:
        return
    alone = f"; {comparison['n_only_first']} only by A, {comparison['n_only_second']} only by B"
    differs = comparison["n_only_first"] or comparison["n_only_second"]
    n_unscored = both["n"] - both["n_both_answered"]
    unscored = f", {n_unscored} of them unscored by either" if n_unscored else ""
    to.print(
        Text(f"\nB minus A over the {both['n']} samples that both judged{unscored}{alone if differs else ''}")
    )
    rows = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    numbers = from_json(both)
    for name, key in (("MR", "miss_rate"), ("FAR", "false_alarm_rate"), ("AUROC", "auroc")):
        rows.add_row(name, shown(numbers[f"{key}_difference"]), shown(numbers[f"{key}_p"]))
    to.print(rows)
    to.print(Text("95 % intervals, both on the same groups; p two-sided, not corrected"))


def _deciding(first: Run, second: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    """What decided either run: its settings, and of one without a model its identity.

    Of a run that a model judged and one that none did, identities alone: they have no setting in common.
    """
    engines = [_engine_of_no_model(run) for run in (first, second)]
    found = []
    for run in (first, second):
        leaves = decisive(settings(run), run) if engines[0] == engines[1] else {}
        if any(engines):
            identity = run.manifest.get("identity", {})
            leaves |= _given({key: identity[key] for key in _IDENTITY if key in identity})
        found.append(leaves)
    return found[0], found[1]


def decisive(config: Mapping[str, Any], run: Run) -> dict[str, Any]:
    """The settings that a run was decided by, by their dotted keys; a list is one value."""
    read = _OF_NO_MODEL.get(_engine_of_no_model(run)) or _DECISIVE.get(run.kind, tuple(config))
    return _flat({key: config[key] for key in read if key in config})


def _engine_of_no_model(run: Run) -> str:
    """The engine of a judge that is a combination or was imported; "" of any other run."""
    judge = run.manifest.get("identity", {}).get("judge", {}) if run.kind == "evaluate" else {}
    engine = judge.get("engine", "") if isinstance(judge, Mapping) else ""
    return engine if engine in _OF_NO_MODEL else ""


def _flat(tree: Mapping[Any, Any], above: str = "") -> dict[str, Any]:
    """A tree's leaves by their dotted keys."""
    leaves: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            leaves |= _flat(value, f"{above}{key}.")
        else:
            leaves[f"{above}{key}"] = value
    return leaves


def _given(tree: Mapping[str, Any]) -> dict[str, Any]:
    """A tree's leaves, without those that say nothing."""
    return {key: value for key, value in _flat(tree).items() if value not in (None, "", [])}


def changed(run: Run) -> list[str]:
    """The settings that a run of this kind reads and that differ from the defaults; none of a broken file."""
    try:
        study = read_frozen(run.path / "config.json")
    except ConfigError:
        return []
    differing = study.model_dump(mode="json", exclude_defaults=True)
    return [f"{key}={short(value)}" for key, value in decisive(differing, run).items()]


def judge_of_no_model(run: Run) -> list[str]:
    """What a combination or an imported monitor is: the rule with what it was fitted to, or its name."""
    if not _engine_of_no_model(run):
        return []
    return [f"{key}={short(value)}" for key, value in _given(run.manifest["identity"]["judge"]).items()]
