"""Frozen studies in processes of their own: alone, several side by side, or as a run of a sweep.

`python -m monitorbench.sweeps.worker SWEEP NUMBER` does one run of a sweep, in Slurm or not. It starts the
stage on its frozen study and leaves a marker: `.done`, a link to the directory it printed, or `.failed` with
its exit code, which is this process's too. USR1, TERM, INT and HUP are passed on to the stage. A stage that
then stops resumably (exit code 75) leaves no marker: its run is pending, and in Slurm it is put back into the
queue at once, unless somebody cancelled it.
"""

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from monitorbench.config.base import Preempted, UserError
from monitorbench.config.ending import SWEEP_VARIABLE
from monitorbench.runs.files import write_atomically, write_json
from monitorbench.sweeps.sweep import Sweep, read

_PASSED_ON = (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_SECONDS_BETWEEN_LOOKS = 0.1
_log = logging.getLogger(__name__)


class Ended(NamedTuple):
    """How a child process ended."""

    code: int
    """The exit code, negative where a signal ended the process."""
    last_line: str
    """The last line it printed that is not empty: the directory that a stage wrote."""
    signals: tuple[signal.Signals, ...]
    """Signals that this process was sent meanwhile and passed on."""


@contextmanager
def _passing_on(children: Callable[[], Sequence[subprocess.Popen[str]]]) -> Iterator[list[signal.Signals]]:
    """Pass signals on to the children that run; gives those that came. To be used in the main thread.

    What is ignored here, as HUP is under nohup, stays so.
    """
    received: list[signal.Signals] = []

    def pass_on(number: int, _: FrameType | None) -> None:
        received.append(signal.Signals(number))
        for child in children():
            child.send_signal(number)

    taken = [number for number in _PASSED_ON if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, pass_on) for number in taken}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_child(
    command: Sequence[str],
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    on_line: Callable[[str], None] = lambda _: None,
) -> Ended:
    """Run a command until it ends; to be called in the main thread.

    USR1, TERM, INT and HUP that reach this process are sent to the child and else have no effect; the
    handlers before are set again at the end. `on_line` gets every line of the child's stdout as it comes.
    """
    children: list[subprocess.Popen[str]] = []
    with _passing_on(lambda: children) as received:
        child = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C reaches it once, through us
            text=True,
            errors="replace",
        )
        with child:
            children.append(child)
            for early in tuple(received):  # they came while the process was being started
                child.send_signal(early)
            assert child.stdout is not None
            last_line = ""
            for line in child.stdout:
                on_line(line)
                last_line = line.strip() or last_line
            code = child.wait()
    return Ended(code, last_line, tuple(received))


def run_side_by_side(
    commands: Mapping[str, tuple[Sequence[str], Path]],
    jobs: int,
    *,
    stop_at_failure: bool = False,
    environment: Mapping[str, str] | None = None,
    on_start: Callable[[str], None] = lambda _: None,
    on_end: Callable[[str, int], None] = lambda name, code: None,
) -> tuple[dict[str, int], list[signal.Signals]]:
    """Run named commands, `jobs` at a time, each with its output in its log; to be called in the main thread.

    USR1, TERM, INT and HUP are passed on to all that run, and no more are started. Returns the exit codes of
    those that ran and the signals that came.
    """
    waiting, running = list(commands), dict[str, subprocess.Popen[str]]()
    codes: dict[str, int] = {}
    with _passing_on(lambda: list(running.values())) as received:
        while True:
            is_over = bool(received) or (stop_at_failure and any(codes.values()))
            while waiting and len(running) < jobs and not is_over:
                name = waiting.pop(0)
                command, log = commands[name]
                on_start(name)
                with log.open("ab") as output:
                    running[name] = subprocess.Popen(
                        command,
                        stdout=output,
                        stderr=output,
                        env=environment,
                        start_new_session=True,
                        text=True,
                    )
                for early in tuple(received):  # they came while the process was being started
                    running[name].send_signal(early)
                is_over = bool(received)
            for name in [name for name, child in running.items() if child.poll() is not None]:
                codes[name] = running.pop(name).returncode
                on_end(name, codes[name])
            if not running and (not waiting or is_over or received):
                return codes, received
            time.sleep(_SECONDS_BETWEEN_LOOKS)


def stage_command(stage: str, frozen: Path) -> list[str]:
    """Build the command that runs a stage, `train` or `evaluate`, on a frozen study."""
    return [sys.executable, "-m", "monitorbench.cli", stage, f"frozen={frozen}"]


