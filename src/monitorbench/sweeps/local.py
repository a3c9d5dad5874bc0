"""A sweep on this machine: the same frozen studies, markers and logs, some processes at a time."""

import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from types import FrameType

from monitorbench.runs.progress import progress
from monitorbench.sweeps.manifest import Sweep, worker_command


def run_here(sweep: Sweep, runs: Sequence[int], jobs: int) -> dict[int, int]:
    """Do some runs, `jobs` at a time, each to its `run-<NNN>.log`; returns their exit codes.

    One that fails stops no other. Ctrl-C or TERM is passed on to those that run, and no more are started.
    """
    pool = _Processes(sweep)
    codes: dict[int, int] = {}
    previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        with ThreadPoolExecutor(jobs) as threads:
            futures = {threads.submit(pool.run, run): run for run in runs}
            try:
                with progress(sweep.path.name, len(runs)) as ticker:
                    for future in as_completed(futures):
                        codes[futures[future]] = future.result()
                        ticker.advance()
            except BaseException:
                pool.stop()
                raise
    finally:
        signal.signal(signal.SIGTERM, previous)
    return codes


class _Processes:
    """The workers that are running."""

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def run(self, number: int) -> int:
        command = worker_command(self._sweep, number)
        with self._sweep.file(number, "log").open("ab") as log:
            with self._lock:
                if self._stopped:
                    return 130
                # A session of its own: Ctrl-C reaches it once, through `stop`.
                # Nor is a run here its own job where all of this happens inside one.
                process = subprocess.Popen(
                    command, stdout=log, stderr=log, start_new_session=True, env=_without_job()
                )
                self._running.add(process)
            code = process.wait()
            with self._lock:
                self._running.discard(process)
            return code

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.send_signal(signal.SIGTERM)


def _without_job() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "SLURM_JOB_ID"}


def _interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt
