"""Hydra's command line and its sweeps: the order of arguments, and the line before each run."""

import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from hydra.conf import HydraConf
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from hydra.types import RunMode

_log = logging.getLogger(__name__)

_TAKE_A_VALUE = frozenset(
    "--config-dir -cd --config-path -cp --config-name -cn --package -p --cfg -c --experimental-rerun".split()
)
"""Flags of Hydra's whose value follows, which may look like an override."""
_MAY_TAKE_A_VALUE = frozenset({"--info", "-i", "--shell-completion", "-sc"})
"""Flags of Hydra's that may have a value behind them."""

PRINTING = frozenset(
    "--cfg -c --info -i --shell-completion -sc --hydra-help --version --experimental-rerun".split()
)
"""Flags of Hydra's with which it composes nothing that is run."""


def split_flags(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Overrides, and Hydra's flags with their values: its parser takes overrides only in one row."""
    overrides, flags = list[str](), list[str]()
    before = ""
    for argument in arguments:
        is_value = before in _TAKE_A_VALUE or (before in _MAY_TAKE_A_VALUE and "=" not in argument)
        (flags if is_value or argument.startswith("-") else overrides).append(argument)
        before = "" if is_value else argument
    return overrides, flags


def flag_value(arguments: Sequence[str], *names: str) -> str | None:
    """The value of a flag, behind it or behind its `=`; of a flag given twice the last, None without it."""
    value = None
    for argument, following in itertools.pairwise([*arguments, ""]):
        name, is_joined, joined = argument.partition("=")
        if name in names:
            value = joined if is_joined else following
    return value


def is_searching(settings: HydraConf) -> bool:
    """Whether these settings of Hydra's are of a sweep whose sweeper wants a value of each run."""
    target = str(settings.sweeper["_target_"])
    return settings.mode is RunMode.MULTIRUN and not target.endswith(".BasicSweeper")


def run_overrides(overrides: Sequence[str], params: Mapping[str, str] | None = None) -> list[list[str]]:
    """The overrides of each run that a grid sweep comes to, in the order of Hydra's basic sweeper.

    `params` are those of `hydra.sweeper.params`. A pattern (`glob`) is looked up where Hydra is initialised.
    Raises Hydra's `OverrideParseException` for what it can't read, `HydraException` for an interval.
    """
    values = {
        override.get_key_element(): _values(override)
        for override in _parsed([*(f"{key}={value}" for key, value in (params or {}).items()), *overrides])
    }
    return [list(words) for words in itertools.product(*values.values())]


def first_run(overrides: Sequence[str]) -> list[str]:
    """The overrides of a sweep's first run; what a search would draw from an interval is left out."""
    searched = [override.input_line for override in _parsed(overrides) if _is_interval(override)]
    return run_overrides([word for word in overrides if word not in searched])[0]


def _is_interval(override: Override) -> bool:
    return override.is_sweep_override() and not override.is_discrete_sweep()


def _values(override: Override) -> list[str]:
    key = override.get_key_element()
    if not override.is_sweep_override():
        return [f"{key}={override.get_value_element_as_str()}"]
    if _is_interval(override):
        raise HydraException(f"{override.input_line}: no grid; expected choice(…) or range(…)")
    return [f"{key}={value}" for value in override.sweep_string_iterator()]


def _parsed(overrides: Sequence[str]) -> list[Override]:
    hydra = GlobalHydra.instance()
    loader = hydra.config_loader() if hydra.is_initialized() else None
    return list(OverridesParser.create(config_loader=loader).parse_overrides(list(overrides)))


def announce(settings: HydraConf, typed: Sequence[str]) -> None:
    """Say before a sweep's run which one it is: `run 2 of 4, seed=1`."""
    if settings.mode is not RunMode.MULTIRUN:
        return
    params = settings.sweeper.get("params") or {}
    typed = [word for word in typed if not word.startswith("hydra")]
    swept = {override.get_key_element() for override in _parsed(typed) if override.is_sweep_override()}
    swept |= set(params)
    own = [word for word in settings.overrides.task if word.partition("=")[0] in swept]
    total = settings.sweeper.get("n_trials") or len(run_overrides(typed, params))
    _log.info("%s", ", ".join([f"run {settings.job.num + 1} of {total}", *own]))


@contextmanager
def without_folders(arguments: Sequence[str]) -> Iterator[list[str]]:
    """The arguments, with which Hydra leaves no folder behind where they ask for a plan alone."""
    if "plan=true" not in [word.lower().lstrip("+") for word in arguments]:
        yield list(arguments)
        return
    # A launcher would start the runs elsewhere, which a plan doesn't.
    own = ("hydra.run.dir=", "hydra.sweep.dir=", "hydra/launcher=", "hydra.launcher.")
    kept = [word for word in arguments if not word.startswith(own)]
    with TemporaryDirectory() as scratch:
        yield [*kept, f"hydra.run.dir='{scratch}'", f"hydra.sweep.dir='{scratch}'"]
