"""The wrapper every script is entered through.

It composes with Hydra, validates once, and owns what a person sees: a bad setting is one line on
stderr and exit code 2, any other foreseen failure one line and exit code 1, logs go to stderr,
and the last line on stdout is the directory that the script wrote.
"""

import logging
import os
import re
import sys
import textwrap
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import yaml
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from monitorbench.config.errors import ConfigError, UserError
from monitorbench.config.load import load, unknown_key
from monitorbench.config.study import Study

_QUIET = {
    "TQDM_DISABLE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONWARNINGS": "ignore::FutureWarning",  # for worker processes; below for this one
}


def entry(script: str, primary: str) -> Callable[[Callable[[Study], Path]], Callable[[], None]]:
    """Make `function(study) -> directory` the main function of a script.

    Args:
        script: the script's `__file__`; its grandparent folder holds `conf/`.
        primary: the primary config's name in `conf/`.

    """

    def decorate(function: Callable[[Study], Path]) -> Callable[[], None]:
        composing = True

        def job(cfg: DictConfig) -> None:
            nonlocal composing
            composing = False
            logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(message)s", force=True)
            # Third parties narrate; what a person needs of them comes through our own lines.
            logging.getLogger("monitorbench").setLevel(logging.INFO)
            try:
                directory = function(load(cfg))
            except ConfigError as error:
                _stop(str(error), 2)
            except UserError as error:
                _stop(str(error), 1)
            print(directory, flush=True)

        def main() -> None:
            # Hydra then raises instead of printing twenty lines and exiting by itself.
            os.environ["HYDRA_FULL_ERROR"] = "1"
            # One progress display a stage is ours; those of the libraries would run across it.
            for name, value in _QUIET.items():
                os.environ.setdefault(name, value)
            warnings.simplefilter("ignore", FutureWarning)
            root = Path(script).resolve().parent.parent
            if {"--help", "-h"} & set(sys.argv[1:]):
                print(_help(str(sys.modules[function.__module__].__doc__), root / "conf"))
                return
            import hydra

            compose = hydra.main(version_base="1.3", config_path=str(root / "conf"), config_name=primary)
            try:
                compose(job)()
            except (HydraException, OmegaConfBaseException) as error:
                _stop(_one_line(error), 2)
            except (yaml.YAMLError, ValueError) as error:
                if not composing:  # the script's own failure: its traceback is what helps
                    raise
                _stop(_one_line(error), 2)
            except KeyboardInterrupt:
                _stop("interrupted", 130)

        return main

    return decorate


def _help(said: str, conf: Path) -> str:
    """What `--help` prints; Hydra's own reads the tree once for every group, which takes seconds."""
    folders = sorted(folder for folder in conf.iterdir() if folder.is_dir() and folder.name != "local")
    options = {folder.name: sorted(file.stem for file in folder.glob("*.yaml")) for folder in folders}
    groups = [
        textwrap.fill(", ".join(names), 80, initial_indent=f"  {group}=", subsequent_indent="    ")
        for group, names in options.items()
    ]
    return "\n".join(
        [
            said.strip(),
            "",
            "Configuration groups and their options:",
            *groups,
            "",
            "Any value is set by key=value; `--cfg job` shows them all, `-m` sweeps (key=a,b).",
        ]
    )


def _stop(message: str, code: int) -> NoReturn:
    sys.stdout.flush()
    print(f"error: {message}", file=sys.stderr, flush=True)
    raise SystemExit(code)


def _one_line(error: Exception) -> str:
    text = str(error)
    if isinstance(error, MissingConfigException):
        if match := re.search(r"Could not find '([^']+)/([^'/]+)'", text):
            group, option = match.groups()
            options = ", ".join(error.options or [])
            return f"{group}={option}: no such option; expected one of the options of {group!r}\n  {options}"
        return " ".join(text.split())
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{mark.name}, line {mark.line + 1}: {' '.join((error.problem or '').split())}; expected YAML"
    if isinstance(error, OverrideParseException):
        return f"{error.override}: not an override; expected key=value, a list as key=[a,b]"
    if match := re.search(r"Could not override '([^']+)'", text):
        key = match.group(1).removeprefix("_global_.")
        given = [a.partition("=")[2] for a in sys.argv[1:] if a.lstrip("+~").partition("=")[0] == key]
        return unknown_key(key, given[0] if given else "")
    given_overrides = " ".join(a for a in sys.argv[1:] if "=" in a)
    # Hydra wraps OmegaConf's grammar errors without their text.
    text = text or str(error.__cause__ or error.__context__ or "")
    return f"{given_overrides}: {' '.join(text.split())}"
