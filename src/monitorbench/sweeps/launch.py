"""Launching of a sweep: overrides are composed and frozen, and the runs handed to Slurm or started here.

Hydra's launchers (`-m hydra/launcher=slurm` or `local`), which `slurm/submit.py` calls, and `slurm/resume.py`
start runs through this module. The last line on stdout is the sweep's directory; with `--print-commands`
stdout holds commands alone, and the directory is on stderr.
"""

import importlib.util
import logging
import os
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from omegaconf import DictConfig, OmegaConf, flag_override

from monitorbench.cli.overrides import (
    HYDRA_ERRORS,
    YAML_ERRORS,
    one_line,
)
from monitorbench.cli.stage import Stage
from monitorbench.cli.stages import STAGES
from monitorbench.config.base import ConfigError, Incomplete, UserError
from monitorbench.config.ending import show_log
from monitorbench.config.study import Cluster
from monitorbench.runs.files import write_atomically
from monitorbench.runs.progress import progress
from monitorbench.sweeps import slurm
from monitorbench.sweeps.slurm import State, failed_or_pending, states
from monitorbench.sweeps.sweep import Point, Sweep, read, run_title, settle, write
from monitorbench.sweeps.worker import run_side_by_side

_log = logging.getLogger(__name__)
_STOPPED = (os.EX_TEMPFAIL, -signal.SIGINT, -signal.SIGTERM, -signal.SIGUSR1)
"""Exit codes of a run that was told to stop, which is no failure."""


class Start(NamedTuple):
    """How the runs of a sweep are started: by Slurm, or on this machine."""

    is_local: bool = False
    """Run here, without Slurm."""
    jobs: int | None = None
    """Runs at a time on this machine; None: one."""
    after: Sequence[str] = ()
    """Jobs and sweeps that have to end well before Slurm starts the runs."""
    dry_run: bool = False
    """Show the sbatch file; write and start nothing."""
    print_commands: bool = False
    """Freeze the runs and print a command each; start nothing."""

    def check(self) -> None:
        """Raise `ConfigError` for options that exclude each other, named as the launchers' settings are."""
        if self.jobs is not None and not self.is_local:
            raise ConfigError(
                f"jobs={self.jobs}: is of runs on this machine; expected hydra/launcher=local (--local), "
                "or cluster.parallel for Slurm"
            )
        if self.jobs is not None and self.jobs < 1:
            raise ConfigError(f"jobs={self.jobs}: expected a number from 1")
        if self.is_local and self.after:
            raise ConfigError("after: is of Slurm; expected without hydra/launcher=local (--local)")
        if self.is_local and self.dry_run:
            raise ConfigError(
                "dry_run: shows Slurm's file; expected without hydra/launcher=local (--local), "
                "where plan=true says what the runs take"
            )
        if self.print_commands and (self.is_local or self.after or self.dry_run):
            raise ConfigError("print_commands: starts nothing; expected without --local, after and dry_run")


