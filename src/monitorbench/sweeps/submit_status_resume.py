"""What `slurm/submit.py`, `status.py` and `resume.py` do with their command lines.

A bad setting is one line and exit code 2, any other foreseen failure one line and exit code 1. The last
line on stdout is the sweep's directory; with `--print-commands` stdout holds commands alone, and the
directory is on stderr.
"""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from monitorbench.cli.stage import Stage
from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.cluster import Cluster
from monitorbench.config.ending import reporting
from monitorbench.config.load import read_frozen
from monitorbench.sweeps import slurm
from monitorbench.sweeps.expand import Point, expand, load_script
from monitorbench.sweeps.local import run_here
from monitorbench.sweeps.manifest import Sweep, read, worker_command
from monitorbench.sweeps.plan import plan, write
from monitorbench.sweeps.slurm import State, failed_or_pending, overview, states


def submit() -> None:
    """`submit.py SCRIPT OVERRIDES [--dry-run | --plan | --print-commands] [--local --jobs N] [--after …]`."""
    parser = _parser("Freeze every run of a sweep, submit them as one Slurm array, and exit.")
    parser.add_argument("script", type=Path, help="such as train/sft.py")
    parser.add_argument("overrides", nargs="*", help="Hydra's, sweeps included: seed=0,1 'seed=range(3)'")
    parser.add_argument("-m", "--multirun", action="store_true", help="accepted, and always so")
    parser.add_argument(
        "--dry-run", action="store_true", help="show the sbatch file; write and start nothing"
    )
    parser.add_argument(
        "--plan", action="store_true", help="show what the runs will take; write and start nothing"
    )
    _start_options(parser)
    given = parser.parse_intermixed_args()

    with reporting():
        _refuse_unlike_ways(given, is_dry=given.dry_run)
        script = load_script(given.script)
        points = expand(script, given.overrides)
        if given.plan:
            _print_plan(script, points)
            return
        sweep = plan(given.script, given.overrides, points, Path.cwd())
        runs = range(len(points))
        if given.dry_run:
            print(slurm.script_text(sweep, points[0].study.cluster, runs, _jobs(given.after)), end="")
            return
        after = _jobs(given.after)
        write(sweep, points)
        _start(sweep, runs, points[0].study.cluster, given, after)


def _print_plan(script: Stage, points: Sequence[Point]) -> None:
    """What the runs of a sweep will take; `ConfigError` for a script that no forecast is made for."""
    if script.runs is None:
        raise ConfigError("--plan: expected train/sft.py, eval/evaluate.py or eval/transfer.py")
    from monitorbench.studies.forecast import forecast, print_forecast

    print_forecast(forecast(run for point in points for run in script.runs(point.study)))


def status() -> None:
    """`status.py SWEEP`."""
    parser = _parser("Show what became of every run of a sweep.")
    parser.add_argument("sweep", type=Path, help="the directory that submit.py printed")
    given = parser.parse_args()

    with reporting():
        sweep = read(given.sweep)
        print(overview(sweep, states(sweep)))


def resume() -> None:
    """`resume.py SWEEP [cluster=...] [--print-commands] [--local --jobs N] [--after JOB]`."""
    parser = _parser("Start the runs of a sweep that failed or never ran, from the same frozen files.")
    parser.add_argument("sweep", type=Path, help="the directory that submit.py printed")
    parser.add_argument("overrides", nargs="*", help="of what Slurm is asked for: cluster.memory=200G")
    _start_options(parser)
    given = parser.parse_intermixed_args()

    with reporting():
        _refuse_unlike_ways(given)
        for override in given.overrides:
            if not override.startswith(("cluster=", "cluster.")):
                raise ConfigError(f"{override}: its runs are frozen; expected cluster=... or cluster.KEY=...")
        sweep = read(given.sweep)
        cluster = read_frozen(sweep.file(0, "json")).cluster
        if given.overrides:
            again = (*sweep.manifest.points[0], *given.overrides)
            cluster = expand(load_script(sweep.manifest.script), again)[0].study.cluster
        if runs := failed_or_pending(sweep):
            _start(sweep, runs, cluster, given, _jobs(given.after))
        elif given.print_commands:
            print("nothing is pending", _shown(sweep.path), sep="\n", file=sys.stderr)
        else:
            print("nothing is pending", _shown(sweep.path), sep="\n")


def _parser(description: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(description=description, allow_abbrev=False)


def _start_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--local", action="store_true", help="run here, without Slurm")
    parser.add_argument(
        "--jobs", type=_positive, default=1, metavar="N", help="processes at a time, with --local"
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


def _refuse_unlike_ways(given: argparse.Namespace, *, is_dry: bool = False) -> None:
    if given.local and given.after:
        raise ConfigError("--after: expected without --local, which ends when its runs have")
    if given.print_commands and (given.local or given.after or is_dry):
        raise ConfigError("--print-commands: starts nothing; expected without --local, --after and --dry-run")


def _start(
    sweep: Sweep, runs: Sequence[int], cluster: Cluster, given: argparse.Namespace, after: Sequence[int]
) -> None:
    """Start runs in Slurm, or as `given` says: here, some at a time, or by whoever runs what is printed."""
    if given.print_commands:
        print(*(shlex.join(worker_command(sweep, run)) for run in runs), sep="\n", flush=True)
        print(_shown(sweep.path), file=sys.stderr, flush=True)
        return
    if not given.local:
        job = slurm.submit(sweep, cluster, runs, after)
        print(f"job {job}: {len(runs)} runs", _shown(sweep.path), sep="\n", flush=True)
        return
    codes = run_here(sweep, runs, given.jobs)
    failed = [run for run, code in sorted(codes.items()) if code]
    print(_shown(sweep.path), flush=True)
    if failed:
        first = sweep.file(failed[0], "log")
        raise UserError(
            f"{len(failed)} of {len(runs)} runs failed; the first one's output is {_shown(first)}"
        )


def _jobs(given: Sequence[str]) -> list[int]:
    """The array jobs that `--after` means; of a sweep the last, unless all of it is done."""
    jobs = []
    for one in given:
        if one.isdigit():
            jobs.append(int(one))
            continue
        sweep = read(Path(one))
        if all(state is State.DONE for state, _ in states(sweep)):
            continue
        if not sweep.manifest.submissions:
            raise ConfigError(
                f"--after={one}: that sweep was never submitted to Slurm; expected one that was"
            )
        job = sweep.manifest.submissions[-1].job
        if job is None:
            raise ConfigError(f"--after={one}: the id of its last job is unknown; expected that job's id")
        jobs.append(job)
    return jobs


def _shown(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1, not {text}")
    return int(text)
