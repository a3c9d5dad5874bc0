"""What Hydra, OmegaConf and YAML say, in one line: key, value, and what was expected."""

import gc
import logging
import os
import re
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import hydra
import yaml
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from monitorbench.config.base import ConfigError, Preempted, UserError
from monitorbench.config.extras import extra_of, installing
from monitorbench.config.load import did_you_mean, load, read_frozen, unknown_key
from monitorbench.config.preemption import watch
from monitorbench.config.project import PACKAGED, composing, find_projects, groups
from monitorbench.config.project import options as known_options
from monitorbench.config.secrets import without_secrets
from monitorbench.config.study import Study


def one_line(error: Exception, overrides: Sequence[str], conf: Path) -> str:
    """An error of composing `overrides` over the tree `conf`; options to choose from are a second line."""
    text = str(error)
    if isinstance(error, MissingConfigException):
        if match := re.search(r"Could not find '([^']+/[^'/]+)'", text):
            group, option = _group_and_option(match.group(1), overrides)
            if f"{group}={option}" == "hydra/sweeper=optuna":
                return f"hydra/sweeper=optuna: not installed; expected {installing('tune')}"
            options = sorted({*known_options(group, conf), *(error.options or [])})
            expected = f"expected one of the options of {group!r}"
            if nearest := did_you_mean(option, options, f"{group}="):
                expected += f"; {nearest}"
            return f"{group}={option}: no such option; {expected}\n  {', '.join(options)}"
        return " ".join(text.split())
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{mark.name}, line {mark.line + 1}: {' '.join((error.problem or '').split())}; expected YAML"
    if isinstance(error, OverrideParseException):
        return f"{error.override}: not an override; expected key=value, a list as key=[a,b]"
    if match := re.search(r"Could not override '([^']+)'", text):
        key = match.group(1).removeprefix("_global_.")
        given = [a.partition("=")[2] for a in overrides if a.lstrip("+~").partition("=")[0] == key]
        return unknown_key(key, given[0] if given else "")
    given_overrides = " ".join(a for a in overrides if "=" in a)
    # Hydra wraps OmegaConf's grammar errors without their text.
    text = text or str(error.__cause__ or error.__context__ or "")
    return f"{given_overrides}: {' '.join(text.split())}"


def _group_and_option(missing: str, overrides: Sequence[str]) -> tuple[str, str]:
    """The group and the option in `experiment/transfer/gpu`: an option may lie in a folder of its group's."""
    parts = missing.split("/")
    keys = {one.lstrip("+").partition("=")[0].partition("@")[0] for one in overrides}
    # What is in no override comes from a defaults list, where an option has no folder.
    at = next((i for i in range(1, len(parts)) if "/".join(parts[:i]) in keys), len(parts) - 1)
    return "/".join(parts[:at]), "/".join(parts[at:])


def examples(text: str) -> str:
    """The indented lines of a help text: commands to copy."""
    return "\n".join(line.strip() for line in text.splitlines() if line.startswith("    "))


_QUIET = {
    "TQDM_DISABLE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONWARNINGS": "ignore::FutureWarning",  # for worker processes; below for this one
}


_TAKE_A_VALUE = {
    *(
        "--config-dir",
        "-cd",
        "--config-path",
        "-cp",
        "--config-name",
        "-cn",
        "--package",
        "-p",
        "--cfg",
        "-c",
    ),
    "--experimental-rerun",
}
"""Flags of Hydra's whose value follows, which may look like an override."""
_MAY_TAKE_A_VALUE = {"--info", "-i"}
"""That value never does."""


