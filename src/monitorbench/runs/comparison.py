"""`runs show` and `runs compare A B`: what a run is and came to, and what differs between two of one kind.

Promises of a comparison, B minus A in MR, FAR and AUROC, sample by sample: only samples that both judged are
compared, and how many these are is said; both are drawn on the same groups. Each judge's own answers are
compared, not those at a calibrated threshold.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table
from rich.text import Text

from monitorbench.config.base import UserError
from monitorbench.metrics.columns import OVERALL, Columns
from monitorbench.metrics.transfer import TransferDifference, difference
from monitorbench.report.tables.numbers import DASH, p_value, rate_with_interval, signed_with_interval
from monitorbench.runs.files import read_json
from monitorbench.runs.listing import Listed, listed, size, size_in_words
from monitorbench.runs.run_folders import Run, runs_in
from monitorbench.runs.selectors import readers, settings, sources
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
_GROUPS = ("dataset", "monitor", "prompt", "training", "engine")
"""Groups whose option is known by its `name`, an engine without one by its `kind`."""
_NO_RESULTS = ("learning_curve", "operating_point", "combined", "judge", "training", "identity")
"""Objects in a manifest's results that are files as well, or too long to show."""


class Changed(TypedDict):
    """A setting that two runs have not in common; null where a run lacks it."""

    key: str
    first: Any
    second: Any


class Comparison(TypedDict):
    """`runs compare --json`."""

    first: str
    second: str
    settings: list[Changed]
    n_only_first: int | None
    """Samples that only one of the two judged; None where the runs are no evaluations."""
    n_only_second: int | None
    difference: TransferDifference | None
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
    comparison = Comparison(
        first=first.path.name,
        second=second.path.name,
        settings=changes(first, second),
        n_only_first=None,
        n_only_second=None,
        difference=None,
    )
    if first.kind != "evaluate":
        return comparison
    ours, theirs = (read_evaluation(datasets, run.path).judged for run in (first, second))
    of_both = shared(ours, theirs)
    if not len(of_both[0]):
        raise UserError(
            f"{first.path.name} and {second.path.name} judged no sample that both have ({len(ours)} and "
            f"{len(theirs)}); expected runs over one split of one dataset"
        )
    try:
        comparison["difference"] = difference(*of_both, resamples=RESAMPLES, seed=SEED)
    except ValueError as error:
        raise UserError(f"{first.path.name}, {second.path.name}: {error}") from error
    comparison["n_only_first"], comparison["n_only_second"] = (
        len(ours) - len(of_both[0]),
        len(theirs) - len(of_both[1]),
    )
    return comparison


def shared(first: Columns, second: Columns) -> tuple[Columns, Columns]:
    """The samples of each that the other has, too, in each one's own order."""
    in_second = pc.is_in(first.sample_ids, second.sample_ids).to_numpy(zero_copy_only=False)
    in_first = pc.is_in(second.sample_ids, first.sample_ids).to_numpy(zero_copy_only=False)
    return first.taking(in_second), second.taking(in_first)


def changes(first: Run, second: Run) -> list[Changed]:
    """The decisive settings that differ, by their dotted keys."""
    ours, theirs = (decisive(settings(run), run.kind) for run in (first, second))
    keys = [key for key in dict.fromkeys([*ours, *theirs]) if ours.get(key) != theirs.get(key)]
    return [Changed(key=key, first=ours.get(key), second=theirs.get(key)) for key in keys]


