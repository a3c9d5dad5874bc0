"""From a script and Hydra's overrides to the studies that `-m` would run, every one validated."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import yaml
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, flag_override
from omegaconf.errors import OmegaConfBaseException

from monitorbench.cli.refusals import one_line
from monitorbench.cli.stage import Stage
from monitorbench.config.base import ConfigError
from monitorbench.config.project import composing
from monitorbench.config.study import Study


class Point(NamedTuple):
    """One run of a sweep."""

    overrides: tuple[str, ...]
    study: Study


def load_script(path: Path) -> Stage:
    """The main function of a script such as `train/sft.py`; `ConfigError` where it has none."""
    spec = importlib.util.spec_from_file_location(f"script_{path.stem}", path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise ConfigError(f"{path}: no such script; expected one such as train/sft.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    script = getattr(module, "main", None)
    if not isinstance(script, Stage):
        raise ConfigError(f"{path}: no script with a config; expected one such as train/sft.py")
    return script


def expand(script: Stage, overrides: Sequence[str]) -> list[Point]:
    """The runs in the order of `-m`: comma lists, `choice`, `range`, `glob`, and `hydra.sweeper.params`.

    Raises:
        ConfigError: for what doesn't compose or validate, naming the first such run; for two runs
            that are the same; for runs that ask Slurm for unlike machines.

    """
    with composing(script.conf):
        hydra = GlobalHydra.instance().hydra
        assert hydra is not None
        try:
            master = hydra.compose_config(
                script.name, list(overrides), run_mode=RunMode.MULTIRUN, with_log_configuration=False
            )
            sweeper = master.hydra.sweeper
            if sweeper["_target_"] != f"{BasicSweeper.__module__}.{BasicSweeper.__name__}":
                raise ConfigError(f"hydra/sweeper={sweeper['_target_']}: expected hydra/sweeper=basic")
            params = [f"{key}={value}" for key, value in (sweeper.params or {}).items()]
            task = [*params, *master.hydra.overrides.task]
            parsed = OverridesParser.create(config_loader=hydra.config_loader).parse_overrides(task)
            combinations = BasicSweeper.split_arguments(parsed, None)[0]
        except (HydraException, OmegaConfBaseException, yaml.YAMLError) as error:
            raise ConfigError(one_line(error, overrides, script.conf)) from error
        points = []
        for number, combination in enumerate(combinations):
            try:
                cfg: DictConfig = hydra.config_loader.load_sweep_config(master, list(combination))
                with flag_override(
                    cfg, ["struct", "readonly"], False
                ):  # as Hydra does before it calls a script
                    del cfg["hydra"]
                points.append(Point(tuple(combination), script.study_of(cfg)))
            except (HydraException, OmegaConfBaseException, yaml.YAMLError, ConfigError) as error:
                message = (
                    str(error)
                    if isinstance(error, ConfigError)
                    else one_line(error, combination, script.conf)
                )
                raise ConfigError(_where(number, combinations) + message) from error
    if not points:
        raise ConfigError(f"{' '.join(overrides)}: no run at all; expected a sweep over something")
    _refuse_unlike_machines(points)
    _refuse_equal_runs(points)
    return points


def swept(points: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Of each run's overrides those that not all runs share; all, where there is one run."""
    if len(points) == 1:
        return list(points)
    shared = set(points[0]).intersection(*points[1:])
    return [tuple(one for one in point if one not in shared) for point in points]


def _where(number: int, combinations: Sequence[Sequence[str]]) -> str:
    """`run-001 (seed=-1): ` in a sweep, nothing for a single run."""
    if len(combinations) == 1:
        return ""
    own = swept([tuple(combination) for combination in combinations])[number]
    return f"run-{number:03d} ({' '.join(own)}): "


def _refuse_equal_runs(points: Sequence[Point]) -> None:
    """Two runs of one study would write into one directory at the same time."""
    seen: dict[str, int] = {}
    for number, point in enumerate(points):
        first = seen.setdefault(point.study.model_dump_json(exclude={"cluster", "tracking"}), number)
        if first != number:
            raise ConfigError(
                f"run-{first:03d} and run-{number:03d} are the same study: {' '.join(point.overrides)}; "
                "expected every value once"
            )


def _refuse_unlike_machines(points: Sequence[Point]) -> None:
    for number, point in enumerate(points):
        if point.study.cluster != points[0].study.cluster:
            raise ConfigError(
                f"run-{number:03d}: cluster differs from run-000's; expected one kind of machine in a sweep"
            )
        if point.study.paths != points[0].study.paths:
            raise ConfigError(f"run-{number:03d}: paths differ from run-000's; expected the same in a sweep")
