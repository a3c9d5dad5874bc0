"""A frozen study in a process of its own: how a sweep's worker and a transfer study both run one.

`run_child` starts the process, sends it the signals that this one gets, and says how it ended. A stage is
run by the command, as `python -m monitorbench.cli train frozen=FILE`, which needs no checkout.
"""

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from monitorbench.config.base import Preempted, UserError

_SECONDS_BETWEEN_LOOKS = 0.2
_log = logging.getLogger(__name__)


class Ended(NamedTuple):
    """How a child process ended."""

    code: int
    """Its exit code, negative where a signal ended it."""
    last_line: str
    """The last line it printed that is not empty: the directory that a stage wrote."""
    signals: tuple[signal.Signals, ...]
    """What this process was sent meanwhile and passed on."""


def run_child(
    command: Sequence[str],
    passed_on: Sequence[signal.Signals],
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    on_line: Callable[[str], None] = lambda _: None,
) -> Ended:
    """Run a command until it ends; to be called in the main thread.

    A signal of `passed_on` that reaches this process is sent to the child and else has no effect; the
    handlers before are set again at the end. `on_line` gets every line of the child's stdout as it comes.
    """
    received: list[signal.Signals] = []
    child: subprocess.Popen[str] | None = None

    def pass_on(number: int, _: FrameType | None) -> None:
        received.append(signal.Signals(number))
        if child is not None:
            child.send_signal(number)

    before = {one: signal.signal(one, pass_on) for one in passed_on}
    try:
        with subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            errors="replace",
        ) as child:
            for early in tuple(received):  # they came while the process was being started
                child.send_signal(early)
            assert child.stdout is not None
            last_line = ""
            for line in child.stdout:
                on_line(line)
                last_line = line.strip() or last_line
            code = child.wait()
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
    return Ended(code, last_line, tuple(received))


def stage_command(stage: str, frozen: Path) -> list[str]:
    """The command that runs a stage, `train` or `evaluate`, on a frozen study."""
    return [sys.executable, "-m", "monitorbench.cli", stage, f"frozen={frozen}"]


def run_stage(stage: str, frozen: Path, name: str) -> Path:
    """Run a stage, `train` or `evaluate`, on a frozen study in a child process; the directory it wrote.

    Its stderr is ours; its stdout holds no more than the directory. A signal is passed on, and then does to
    this process what it always does. Ctrl-C reaches both without that. Raises `UserError` where the child
    failed, `Preempted` where it was stopped; `name` is what of it is said.
    """
    ended = run_child(stage_command(stage, frozen), (signal.SIGUSR1, signal.SIGTERM))
    _refuse_failed(ended, name, "for the reason above")
    return Path(ended.last_line)


def run_stages(stage: str, frozen: Mapping[str, Path], jobs: int) -> None:
    """Run a stage on several frozen studies by name, `jobs` at a time, each with its share of the cores.

    What a child says is in a `.log` beside its study. A signal is passed on to all that run. Once one has
    failed no more are started; what was running ends, and `UserError` names the failed one and its log.
    Raises as `run_stage` else; to be called in the main thread.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    environment = {**os.environ, "OMP_NUM_THREADS": str(max(1, cores // jobs))}
    waiting, running = list(frozen), dict[str, subprocess.Popen[bytes]]()
    codes: dict[str, int] = {}
    received: list[signal.Signals] = []

    def pass_on(number: int, _: FrameType | None) -> None:
        received.append(signal.Signals(number))
        for child in running.values():
            child.send_signal(number)

    before = {one: signal.signal(one, pass_on) for one in (signal.SIGUSR1, signal.SIGTERM)}
    try:
        while running or (waiting and not received and not any(codes.values())):
            while waiting and len(running) < jobs and not received and not any(codes.values()):
                name = waiting.pop(0)
                _log.info("%s %s (%d left): %s", stage, name, len(waiting), _log_file(frozen[name]))
                with _log_file(frozen[name]).open("ab") as log:
                    command = stage_command(stage, frozen[name])
                    running[name] = subprocess.Popen(
                        command, stdout=subprocess.DEVNULL, stderr=log, env=environment
                    )
                for early in tuple(received):  # they came while the process was being started
                    running[name].send_signal(early)
            time.sleep(_SECONDS_BETWEEN_LOOKS)
            ended = [name for name, child in running.items() if child.poll() is not None]
            codes |= {name: running.pop(name).returncode for name in ended}
    except BaseException:  # Ctrl-C reaches them without us
        for child in running.values():
            child.wait()
        raise
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
    for name, code in codes.items():
        if code:
            said = f"{stage} {name}"
            _refuse_failed(Ended(code, "", tuple(received)), said, f"see {_log_file(frozen[name])}")
    if received:
        signal.raise_signal(received[0])


def _log_file(frozen: Path) -> Path:
    return frozen.with_suffix(".log")


def _refuse_failed(ended: Ended, name: str, reason: str) -> None:
    """Do to this process what was done to the child, or raise for its exit code."""
    if ended.signals:
        signal.raise_signal(ended.signals[0])
    if ended.code == os.EX_TEMPFAIL:
        raise Preempted(f"{name}: stopped; the same command resumes it")
    if ended.code == 130:
        raise KeyboardInterrupt
    if ended.code:
        raise UserError(f"{name}: failed with exit code {ended.code}, {reason}; the same command resumes it")
