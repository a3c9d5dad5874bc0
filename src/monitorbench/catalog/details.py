"""`runs show`: what a run is, the settings that make it, what it came to, its sources and its files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from monitorbench.catalog.comparison import decisive, flat, short
from monitorbench.catalog.found import Run, runs_in
from monitorbench.catalog.links import readers, settings, sources
from monitorbench.catalog.listing import Listed, listed, size, size_in_words
from monitorbench.config.base import ConfigError
from monitorbench.metrics.columns import OVERALL
from monitorbench.report.tables.numbers import DASH, rate_with_interval
from monitorbench.runs.files import read_json

_GROUPS = ("dataset", "monitor", "prompt", "training", "engine")
"""Groups whose option is known by its `name`, an engine without one by its `kind`."""
_NO_RESULTS = ("learning_curve", "operating_point", "combined", "judge", "training", "identity")
"""Objects in a manifest's results that are files as well, or too long to show."""


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


def details(run: Run, folder: Path) -> Details:
    """Everything that `runs show` says of a run in a folder of runs."""
    everything = runs_in(folder)
    known = {other.path.name for other in everything}
    return Details(
        run=listed(run),
        settings=overrides(run),
        results=_results(run),
        made_from=sorted(sources(run) & known - {run.path.name}),
        read_by=sorted(other.path.name for other in readers(run, everything)),
        files=_files(run.path),
    )


def overrides(run: Run) -> list[str]:
    """The overrides of the defaults that give the settings which a run of this kind reads."""
    config = settings(run)
    if not config:
        return []
    groups = dict(_options(config))
    default = _composed(run.kind, {}, config)
    try:
        with_options = _composed(run.kind, groups, config)
    except ConfigError:  # by an older version, whose options were others
        groups, with_options = {}, default
    ours, theirs = decisive(config, run.kind), decisive(with_options.settings, run.kind)
    named = [
        f"{group}={option}"
        for group, option in groups.items()
        if group in _read_by(run.kind, config) and default.settings[group] != with_options.settings[group]
    ]
    differ = [
        key for key, value in ours.items() if key in with_options.given or theirs.get(key, ...) != value
    ]
    return named + [f"{key}={_typed(ours[key])}" for key in differ]


def in_words(found: Details) -> str:
    """Lines for a terminal."""
    run = found["run"]
    head = [
        f"{run['run']}",
        f"{run['kind']}, {run['state']}, {size_in_words(run['bytes'])}"
        + (f", started {run['started']}" if run["started"] else ""),
    ]
    parts = [
        ("settings other than the defaults", found["settings"] or ["none"]),
        ("results", [f"{key}: {value}" for key, value in found["results"].items()] or ["none yet"]),
        ("made from", found["made_from"]),
        ("read by", found["read_by"]),
        ("files", [f"{size_in_words(n):>6}  {name}" for name, n in found["files"].items()]),
    ]
    return "\n".join([*head, *(f"\n{title}\n  " + "\n  ".join(lines) for title, lines in parts if lines)])


def _read_by(kind: str, config: Mapping[str, Any]) -> set[str]:
    return {key.partition(".")[0] for key in decisive(config, kind)}


def _options(config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Each group and the option of it that has the name in the settings, where there is one."""
    conf = _conf()
    found = []
    for group in _GROUPS:
        named = config.get(group) or {}
        options = [str(named[key]) for key in ("name", "kind") if named.get(key)]
        known = [option for option in options if (conf / group / f"{option}.yaml").is_file()]
        if known:
            found.append((group, known[0]))
    return found


def _conf() -> Path:
    import monitorbench

    return (Path(monitorbench.__file__).parent / "conf").resolve()


class _Composed(NamedTuple):
    settings: dict[str, Any]
    given: list[str]
    """Keys without a default, which are as in the run."""


def _composed(kind: str, options: Mapping[str, str], config: Mapping[str, Any]) -> _Composed:
    """The settings of a stage with these options, all else as it is by default.

    Raises `ConfigError` where they are none, even with the run's values of what has no default.
    """
    import hydra
    from omegaconf import OmegaConf

    from monitorbench.config.load import load

    with hydra.initialize_config_dir(str(_conf()), version_base="1.3"):
        primary = kind if (_conf() / f"{kind}.yaml").is_file() else "evaluate"
        cfg = hydra.compose(primary, [f"{group}={option}" for group, option in options.items()])
    if OmegaConf.is_missing(cfg, "run"):
        cfg.run = None
    given = list[str]()
    try:
        study = load(cfg)
    except ConfigError:
        known = flat(config)
        raw: Any = OmegaConf.to_container(cfg, resolve=False)
        given = [
            key for key, value in flat(raw).items() if value in (None, "???") and known.get(key) is not None
        ]
        for key in given:
            OmegaConf.update(cfg, key, known[key])
        study = load(cfg)
    return _Composed(study.model_dump(mode="json"), given)


def _typed(value: object) -> str:
    """A value as an override takes it, shortened where it is long."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{','.join(_typed(one) for one in value)}]"
    return short(value)


def _results(run: Run) -> dict[str, str]:
    results = run.manifest.get("results", {})
    found = {
        key: short(", ".join(map(str, value)) if isinstance(value, list) else value, 70)
        for key, value in results.items()
        if key not in _NO_RESULTS and not isinstance(value, Mapping)
    }
    if unscored := results.get("unscored"):
        found["unscored"] = ", ".join(f"{n} {reason}" for reason, n in unscored.items())
    for one in results.get("operating_point", {}).get("thresholds", ()):
        threshold = DASH if one["threshold"] is None else f"{one['threshold']:.6g}"
        where = one["category"] or "all categories"
        found[f"threshold, {where}"] = f"{threshold}, FAR <= {one['alpha']:g} on {one['n']} benign questions"
    return {**_rates(run), **found}


def _rates(run: Run) -> dict[str, str]:
    judge = run.manifest.get("results", {}).get("judge")
    if run.kind != "evaluate" or not judge or not (run.path / "metrics.json").is_file():
        return {}
    monitors = read_json(run.path / "metrics.json").get("monitors", {})
    found = [by[judge["prompt"]] for by in monitors.values() if judge["prompt"] in by]
    cell = found[0].get(OVERALL) if found else None
    if not cell:
        return {}
    names = {"miss rate": "miss_rate", "false alarm rate": "false_alarm_rate", "AUROC": "auroc"}
    return {name: rate_with_interval(cell[key], cell[f"{key}_ci"]) for name, key in names.items()}


def _files(folder: Path) -> dict[str, int]:
    """What lies in a run's folder: a folder inside it as one, hidden files not at all."""
    entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    return {
        f"{entry.name}/" if entry.is_dir() and not entry.is_symlink() else entry.name: size(entry)
        if entry.is_dir() and not entry.is_symlink()
        else entry.lstat().st_size
        for entry in entries
    }
