"""A command's wall time and memory, as the benchmarks report them."""

import os
import subprocess
import threading
import time
from pathlib import Path
from typing import NamedTuple

import psutil

ROOT = Path(__file__).resolve().parents[1]


class Measured(NamedTuple):
    """Wall time, and the largest sum of resident memory over a process and all its descendants."""

    seconds: float
    peak_mib: float
    output: str


def measured(command: list[str]) -> Measured:
    """Run a command and watch its memory; its last line on stdout is `output`."""
    peak = 0.0
    ended = threading.Event()
    began = time.monotonic()
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as process:

        def watch() -> None:
            nonlocal peak
            while not ended.wait(0.05):
                peak = max(peak, resident_mib(process.pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        out, _ = process.communicate()
        ended.set()
        watcher.join()
    if process.returncode:
        raise SystemExit(f"{Path(command[1]).name} ended with exit code {process.returncode}")
    return Measured(time.monotonic() - began, peak, (out.strip().splitlines() or [""])[-1])


def resident_mib(pid: int) -> float:
    """Resident memory of a process and its descendants; pages that they share count once for each."""
    total = 0.0
    try:
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return total
    for member in family:
        try:
            total += member.memory_info().rss / 2**20
        except psutil.NoSuchProcess:  # it ended between the two questions
            continue
    return total
