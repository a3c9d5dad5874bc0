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
from typing import NoReturn

import hydra
import yaml
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from monitorbench.config.base import ConfigError, Preempted, UserError
from monitorbench.config.load import load, read_frozen, unknown_key
from monitorbench.config.preemption import watch
from monitorbench.config.study import Study


def one_line(error: Exception, overrides: Sequence[str], conf: Path) -> str:
    """An error of composing `overrides` over the tree `conf`; options to choose from are a second line."""
    text = str(error)
    if isinstance(error, MissingConfigException):
        if match := re.search(r"Could not find '([^']+/[^'/]+)'", text):
            group, option = _group_and_option(match.group(1), overrides)
            options = ", ".join(sorted({*_options(conf / group), *(error.options or [])}))
            return f"{group}={option}: no such option; expected one of the options of {group!r}\n  {options}"
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
    """The group and the option in `experiment/probe/gpu`: an option may lie in a folder of its group's."""
    parts = missing.split("/")
    keys = {one.lstrip("+").partition("=")[0].partition("@")[0] for one in overrides}
    # What is in no override comes from a defaults list, where an option has no folder.
    at = next((i for i in range(1, len(parts)) if "/".join(parts[:i]) in keys), len(parts) - 1)
    return "/".join(parts[:at]), "/".join(parts[at:])


def _options(folder: Path) -> list[str]:
    """The options of the group whose folder this is, those in folders of it included."""
    return sorted(file.relative_to(folder).with_suffix("").as_posix() for file in folder.rglob("*.yaml"))


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
    """A script's main function: what it runs, and which config it composes."""

    function: Callable[[Study], Path]
    primary: str
    conf: Path

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
            print(_help(str(sys.modules[self.function.__module__].__doc__), self.conf))
            return
        with reporting():
            watch()
            if any(argument.startswith("frozen=") for argument in sys.argv[1:]):
                self._run(_frozen(sys.argv[1:]))
            else:
                self._compose()

    def _compose(self) -> None:
        arguments = sys.argv[1:]
        composing = True

        def job(cfg: DictConfig) -> None:
            nonlocal composing
            composing = False
            with reporting():  # in here: Hydra adds a line to whatever leaves this function
                self._run(load(cfg, _experiment(arguments)))

        try:
            if any(argument.startswith(("-", "hydra")) for argument in arguments):
                sys.argv[1:] = _overrides_first(arguments)
                hydra.main(version_base="1.3", config_path=str(self.conf), config_name=self.primary)(job)()
            else:  # a single run with Hydra's own settings as they are: hydra.main would compose it twice
                with hydra.initialize_config_dir(str(self.conf), version_base="1.3"):
                    composed = hydra.compose(self.primary, arguments)
                job(composed)
        except (HydraException, OmegaConfBaseException) as error:
            stop(one_line(error, arguments, self.conf), 2)
        except (yaml.YAMLError, ValueError) as error:
            if not composing:  # the script's own failure: its traceback is what helps
                raise
            stop(one_line(error, arguments, self.conf), 2)

    def _run(self, study: Study) -> None:
        logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(message)s", force=True)
        # Third parties narrate; what a person needs of them comes through our own lines.
        logging.getLogger("monitorbench").setLevel(logging.INFO)
        print(self.function(study), flush=True)


def entry(script: str, primary: str) -> Callable[[Callable[[Study], Path]], Script]:
    """Make `function(study) -> directory` the main function of a script.

    Args:
        script: the script's `__file__`; its grandparent folder holds `conf/`.
        primary: the primary config's name in `conf/`.

    """

    def decorate(function: Callable[[Study], Path]) -> Script:
        return Script(function, primary, Path(script).resolve().parent.parent / "conf")

    return decorate


def _help(docstring: str, conf: Path) -> str:
    """What `--help` prints; Hydra's own reads the tree once for every group, which takes seconds."""
    folders = sorted(folder for folder in conf.iterdir() if folder.is_dir() and folder.name != "local")
    options = {folder.name: _options(folder) for folder in folders}
    groups = [
        textwrap.fill(", ".join(names), 80, initial_indent=f"  {group}=", subsequent_indent="    ")
        for group, names in options.items()
    ]
    return "\n".join(
        [
            docstring.strip(),
            "",
            "Configuration groups and their options:",
            *groups,
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


def stop(message: str, code: int) -> NoReturn:
    """End the process with one line on stderr."""
    sys.stdout.flush()
    print(f"error: {message}", file=sys.stderr, flush=True)
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