@dataclass(frozen=True)
class Script:
    """A stage as a command: what it runs, and which config it composes."""

    function: Callable[[Study], Path]
    primary: str
    conf: Path = PACKAGED
    text: str = ""
    """What `--help` says of it; empty: what the function's module says."""
    is_live: bool = False
    """Whether it runs a model: such a stage does not begin before it is told anything."""
    after_sweep: Callable[[Sequence[tuple[Study, Path]]], None] | None = None
    """Told of the jobs of a multirun (`-m`) that ran in this process, once all are done: studies and runs."""
    runs: Callable[[Study], Sequence[Any]] | None = None
    """The runs that a study comes to (`forecast.work.Run`), for `slurm/submit.py --plan`; None: not known."""
    resolve: Callable[[Study, str], Study] = lambda study, _: study
    """Puts paths in the place of the short names of runs that a stage reads."""
    value: Callable[[Path], float] | None = None
    """Of a run that is done: what a sweeper that searches (`hydra/sweeper=optuna`) is told of it."""
    exit_code: Callable[[Sequence[Path]], int] | None = None
    """Of the runs that are done, of a multirun several: what the process ends with; None: 0."""

    def __call__(self) -> None:
        """Run with the arguments of the process."""
        # Modules and configs are thousands of objects that stay: looking for garbage among them every
        # 700 allocations was a sixth of a short run.
        gc.set_threshold(100_000, 20, 20)
        # Hydra then raises instead of printing twenty lines and exiting by itself.
        os.environ["HYDRA_FULL_ERROR"] = "1"
        # One progress display a stage is ours; those of the libraries would run across it.
        for name, value in _QUIET.items():
            os.environ.setdefault(name, value)
        warnings.simplefilter("ignore", FutureWarning)
        if {"--help", "-h"} & set(sys.argv[1:]):
            print(_help(self._text, self.conf))
            return
        with reporting():
            if self.is_live and not sys.argv[1:]:
                raise ConfigError(
                    f"{self.primary}: runs a model, and nothing was said of which; expected settings such as "
                    "in these lines\n" + textwrap.indent(examples(self._text), "  ")
                )
            watch()
            if any(argument.startswith("frozen=") for argument in sys.argv[1:]):
                _show_log()
                ran = [self._run(self.resolve(_frozen(sys.argv[1:]), self.primary))]
            else:
                ran = self._compose()
            if ran and self.exit_code is not None and (code := self.exit_code(ran)):
                raise SystemExit(code)

    @property
    def _text(self) -> str:
        return self.text or str(sys.modules[self.function.__module__].__doc__)

    def study(self, overrides: Sequence[str]) -> Study:
        """The validated study of some overrides, none of them Hydra's own; names of runs stay as they are.

        Raises `ConfigError`, whose text is one line.
        """
        try:
            with composing(self.conf):
                composed = hydra.compose(self.primary, list(overrides))
        except (HydraException, OmegaConfBaseException, yaml.YAMLError, ValueError) as error:
            raise ConfigError(one_line(error, overrides, self.conf)) from error
        return load(composed)

    def _compose(self) -> list[Path]:
        """Run what the arguments ask for; the runs, in their order."""
        arguments = sys.argv[1:]
        is_composing = True
        jobs: list[tuple[Study, Path]] = []

        def job(cfg: DictConfig) -> float | None:
            nonlocal is_composing
            is_composing = False
            with reporting():  # in here: Hydra adds a line to whatever leaves this function
                _show_log()
                study = self.study_of(cfg, _experiment(arguments))
                value = self._searched_by()
                jobs.append((study, self._run(study)))
                return value(jobs[-1][1]) if value else None
            return None

        try:
            if any(argument.startswith(("-", "hydra")) for argument in arguments):
                sys.argv[1:] = _overrides_first(arguments)
                find_projects()
                where = "pkg://monitorbench.conf" if self.conf == PACKAGED else str(self.conf)
                hydra.main(version_base="1.3", config_path=where, config_name=self.primary)(job)()
            else:  # a single run with Hydra's own settings as they are: hydra.main would compose it twice
                with composing(self.conf):
                    composed = hydra.compose(self.primary, arguments)
                job(composed)
        except (HydraException, OmegaConfBaseException) as error:
            stop(one_line(error, arguments, self.conf), 2)
        except (yaml.YAMLError, ValueError) as error:
            if not is_composing:  # the script's own failure: its traceback is what helps
                raise
            stop(one_line(error, arguments, self.conf), 2)
        if self.after_sweep is not None and len(jobs) > 1:
            self.after_sweep(jobs)
        return [run for _, run in jobs]

    def _searched_by(self) -> Callable[[Path], float] | None:
        """What the sweeper of this multirun is to be told; None where it asks for nothing, as a grid does."""
        if not HydraConfig.initialized() or HydraConfig.get().mode is not RunMode.MULTIRUN:
            return None
        sweeper = str(HydraConfig.get().sweeper["_target_"])
        if sweeper.endswith(".BasicSweeper"):
            return None
        if self.value is None:
            raise ConfigError(
                f"hydra/sweeper: {sweeper.rpartition('.')[2]} needs a value of each run, and {self.primary} "
                "has none; expected hydra/sweeper=basic"
            )
        return self.value

    def study_of(self, cfg: DictConfig, experiment: str | None = None) -> Study:
        """What a composed config means: validated, with paths in the place of short names of runs.

        `experiment` is the name of the experiment that was chosen, if any.

        Raises what `load` raises, and `UserError` for a name that is of no run, or of several.
        """
        # Whoever resolves it says which runs there are; `load` would only say that nothing is given.
        if OmegaConf.is_missing(cfg, "run") or (not OmegaConf.is_interpolation(cfg, "run") and cfg.run == ""):
            cfg.run = None
        return self.resolve(load(cfg, experiment), self.primary)

    def _run(self, study: Study) -> Path:
        directory = self.function(study)
        print(directory, flush=True)
        return directory