def run_stage(stage: str, frozen: Path, name: str) -> Path:
    """Run a stage, `train` or `evaluate`, on a frozen study in a child process; returns what it wrote.

    Its stderr is ours; its stdout holds no more than the directory. A signal is passed on, and then does to
    this process what it always does. Raises `UserError` where the child
    failed, `Preempted` where it was stopped; `name` stands for it in the message.
    """
    ended = run_child(stage_command(stage, frozen))
    _refuse_failed(ended, name, "for the reason above")
    return Path(ended.last_line)


def run_stages(stage: str, frozen: Mapping[str, Path], jobs: int) -> None:
    """Run a stage on several frozen studies by name, `jobs` at a time, each with its share of the cores.

    A child's output is in a `.log` beside its study. Once a child has failed no more are started; those
    that run end, and `UserError` names the failed child and its log. Raises as `run_stage` otherwise; to be
    called in the main thread.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    logs = {name: file.with_suffix(".log") for name, file in frozen.items()}
    commands = {name: (stage_command(stage, file), logs[name]) for name, file in frozen.items()}
    order = list(frozen)
    codes, received = run_side_by_side(
        commands,
        jobs,
        stop_at_failure=True,
        environment={**os.environ, "OMP_NUM_THREADS": str(max(1, cores // jobs))},
        on_start=lambda name: _log.info(
            "%s %s (%d left): %s", stage, name, len(order) - order.index(name) - 1, logs[name]
        ),
    )
    for name, code in codes.items():
        if code:
            _refuse_failed(Ended(code, "", tuple(received)), f"{stage} {name}", f"see {logs[name]}")
    if received:
        signal.raise_signal(received[0])


def _refuse_failed(ended: Ended, name: str, reason: str) -> None:
    """Raise in this process the signal that the child received, or an error for its exit code."""
    if ended.signals:
        signal.raise_signal(ended.signals[0])
    if ended.code == os.EX_TEMPFAIL:
        raise Preempted(f"{name}: stopped; the same command resumes it")
    if ended.code == 130:
        raise KeyboardInterrupt
    if ended.code:
        raise UserError(f"{name}: failed with exit code {ended.code}, {reason}; the same command resumes it")


def run(sweep: Sweep, number: int) -> int:
    """Do one run of a sweep; returns its exit code, negative where a signal ended it."""
    done, failed, running = (sweep.file(number, ending) for ending in ("done", "failed", "running"))
    if done.is_symlink():
        print(f"done already: {done.resolve()}", flush=True)
        return 0
    print(sweep.title(number), flush=True)
    failed.unlink(missing_ok=True)
    job = os.environ.get("SLURM_JOB_ID")
    write_json(running, {"host": socket.gethostname(), "pid": os.getpid(), "job": job})
    frozen, script = sweep.file(number, "json"), sweep.manifest.script
    command = [sys.executable, script, f"frozen={frozen}"]
    try:
        for number_passed_on in _PASSED_ON:  # until the child is there and once it has ended, they do nothing
            signal.signal(number_passed_on, lambda *_: None)
        code, last_line, signals = run_child(
            command if script.endswith(".py") else stage_command(script, frozen),
            folder=sweep.manifest.folder,
            environment={**os.environ, SWEEP_VARIABLE: sweep.path.name},
            on_line=lambda line: print(line, end="", flush=True),
        )
    finally:
        running.unlink(missing_ok=True)
    if code == os.EX_TEMPFAIL or (signals and code in (130, *(-sent for sent in signals))):
        print(f"{sweep.title(number)}: stopped, to be resumed", file=sys.stderr, flush=True)
        if job and not {signal.SIGTERM, signal.SIGINT}.intersection(signals):
            _requeue(job)
        return os.EX_TEMPFAIL
    directory = sweep.manifest.folder / last_line
    if code == 0 and last_line and directory.exists():
        link = done.with_name(f".{done.name}.part-{os.getpid()}")
        link.symlink_to(os.path.relpath(directory, sweep.path))
        link.replace(done)
        return 0
    if code == 0:
        print(f"its last line is no directory: {last_line!r}", file=sys.stderr, flush=True)
    write_atomically(failed, f"{code or 1}\n")
    return code or 1


def _requeue(job: str) -> None:
    """Put a job back into the queue; Slurm then ends this process. A run that can't go back is pending."""
    for number in _PASSED_ON:
        signal.signal(number, signal.SIG_DFL)
    try:
        command = ["scontrol", "requeue", job]
        ended = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        reason = " ".join(ended.stderr.split()) or f"exit code {ended.returncode}"
        is_requeued = ended.returncode == 0
    except OSError as error:
        reason, is_requeued = str(error.strerror), False
    if is_requeued:
        time.sleep(60)
    else:
        print(f"scontrol requeue: {reason}; the same command starts it again", file=sys.stderr, flush=True)


def main() -> None:
    """Run what the command line names, and exit as it did."""
    try:
        code = run(read(Path(sys.argv[1])), int(sys.argv[2]))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        code = 1
    raise SystemExit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
