"""The scripts in `slurm/`: a sweep is submitted, shown and resumed.

A bad setting is one line and exit code 2, any other foreseen failure one line and exit code 1.
"""

import argparse
import json
import sys
from pathlib import Path

from monitorbench.config.base import ConfigError
from monitorbench.config.ending import reporting, show_log
from monitorbench.config.load import read_frozen
from monitorbench.sweeps.launch import Start, jobs_of, load_stage, start_runs
from monitorbench.sweeps.slurm import failed_or_pending, overview, states
from monitorbench.sweeps.sweep import read


def submit() -> None:
    """`submit.py STAGE OVERRIDES [--dry-run | --print-commands] [--local --jobs N] [--after …]`."""
    parser = _parser("Freeze every run of a sweep, submit them as one Slurm array, and exit.")
    parser.add_argument("stage", help="such as train, or a script such as train/sft.py")
    words = "Hydra's, sweeps included: seed=0,1 'seed=range(3)'"
    parser.add_argument("overrides", nargs="*", default=[], help=words)
    parser.add_argument("-m", "--multirun", action="store_true", help="accepted, and always so")
    parser.add_argument(
        "--dry-run", action="store_true", help="show the sbatch file; write and start nothing"
    )
    _start_options(parser)
    options = parser.parse_intermixed_args()
    with reporting():
        start = _start_of(options, dry_run=options.dry_run)
        stage = load_stage(options.stage)
        settings = {
            "jobs": "null" if start.jobs is None else start.jobs,
            "after": json.dumps(start.after),
            "dry_run": start.dry_run,
            "print_commands": start.print_commands,
        }
        launcher = f"hydra/launcher={'local' if start.is_local else 'slurm'}"
        typed = [f"hydra.launcher.{name}={value}" for name, value in settings.items()]
        sys.argv = [options.stage, *options.overrides, "-m", launcher, *typed]
        stage()


def status() -> None:
    """`status.py SWEEP`."""
    parser = _parser("Show what became of every run of a sweep.")
    parser.add_argument("sweep", type=Path, help="the directory that submit.py printed")
    options = parser.parse_args()
    with reporting():
        sweep = read(options.sweep)
        print(overview(sweep, states(sweep)))


def resume() -> None:
    """`resume.py SWEEP [cluster=...] [--print-commands] [--local --jobs N] [--after JOB]`."""
    parser = _parser("Start the runs of a sweep that failed or never ran, from the same frozen files.")
    parser.add_argument("sweep", type=Path, help="the directory that submit.py printed")
    words = "of what Slurm is asked for: cluster.memory=200G"
    parser.add_argument("overrides", nargs="*", default=[], help=words)
    _start_options(parser)
    options = parser.parse_intermixed_args()
    with reporting():
        show_log()
        start = _start_of(options)
        for override in options.overrides:
            if not override.startswith(("cluster=", "cluster.")):
                raise ConfigError(f"{override}: its runs are frozen; expected cluster=... or cluster.KEY=...")
        sweep = read(options.sweep)
        cluster = read_frozen(sweep.file(0, "json")).cluster
        if options.overrides:
            overrides = (*sweep.manifest.points[0], *options.overrides)
            cluster = load_stage(sweep.manifest.script).composed_study(overrides).cluster
        start_runs(sweep, failed_or_pending(sweep), cluster, start, jobs_of(start.after))


def _parser(description: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(description=description, allow_abbrev=False)


def _start_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--local", action="store_true", help="run here, without Slurm")
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="processes at a time, with --local (default: 1)"
    )
    parser.add_argument(
        "--after",
        action="append",
        default=[],
        metavar="JOB",
        help="a job or a sweep that has to end well first",
    )
    parser.add_argument(
        "--print-commands",
        action="store_true",
        help="freeze the runs and print a command each, for a launcher of your own; start nothing",
    )


def _start_of(options: argparse.Namespace, *, dry_run: bool = False) -> Start:
    start = Start(options.local, options.jobs, options.after, dry_run, options.print_commands)
    start.check()
    return start
