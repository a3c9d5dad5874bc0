"""A stage as a command: settings in, one function called, its run directory on the last line of stdout.

Settings are composed by Hydra. A single run goes through Hydra's compose API and leaves no folder of
Hydra's: its own run directory holds the settings. What only Hydra does (`-m`, `--cfg`, `--info`,
`--config-dir`, `hydra.…=`) is left to `hydra.main`, whose folders lie in the folder of runs.

`plan=true` never starts a stage: its plan is printed, or why it has none.
"""

import gc
import os
import sys
import textwrap
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.ending import reporting, require, show_log, stop, watch
from monitorbench.config.load import read_frozen
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


def _call(function: str | Callable[[Study, Compose], Any], study: Study, compose: Compose) -> Any:
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
            runs = _Running(self, arguments).runs()
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

        from monitorbench.cli.overrides import HYDRA_ERRORS, YAML_ERRORS, first_run, one_line
        from monitorbench.config.project import composing

        search = [] if added is None else [f"hydra.searchpath=['file://{Path(added).resolve()}']"]
        try:
            with composing(self.conf):
                return hydra.compose(self.name, [*(first_run(overrides) if is_sweep else overrides), *search])
        except (*HYDRA_ERRORS, *YAML_ERRORS) as error:
            raise ConfigError(one_line(error, overrides, self.conf, added)) from error

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
                _call(self.plan, study, compose)
        elif self.runs is not None:
            from monitorbench.studies.forecast import forecast, print_forecast

            runs = [run for study in studies for run in self.runs(study)]
            print_forecast(forecast(runs))


def chosen_experiment(overrides: Sequence[str]) -> str | None:
    """The option of `experiment=` in some overrides, the last one; None where there is none."""
    pairs = [word.lstrip("+").partition("=") for word in overrides]
    chosen = next((value for key, _, value in reversed(pairs) if key == "experiment"), None)
    return None if chosen in (None, "null") else chosen


