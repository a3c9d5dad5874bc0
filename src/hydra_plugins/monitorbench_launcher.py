"""Hydra's launchers `slurm` and `local`, which run nothing but frozen studies.

`monitorbench train seed=0,1,2 -m hydra/launcher=slurm` freezes every run, submits one Slurm array and
returns; with `=local` it does the runs here and waits. The same command again does what is missing.

Hydra imports this module whenever it starts: nothing heavy is imported before runs are launched.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


class FreezingLauncher(Launcher):
    """Freezes every run of a sweep and starts them through `monitorbench.sweeps.launch`."""

    def __init__(
        self,
        is_local: bool,
        jobs: int | None,
        after: Sequence[str],
        dry_run: bool,
        print_commands: bool,
    ) -> None:
        """Take the options of `sweeps.launch.Start`."""
        self._options = (is_local, jobs, list(after), dry_run, print_commands)

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Take what Hydra gives every launcher; `task_function` carries its stage and the list of its runs.

        Options that exclude each other are refused, and a search (`hydra/sweeper=optuna`) where no values of
        runs come back: Hydra has made no folder yet.
        """
        from monitorbench.cli.overrides import is_searching
        from monitorbench.config.base import ConfigError
        from monitorbench.config.ending import reporting
        from monitorbench.sweeps.launch import Start

        self._loader, self._config = hydra_context.config_loader, config
        self._stage, self._done = vars(task_function)["stage"], vars(task_function)["done"]
        # The sweeper composes every run to see whether it can be. `launch` does so faster, and names the run.
        vars(self._loader)["load_sweep_config"] = lambda master_config, sweep_overrides: master_config
        self._is_search = is_searching(config.hydra)
        self._start = Start(*self._options)
        with reporting():
            self._start.check()
            if self._is_search and not (self._waits() and self._stage.value):
                reason = f"{self._stage.name} has none" if self._waits() else "this launcher does not wait"
                raise ConfigError(f"hydra/sweeper: a search wants each run's value; {reason}; expected basic")

    def _waits(self) -> bool:
        return self._start.is_local and not self._start.dry_run

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Start the runs; with `hydra/launcher=local` their values come back to a sweeper that searches."""
        from monitorbench.cli.stages import STAGES
        from monitorbench.config.ending import reporting
        from monitorbench.sweeps.launch import compose_points, launch

        vars(self._loader).pop("load_sweep_config", None)
        stage = self._stage
        if (
            self._is_search
        ):  # its sweeper leaves the best values there, and counts on the launcher for the folder
            Path(self._config.hydra.sweep.dir).mkdir(parents=True, exist_ok=True)
        with reporting():
            points = compose_points(stage, self._loader, self._config, job_overrides)
            script = stage.name if stage in STAGES.values() else sys.argv[0]
            sweep = launch(script, self._config.hydra.overrides.task, points, self._start)
        returned: list[JobReturn] = []
        for number, point in enumerate(points if self._waits() else []):
            run = sweep.file(number, "done").resolve()
            self._done.append((point.study, run))
            result = JobReturn(overrides=list(point.overrides), status=JobStatus.COMPLETED)
            result.return_value = stage.value(run) if self._is_search and stage.value else None
            returned.append(result)
        return returned


@dataclass
class LauncherOptions:
    """Settings of both launchers, so that the one which can't do something refuses it by name."""

    _target_: str = "hydra_plugins.monitorbench_launcher.FreezingLauncher"
    is_local: bool = False
    jobs: int | None = None
    after: list[str] = field(default_factory=list)
    dry_run: bool = False
    print_commands: bool = False


for name, is_local in (("slurm", False), ("local", True)):
    node = LauncherOptions(is_local=is_local)
    ConfigStore.instance().store(group="hydra/launcher", name=name, node=node, provider="monitorbench")