def load_stage(name: str) -> Stage:
    """Find the stage of a name such as `train` or of a script such as `train/sft.py`.

    Raises `ConfigError` where there is none.
    """
    if name in STAGES:
        return STAGES[name]
    path = Path(name)
    expected = "expected a stage's name, such as train, or a script's path, such as CHECKOUT/train/sft.py"
    spec = importlib.util.spec_from_file_location(f"script_{path.stem}", path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise ConfigError(f"{name}: no such stage, and no such script in {Path.cwd()}; {expected}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    stage = getattr(module, "main", None)
    if not isinstance(stage, Stage):
        raise ConfigError(f"{name}: no script of a stage; {expected}")
    return stage


def compose_points(
    stage: Stage, loader: ConfigLoader, master: DictConfig, runs: Sequence[Sequence[str]]
) -> list[Point]:
    """Compose and validate every run of a sweep.

    Raises:
        ConfigError: for what doesn't compose or validate, naming the first such run; for two runs
            that are the same; for runs that ask Slurm for unlike machines.

    """
    compose = _composer(loader, master)
    points: list[Point] = []
    first_runs: dict[str, str] = {}
    for number, overrides in enumerate(runs):
        title = run_title(number, runs)
        try:
            # The experiment is not named: W&B groups these runs by their sweep.
            study = stage.study_of(compose(overrides))
        except (*HYDRA_ERRORS, *YAML_ERRORS) as error:
            is_ours = isinstance(error, ConfigError)
            reason = str(error) if is_ours else one_line(error, overrides, stage.conf)
            raise ConfigError(f"{title}: {reason}" if len(runs) > 1 else reason) from error
        points.append(Point(tuple(overrides), study))
        if study.cluster != points[0].study.cluster:
            raise ConfigError(f"{title}: another cluster than run 1; expected one kind of machine in a sweep")
        if study.paths != points[0].study.paths:
            raise ConfigError(f"{title}: other paths than run 1; expected the same in a sweep")
        # Two runs of one study would write into one directory at the same time.
        first = first_runs.setdefault(study.model_dump_json(exclude={"cluster", "tracking"}), title)
        if first != title:
            raise ConfigError(f"{title}: the same study as {first}; expected every value once")
    return points


def _composer(loader: ConfigLoader, master: DictConfig) -> Callable[[Sequence[str]], DictConfig]:
    """Give what composes a run of a sweep: once for each choice of groups, on which values are then set.

    Hydra sets values last, too, and in the order of the overrides. All runs of one choice set the same
    keys, so that they share a tree: each is to be read before the next is composed.
    """
    composed: dict[tuple[str, ...], DictConfig] = {}

    def is_value(override: Override) -> bool:
        is_plain = override.type is OverrideType.CHANGE and override.package is None
        # A mapping is merged into what is there: what an earlier run put there would stay.
        return (
            is_plain
            and not isinstance(override.value(), dict)
            and not loader.get_group_options(override.key_or_group)
        )

    def compose(overrides: Sequence[str]) -> DictConfig:
        parsed = OverridesParser.create(config_loader=loader).parse_overrides(list(overrides))
        values = [override for override in parsed if is_value(override)]
        choice = tuple(
            override.key_or_group if override in values else str(override.input_line) for override in parsed
        )
        if choice not in composed:
            cfg = loader.load_sweep_config(master, list(overrides))
            with flag_override(cfg, ["struct", "readonly"], False):  # as Hydra does before it calls a script
                del cfg["hydra"]
            composed[choice] = cfg
        for override in values:
            OmegaConf.update(composed[choice], override.key_or_group, override.value(), merge=True)
        return composed[choice]

    return compose


def launch(script: str, overrides: Sequence[str], points: Sequence[Point], start: Start) -> Sweep:
    """Freeze the runs of a sweep and start them; where it is there already, those that failed or never ran.

    `script` is a stage's name or a script's path, `overrides` those that were typed.
    """
    show_log()
    sweep = settle(script, overrides, points)
    cluster, runs, after = points[0].study.cluster, list(range(len(points))), jobs_of(start.after)
    if start.dry_run:
        print(slurm.script_text(sweep, cluster, runs, after), end="", flush=True)
        for run in runs:
            _log.info("%s", run_title(run, [point.overrides for point in points]))
        _log.info("dry run: nothing was submitted")
        return sweep
    if not write(sweep, points):
        sweep = read(sweep.path)
        runs = failed_or_pending(sweep)
    start_runs(sweep, runs, cluster, start, after)
    return sweep


def start_runs(
    sweep: Sweep, runs: Sequence[int], cluster: Cluster, start: Start, after: Sequence[int]
) -> None:
    """Start runs in Slurm, or as `start` says: here, some at a time, or by whoever runs what is printed."""
    path = sweep.path.relative_to(Path.cwd()) if sweep.path.is_relative_to(Path.cwd()) else sweep.path
    stream = sys.stderr if start.print_commands else sys.stdout
    if not runs:
        print("nothing is pending", path, sep="\n", file=stream, flush=True)
    elif start.print_commands:
        print(*(shlex.join(sweep.worker_command(run)) for run in runs), sep="\n", flush=True)
        print(path, file=stream, flush=True)
    elif not start.is_local:
        job = slurm.submit(sweep, cluster, runs, after)
        print(f"job {job}: {len(runs)} run{'s'[: len(runs) > 1]}", path, sep="\n", flush=True)
    else:
        codes = _run_here(sweep, runs, start.jobs or 1)
        print(path, flush=True)
        failed = [run for run, code in codes.items() if code not in _STOPPED]
        if failed:
            log = path / sweep.file(failed[0], "log").name
            raise UserError(
                f"{len(failed)} of {len(runs)} runs failed, the first one's output is {log}; "
                "the same command does them again"
            )
        if codes:
            raise Incomplete(f"{len(codes)} of {len(runs)} runs were stopped; the same command resumes them")


def _run_here(sweep: Sweep, runs: Sequence[int], jobs: int) -> dict[int, int]:
    """Do some runs, `jobs` at a time, each to its `run-<NNN>.log`; returns the exit codes of those not done.

    A run that fails stops no other. One that is killed has failed, one that was told to stop is pending, as
    in the overview. Ctrl-C or TERM is passed on to those that run, and no more are started.
    """
    names = {sweep.title(run): run for run in runs}
    commands = {name: (sweep.worker_command(run), sweep.file(run, "log")) for name, run in names.items()}
    # A run here is not its own job where all of this happens inside a job of Slurm's.
    environment = {key: value for key, value in os.environ.items() if key != "SLURM_JOB_ID"}
    with progress(sweep.path.name, len(runs)) as ticker:

        def tell(name: str, code: int) -> None:
            ticker.advance()
            if code in _STOPPED:
                _log.info("%s: stopped, pending", name)
                return
            _log.info("%s: %s", name, f"failed with exit code {code}" if code else "done")
            failed, running = (sweep.file(names[name], ending) for ending in ("failed", "running"))
            if code and not failed.exists():  # the worker itself was killed
                running.unlink(missing_ok=True)
                write_atomically(failed, f"{code}\n")

        codes, signals = run_side_by_side(commands, jobs, environment=environment, on_end=tell)
    if signals:
        raise KeyboardInterrupt
    return {run: codes[name] for name, run in names.items() if codes[name]}


def jobs_of(after: Sequence[str]) -> list[int]:
    """List the array jobs that `--after` means; of a sweep the last, unless all of it is done."""
    jobs: list[int] = []
    for name in after:
        if name.isdigit():
            jobs.append(int(name))
            continue
        sweep = read(Path(name))
        if all(run.state is State.DONE for run in states(sweep)):
            continue
        job = sweep.manifest.submissions[-1].job if sweep.manifest.submissions else None
        if job is None:
            raise ConfigError(
                f"--after={name}: that sweep has no job in Slurm; expected one that was submitted"
            )
        jobs.append(job)
    return jobs
