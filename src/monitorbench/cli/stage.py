"""A stage as a command: settings in, one function called, its run directory on the last line of stdout.

Settings are composed by Hydra; `cli/running.py` has what one start of a stage does.
`plan=true` never starts a stage: its plan is printed, or why it has none.
"""

import gc
import os
import sys
import textwrap
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monitorbench.config.base import ConfigError
from monitorbench.config.ending import reporting, watch
from monitorbench.config.project import PACKAGED
from monitorbench.config.study import Study
from monitorbench.studies.candidates import Compose

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from monitorbench.studies.forecast import PlannedRun


_QUIET = {
    "TQDM_DISABLE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONWARNINGS": "ignore::FutureWarning",  # for worker processes; below for this one
}


def imported(path: str) -> Callable[..., Any]:
    """Return the function `module:function`, imported when it is called, so that help costs nothing heavy."""
    module, _, name = path.partition(":")
    return lambda *arguments: getattr(import_module(module), name)(*arguments)


def call(function: str | Callable[[Study, Compose], Any], study: Study, compose: Compose) -> Any:
    """Call a stage's function; one that is named as `module:function` takes the study alone."""
    return imported(function)(study) if isinstance(function, str) else function(study, compose)


@dataclass(frozen=True)
class Stage:
    """A stage of the package: what it runs, which settings it composes, what it says of itself."""

    name: str
    """Names the command, and its primary config in the tree `conf`."""
    function: str | Callable[[Study, Compose], Path]
    """Does the work and returns the directory it wrote; `module:function` names one of a study alone."""
    text: str
    """The help text of the stage; its first line is a summary."""
    reads: str = ""
    """Top-level settings that the stage reads, with spaces between them; `--help` lists them."""
    plan: str | Callable[[Study, Compose], None] | None = None
    """Prints what `function` would do, and writes nothing; named or given as `function` is."""
    no_plan: str = "it reads files alone and runs no model, which takes seconds"
    """Why there is no plan, where `plan` is None: completes "NAME has no plan: …"."""
    runs: "Callable[[Study], Sequence[PlannedRun]] | None" = None
    """Gives the runs that a study comes to, so that a plan can add up the studies of a sweep."""
    is_live: bool = False
    """Whether the stage runs a model: such a stage does not begin without any argument."""
    judges: Callable[[Study], bool] = lambda study: False
    """Whether a study asks its engine about a dataset: a missing key is then told before data are built."""
    needs: Sequence[str] = ()
    """Modules of an extra without which the stage could not finish: asked for before it begins."""
    ahead: Callable[[Sequence[str]], None] | None = None
    """Begins, by the typed arguments alone, what can go on while they are composed."""
    no_frozen: str = ""
    """Why the stage can't run a frozen study, where it can't."""
    after_sweep: Callable[[Sequence[tuple[Study, Path]]], None] | None = None
    """Gets the studies and runs of a sweep that ran in this process, once all are done."""
    value: Callable[[Path], float] | None = None
    """Gives a finished run's value to a sweeper that searches (`hydra/sweeper=optuna`)."""
    exit_code: Callable[[Sequence[Path]], int] | None = None
    """Gives the process's exit code for the runs that are done; None: 0."""
    conf: Path = PACKAGED
    """The tree of settings."""

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
        arguments = sys.argv[1:]
        with reporting():
            if {"--help", "-h"} & set(arguments):
                from monitorbench.cli.help import help_text

                print(help_text(self))
                return
            if self.is_live and not arguments:
                raise ConfigError(
                    f"{self.name}: runs a model, and nothing was said of which; expected settings such as "
                    "in these lines\n" + textwrap.indent(self.examples, "  ")
                )
            watch()
            if self.ahead is not None:
                self.ahead(arguments)
            from monitorbench.cli.running import Running

            runs = Running(self, arguments).runs()
            if runs and self.exit_code is not None and (code := self.exit_code(runs)):
                raise SystemExit(code)

    @property
    def examples(self) -> str:
        """The commands in the stage's text, a line each."""
        return "\n".join(line.strip() for line in self.text.splitlines() if line.startswith("    "))

    def study(self, overrides: Sequence[str]) -> Study:
        """The validated study of some overrides, none of them Hydra's own; names of runs stay as they are.

        Raises `ConfigError`, whose text is one line.
        """
        from monitorbench.config.load import load

        return load(self.composed(overrides), chosen_experiment(overrides))

    def composed_study(self, overrides: Sequence[str]) -> Study:
        """Compose and validate a study, with paths in the place of short names of runs."""
        return self.study_of(self.composed(overrides), chosen_experiment(overrides))

    def composed(
        self, overrides: Sequence[str], added: str | None = None, *, is_sweep: bool = False
    ) -> "DictConfig":
        """Compose some overrides, of a sweep its first run; `added` is the folder of `--config-dir`."""
        import hydra

        from monitorbench.cli.overrides import (
            HYDRA_ERRORS,
            YAML_ERRORS,
            first_run,
            one_line,
            refuse_repeated_keys,
            with_quoted_paths,
        )
        from monitorbench.config.project import composing, trees_of

        search = [] if added is None else [f"hydra.searchpath=['file://{Path(added).resolve()}']"]
        quoted = with_quoted_paths(overrides)
        try:
            with composing(self.conf):
                cfg = hydra.compose(self.name, [*(first_run(quoted) if is_sweep else quoted), *search])
        except (*HYDRA_ERRORS, *YAML_ERRORS) as error:
            raise ConfigError(one_line(error, overrides, self.conf, added)) from error
        refuse_repeated_keys(overrides, trees_of(self.conf, added))
        return cfg

    def study_of(self, cfg: "DictConfig", experiment: str | None = None) -> Study:
        """Validate a composed config, and put paths in the place of short names of runs.

        Raises what `validated` raises, and `UserError` for a name that is of no run, or of several.
        """
        return self.resolved(self.validated(cfg, experiment))

    def resolved(self, study: Study) -> Study:
        """Put paths in the place of the short names of runs that the stage reads."""
        from monitorbench.runs.selectors import resolved

        return resolved(study, self.name)

    def validated(self, cfg: "DictConfig", experiment: str | None = None) -> Study:
        """Validate a composed config; short names of runs stay as they are.

        `experiment` is the name of the experiment that was chosen, if any. Raises what `load` raises, and
        `ConfigError` for `plan=true` where the stage has no plan.
        """
        from omegaconf import OmegaConf

        from monitorbench.config.load import load

        # Whoever resolves it says which runs there are; `load` would only say that nothing is given.
        if OmegaConf.is_missing(cfg, "run") or (not OmegaConf.is_interpolation(cfg, "run") and cfg.run == ""):
            cfg.run = None
        study = load(cfg, experiment)
        if study.plan and self.plan is None and self.runs is None:
            raise ConfigError(f"plan=true: {self.name} has no plan: {self.no_plan}")
        return study

    def print_plan(self, studies: Sequence[Study], compose: Compose) -> None:
        """Print what the stage would do for some studies; nothing is started and nothing written."""
        if self.plan is not None and (len(studies) == 1 or self.runs is None):
            for study in studies:
                call(self.plan, study, compose)
        elif self.runs is not None:
            from monitorbench.studies.forecast import forecast, print_forecast

            runs = [run for study in studies for run in self.runs(study)]
            print_forecast(forecast(runs))


def chosen_experiment(overrides: Sequence[str]) -> str | None:
    """The option of `experiment=` in some overrides, the last one; None where there is none."""
    pairs = [word.lstrip("+").partition("=") for word in overrides]
    chosen = next((value for key, _, value in reversed(pairs) if key == "experiment"), None)
    return None if chosen in (None, "null") else chosen