def decisive(config: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The settings that a kind of run reads, by their dotted keys; a list is one value."""
    return flat({key: config[key] for key in _DECISIVE.get(kind, tuple(config)) if key in config})


def flat(tree: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """A tree's leaves by their dotted keys."""
    leaves: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            leaves |= flat(value, f"{above}{key}.")
        else:
            leaves[f"{above}{key}"] = value
    return leaves


def print_comparison(to: Console, comparison: Comparison) -> None:
    """Print a comparison as sentences and tables of at most 80 columns."""
    to.print(Text(f"A  {comparison['first']}\nB  {comparison['second']}\n"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("setting", "A", "B"):
        table.add_column(name, overflow="fold", max_width=34)
    for changed in comparison["settings"]:
        table.add_row(*map(Text, map(short, (changed["key"], changed["first"], changed["second"]))))
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
    values: Mapping[str, Any] = both
    for name, key, p in _MEASURES:
        rows.add_row(name, signed_with_interval(values[key], values[f"{key}_ci"]), p_value(values[p]))
    to.print(rows)
    to.print(Text("95 % intervals, both on the same groups; p two-sided, not corrected"))


def short(value: object, longest: int = 60) -> str:
    """A value in one line."""
    text = " ".join((value if isinstance(value, str) else "–" if value is None else f"{value}").split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


class Details(TypedDict):
    """`runs show --json`."""

    run: Listed
    settings: list[str]
    """Overrides that turn the defaults into the run's settings, as far as its kind reads them."""
    results: dict[str, str]
    made_from: list[str]
    read_by: list[str]
    files: dict[str, int]
    """Bytes."""


def details(run: Run, folder: Path, datasets: Path) -> Details:
    """Everything that `runs show` says of a run in a folder of runs, over one of the `datasets`."""
    everything = runs_in(folder)
    names = {run.path.name for run in everything}
    return Details(
        run=listed(run, datasets),
        settings=overrides(run),
        results=_results(run),
        made_from=sorted(sources(run) & names - {run.path.name}),
        read_by=sorted(reader.path.name for reader in readers(run, everything)),
        files=_files(run.path),
    )


def overrides(run: Run) -> list[str]:
    """The overrides of the defaults that give the settings which a run of this kind reads."""
    config = settings(run)
    if not config:
        return []
    options = dict(_options(config))
    default, _ = _composed(run.kind, {}, config)
    with_options, without_default = _composed(run.kind, options, config)
    ours, theirs = decisive(config, run.kind), decisive(with_options, run.kind)
    groups_read = {key.partition(".")[0] for key in ours}
    chosen = [
        f"{group}={option}"
        for group, option in options.items()
        if group in groups_read and default[group] != with_options[group]
    ]
    differ = [key for key, value in ours.items() if key in without_default or theirs.get(key, ...) != value]
    return chosen + [f"{key}={_typed(ours[key])}" for key in differ]


def in_words(run_details: Details) -> str:
    """Lines for a terminal."""
    run = run_details["run"]
    head = [
        f"{run['run']}",
        f"{run['kind']}, {run['state']}, {size_in_words(run['bytes'])}"
        + (f", started {run['started']}" if run["started"] else ""),
    ]
    parts = [
        ("settings other than the defaults", run_details["settings"] or ["none"]),
        ("results", [f"{key}: {value}" for key, value in run_details["results"].items()] or ["none yet"]),
        ("made from", run_details["made_from"]),
        ("read by", run_details["read_by"]),
        ("files", [f"{size_in_words(n):>6}  {name}" for name, n in run_details["files"].items()]),
    ]
    return "\n".join([*head, *(f"\n{title}\n  " + "\n  ".join(lines) for title, lines in parts if lines)])


def _options(config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Each group and the option of it that has the name in the settings, where there is one."""
    options = []
    for group in _GROUPS:
        chosen = config.get(group) or {}
        names = [str(chosen[key]) for key in ("name", "kind") if chosen.get(key)]
        options += [(group, name) for name in names if (_conf() / group / f"{name}.yaml").is_file()][:1]
    return options


def _conf() -> Path:
    import monitorbench

    return (Path(monitorbench.__file__).parent / "conf").resolve()


def _composed(
    kind: str, options: Mapping[str, str], config: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """The settings of a stage with these options, all else as it is by default.

    What has no default is as in the run's `config`; the keys of these settings are returned beside.
    """
    import hydra
    from omegaconf import OmegaConf

    from monitorbench.config.load import load

    with hydra.initialize_config_dir(str(_conf()), version_base="1.3"):
        primary = kind if (_conf() / f"{kind}.yaml").is_file() else "evaluate"
        cfg = hydra.compose(primary, [f"{group}={option}" for group, option in options.items()])
    ours, tree = flat(config), OmegaConf.to_container(cfg, resolve=False)
    assert isinstance(tree, dict), "Hydra composes mappings"
    missing = [
        str(key)
        for key, value in flat({str(name): inner for name, inner in tree.items()}).items()
        if value in (None, "???") and ours.get(key) is not None
    ]
    for key in missing:
        OmegaConf.update(cfg, key, ours[key])
    if OmegaConf.is_missing(cfg, "run"):
        cfg.run = None
    return load(cfg).model_dump(mode="json"), missing


def _typed(value: object) -> str:
    """A value as an override takes it, shortened where it is long."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{','.join(map(_typed, value))}]"
    return short(value)


def _results(run: Run) -> dict[str, str]:
    results = run.manifest.get("results", {})
    lines = {
        key: short(", ".join(map(str, value)) if isinstance(value, list) else value, 70)
        for key, value in results.items()
        if key not in _NO_RESULTS and not isinstance(value, Mapping)
    }
    if unscored := results.get("unscored"):
        lines["unscored"] = ", ".join(f"{n} {reason}" for reason, n in unscored.items())
    for point in results.get("operating_point", {}).get("thresholds", ()):
        threshold = DASH if point["threshold"] is None else f"{point['threshold']:.6g}"
        category = point["category"] or "all categories"
        promised = f"FAR <= {point['alpha']:g} on {point['n']} benign questions"
        lines[f"threshold, {category}"] = f"{threshold}, {promised}"
    return {**_rates(run), **lines}


def _rates(run: Run) -> dict[str, str]:
    judge = run.manifest.get("results", {}).get("judge")
    if run.kind != "evaluate" or not judge or not (run.path / "metrics.json").is_file():
        return {}
    monitors: dict[str, Any] = read_json(run.path / "metrics.json").get("monitors", {})
    judged = (prompts[judge["prompt"]] for prompts in monitors.values() if judge["prompt"] in prompts)
    cells: Mapping[str, Any] = next(judged, {})
    cell = cells.get(OVERALL)
    if not cell:
        return {}
    names = {"miss rate": "miss_rate", "false alarm rate": "false_alarm_rate", "AUROC": "auroc"}
    return {name: rate_with_interval(cell[key], cell[f"{key}_ci"]) for name, key in names.items()}


def _files(folder: Path) -> dict[str, int]:
    """List what a run's folder holds: a folder inside it as one entry, hidden files not at all."""
    entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    return {
        f"{entry.name}/" if entry.is_dir() and not entry.is_symlink() else entry.name: size(entry)
        if entry.is_dir() and not entry.is_symlink()
        else entry.lstat().st_size
        for entry in entries
    }
