"""One start of a stage: a single run, a sweep, a frozen study or a plan.

A single run goes through Hydra's compose API and leaves no folder of Hydra's: its own run directory holds the
settings. What only Hydra does (`-m`, `--cfg`, `--info`, `--config-dir`, `hydra.…=`) is left to `hydra.main`,
whose folders lie in the folder of runs.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from monitorbench.cli.stage import Stage, call
from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.ending import reporting, require, show_log, stop
from monitorbench.config.load import read_frozen
from monitorbench.config.project import PACKAGED
from monitorbench.config.study import Study
from monitorbench.studies.candidates import Compose

if TYPE_CHECKING:
    from omegaconf import DictConfig


@dataclass
class Running:
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
            with_quoted_paths,
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
            sys.argv[1:] = [*with_quoted_paths(overrides), *flags]
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
            try:
                study.engine.api_key()
            except UserError:  # told before a dataset is built
                from monitorbench.corpus.build import directory_of

                if not directory_of(study).done:  # what is judged already needs no key
                    raise
        directory: Path = call(self.stage.function, study, compose)
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