@dataclass
class _Running:
    """One start of a stage: its arguments, and the studies that were done so far."""

    stage: Stage
    arguments: Sequence[str]
    done: list[tuple[Study, Path]] = field(default_factory=list)
    planned: list[Study] = field(default_factory=list)

    def runs(self) -> list[Path]:
        """Run what the arguments ask for; the run directories, in their order."""
        if any(argument.startswith("frozen=") for argument in self.arguments):
            show_log()
            study = self.stage.resolved(self._frozen())
            self._run(study, _refuse_to_compose)
        elif any(argument.startswith(("-", "hydra")) for argument in self.arguments):
            self._run_by_hydra()
        else:
            show_log()
            study = self._single_study()
            self._run(study, lambda more: self.stage.study([*self.arguments, *more]))
        if self.planned:
            self.stage.print_plan(self.planned, _refuse_to_compose)
        if self.stage.after_sweep is not None and len(self.done) > 1:
            self.stage.after_sweep(self.done)
        return [run for _, run in self.done]

    def _single_study(self) -> Study:
        """The study of the arguments; a refusal also says what a shell may have done to them."""
        try:
            return self.stage.composed_study(self.arguments)
        except ConfigError as error:
            from monitorbench.cli.overrides import shell_hint

            hint = shell_hint(self.arguments)
            raise ConfigError(f"{error}{'' if hint in str(error) else hint}") from error

    def _run_by_hydra(self) -> None:
        """Let `hydra.main` do what was asked for: a sweep, or what its flags print."""
        import hydra

        from monitorbench.cli.overrides import (
            HYDRA_ERRORS,
            PRINTING,
            YAML_ERRORS,
            flag_value,
            one_line,
            split_flags,
            without_folders,
        )

        tree = "pkg://monitorbench.conf" if self.stage.conf == PACKAGED else str(self.stage.conf)
        is_composing = True

        def job(cfg: "DictConfig") -> float | None:
            nonlocal is_composing
            is_composing = False
            with reporting():  # in here: Hydra adds a line to whatever leaves this function
                return self._job(cfg)

        vars(job).update(stage=self.stage, done=self.done)  # for launchers, which start other processes
        with without_folders(self.arguments) as arguments:
            overrides, flags = split_flags(arguments)
            added = flag_value(flags, "--config-dir", "-cd")
            if added is not None and not Path(added).is_dir():
                raise ConfigError(f"--config-dir={added}: no such folder; expected a folder of settings")
            launcher = next((word for word in overrides if word.startswith("hydra/launcher=")), "")
            if launcher and not {"-m", "--multirun"} & set(flags):
                raise ConfigError(f"{launcher}: starts the runs of a sweep; expected -m beside it")
            if not PRINTING & {flag.partition("=")[0] for flag in flags}:
                # Before Hydra makes a folder, in which it copies the settings.
                self.stage.validated(self.stage.composed(overrides, added, is_sweep=True))
            sys.argv[1:] = [*overrides, *flags]
            try:
                hydra.main(version_base="1.3", config_path=tree, config_name=self.stage.name)(job)()
            except (*HYDRA_ERRORS, *YAML_ERRORS) as error:
                if not is_composing and not isinstance(error, HYDRA_ERRORS):
                    raise  # the stage's own failure: its traceback is what helps
                stop(one_line(error, overrides, self.stage.conf, added), 2)

    def _job(self, cfg: "DictConfig") -> float | None:
        """Do one job of Hydra's; returns the value that its sweeper searches by, if it does."""
        import hydra
        from hydra.core.hydra_config import HydraConfig
        from omegaconf import OmegaConf

        from monitorbench.cli.overrides import announce, is_searching, split_flags
        from monitorbench.config.load import load

        show_log()
        settings = HydraConfig.get()
        experiment = settings.runtime.choices.get("experiment")
        experiment = None if experiment in (None, "null") else str(experiment)
        typed = OmegaConf.to_container(settings.overrides.task, resolve=False)  # `${…}` is a setting's
        assert isinstance(typed, list)
        study = self.stage.study_of(cfg, experiment)
        is_search = is_searching(settings)
        if study.plan and is_search:
            raise ConfigError("plan=true: a search chooses its runs as it goes; expected hydra/sweeper=basic")
        if study.plan and self.stage.runs is not None:
            self.planned.append(study)  # for one table of all jobs
            return None
        if is_search and self.stage.value is None:
            sweeper = str(settings.sweeper["_target_"]).rpartition(".")[2]
            raise ConfigError(
                f"hydra/sweeper: {sweeper} needs a value of each run, and {self.stage.name} has none; "
                "expected hydra/sweeper=basic"
            )
        announce(settings, split_flags(self.arguments)[0])
        self._run(study, lambda more: load(hydra.compose(self.stage.name, [*typed, *more]), experiment))
        return self.stage.value(self.done[-1][1]) if is_search and self.stage.value else None

    def _run(self, study: Study, compose: Compose) -> None:
        """Do one study, or print its plan."""
        if study.plan:
            self.stage.print_plan([study], compose)
            return
        for module in self.stage.needs:
            require(module, f"monitorbench {self.stage.name}")
        if self.stage.judges(study):
            _refuse_missing_key(study)
        directory: Path = _call(self.stage.function, study, compose)
        print(directory, flush=True)
        self.done.append((study, directory))

    def _frozen(self) -> Study:
        """The study of `frozen=FILE`; `ConfigError` where anything else was typed, or the stage can't."""
        others = [argument for argument in self.arguments if not argument.startswith("frozen=")]
        if len(self.arguments) > 1:
            extra = (others or self.arguments[1:])[0]
            raise ConfigError(f"{extra}: frozen=FILE runs exactly that study; expected no other argument")
        if self.stage.no_frozen:
            raise ConfigError(f"{self.arguments[0]}: {self.stage.name} {self.stage.no_frozen}")
        return read_frozen(Path(self.arguments[0].removeprefix("frozen=")))


def _refuse_to_compose(more: Sequence[str]) -> Study:
    raise ConfigError(f"{' '.join(more)}: a frozen study is run exactly so; expected the typed command")


def _refuse_missing_key(study: Study) -> None:
    """Raise `UserError` for a missing key of the endpoint, where a dataset would be built first."""
    try:
        study.engine.api_key()
    except UserError:
        from monitorbench.corpus.build import directory_of

        if not directory_of(study).done:  # what is judged already needs no key
            raise