def _show_log() -> None:
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(message)s", force=True)
    # Third parties narrate; what a person needs of them comes through our own lines.
    logging.getLogger("monitorbench").setLevel(logging.INFO)


def entry(
    script: str, primary: str, resolve: Callable[[Study, str], Study] = lambda study, _: study
) -> Callable[[Callable[[Study], Path]], Script]:
    """Make `function(study) -> directory` the main function of a script.

    Args:
        script: the script's `__file__`; its grandparent folder holds `conf/`.
        primary: the primary config's name in `conf/`.
        resolve: `catalog.selectors.resolved`, where the stage reads runs.

    """

    def decorate(function: Callable[[Study], Path]) -> Script:
        return Script(function, primary, Path(script).resolve().parent.parent / "conf", resolve=resolve)

    return decorate


def _help(docstring: str, conf: Path) -> str:
    """What `--help` prints; Hydra's own reads the tree once for every group, which takes seconds."""
    found = [
        textwrap.fill(
            ", ".join(known_options(group, conf)), 80, initial_indent=f"  {group}=", subsequent_indent="    "
        )
        for group in groups(conf)
    ]
    return "\n".join(
        [
            docstring.strip(),
            "",
            "Configuration groups and their options:",
            *found,
            "",
            "Any value is set by key=value; `--cfg job` shows them all, `-m` sweeps (key=a,b).",
        ]
    )


@contextmanager
def reporting() -> Iterator[None]:
    """End the process with one line and an exit code of its own where a foreseen failure leaves the body."""
    try:
        yield
    except ConfigError as error:
        stop(str(error), 2)
    except UserError as error:
        stop(str(error), 1)
    except Preempted as error:
        stop(str(error), os.EX_TEMPFAIL)
    except KeyboardInterrupt:
        stop("interrupted", 130)
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if (extra := extra_of(module)) is None:
            raise
        stop(f"{module}: not installed, and this stage needs it; expected {installing(extra)}", 1)


def stop(message: str, code: int) -> NoReturn:
    """End the process with one line on stderr, in which no key is shown."""
    sys.stdout.flush()
    print(f"error: {without_secrets(message)}", file=sys.stderr, flush=True)
    raise SystemExit(code)


def _overrides_first(arguments: list[str]) -> list[str]:
    """Overrides before everything else: Hydra's parser takes only one row of them, wherever `-m` stands."""
    flags, overrides = list[str](), list[str]()
    before = ""
    for one in arguments:
        is_value = before in _TAKE_A_VALUE or (before in _MAY_TAKE_A_VALUE and "=" not in one)
        (flags if is_value or one.startswith("-") else overrides).append(one)
        before = "" if is_value else one
    return overrides + flags


def _experiment(arguments: Sequence[str]) -> str | None:
    """The `experiment=` of this run: Hydra's word where it runs a sweep, else the last one given."""
    if HydraConfig.initialized():
        chosen = HydraConfig.get().runtime.choices.get("experiment")
    else:
        given = [one.lstrip("+").partition("=") for one in arguments]
        chosen = next((value for key, _, value in reversed(given) if key == "experiment"), None)
    return None if chosen in (None, "null") else str(chosen)


def _frozen(arguments: list[str]) -> Study:
    if len(arguments) > 1:
        others = [argument for argument in arguments if not argument.startswith("frozen=")] or arguments[1:]
        raise ConfigError(f"{others[0]}: frozen=FILE runs exactly that study; expected no other argument")
    return read_frozen(Path(arguments[0].removeprefix("frozen=")))
