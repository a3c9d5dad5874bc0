"""A frozen study in a process of its own: how a sweep's worker and the probe both run one.

`run_child` starts the process, sends it the signals that this one gets, and says how it ended. Run as
`python -m monitorbench.sweeps.child train frozen=FILE`, this module is such a process without a checkout: it
does what `train/sft.py frozen=FILE` and `eval/evaluate.py frozen=FILE` do.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from monitorbench.config.base import Preempted, UserError
from monitorbench.config.entry import Script
from monitorbench.config.study import Study


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
    return [sys.executable, "-m", "monitorbench.sweeps.child", stage, f"frozen={frozen}"]


def run_stage(stage: str, frozen: Path, name: str) -> Path:
    """Run a stage, `train` or `evaluate`, on a frozen study in a child process; the directory it wrote.

    Its stderr is ours; its stdout holds no more than the directory. A signal is passed on, and then does to
    this process what it always does. Ctrl-C reaches both without that. Raises `UserError` where the child
    failed, `Preempted` where it was stopped; `name` is what of it is said.
    """
    ended = run_child(stage_command(stage, frozen), (signal.SIGUSR1, signal.SIGTERM))
    if ended.signals:
        signal.raise_signal(ended.signals[0])
    if ended.code == os.EX_TEMPFAIL:
        raise Preempted(f"{name}: stopped; the same command resumes it")
    if ended.code == 130:
        raise KeyboardInterrupt
    if ended.code:
        raise UserError(
            f"{name}: failed with exit code {ended.code}, for the reason above; the same command resumes it"
        )
    return Path(ended.last_line)


def _train(study: Study) -> Path:
    """Train as `train/sft.py` does."""
    from monitorbench.training.stage import train

    return train(study)


def _evaluate(study: Study) -> Path:
    """Judge as `eval/evaluate.py` does."""
    from monitorbench.judging.adapters import evaluate_each

    return evaluate_each(study)


if __name__ == "__main__":
    _stage = sys.argv.pop(1)
    Script({"train": _train, "evaluate": _evaluate}[_stage], _stage, Path())()
