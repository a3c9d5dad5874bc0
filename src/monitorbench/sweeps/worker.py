"""One run of a sweep, in Slurm or not: `python -m monitorbench.sweeps.worker SWEEP NUMBER`.

Starts the script on its frozen study and leaves a marker: `.done`, a link to the directory it printed,
or `.failed` with its exit code, which is this process's too. USR1, TERM and INT go on to the script. One
that then stops resumably (exit code 75) leaves no marker: it is owed, and in Slurm it is put back into
the queue at once, unless somebody cancelled it.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

from monitorbench.config.base import UserError
from monitorbench.config.preemption import SWEEP_VARIABLE
from monitorbench.runs.files import write_atomically, write_json
from monitorbench.sweeps.manifest import Sweep, read

_FORWARDED = (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT)


def run(sweep: Sweep, number: int) -> int:
    """Do one run; returns its exit code, negative where a signal ended it."""
    done, failed, running = (sweep.file(number, ending) for ending in ("done", "failed", "running"))
    if done.is_symlink():
        print(f"done already: {done.resolve()}", flush=True)
        return 0
    failed.unlink(missing_ok=True)
    job = os.environ.get("SLURM_JOB_ID")
    write_json(running, {"host": socket.gethostname(), "pid": os.getpid(), "job": job})
    try:
        child = _Child(sweep, number)
        code, last_line = child.wait()
    finally:
        running.unlink(missing_ok=True)
    if code == os.EX_TEMPFAIL or (child.told and code in (130, *(-one for one in child.told))):
        print(f"run {number}: stopped, to be gone on with", file=sys.stderr, flush=True)
        if job and not {signal.SIGTERM, signal.SIGINT} & child.told:
            _requeue(job)
        return os.EX_TEMPFAIL
    directory = sweep.manifest.folder / last_line
    if code == 0 and last_line and directory.exists():
        part = done.with_name(f".{done.name}.part-{os.getpid()}")
        part.symlink_to(os.path.relpath(directory, sweep.path))
        part.replace(done)
        return 0
    if code == 0:
        print(f"run {number}: its last line is no directory: {last_line!r}", file=sys.stderr, flush=True)
    write_atomically(failed, f"{code or 1}\n")
    return code or 1


class _Child:
    """The script's process, which is sent whatever signal this one gets."""

    def __init__(self, sweep: Sweep, number: int) -> None:
        self.told: set[int] = set()
        self._process: subprocess.Popen[str] | None = None
        for one in _FORWARDED:
            signal.signal(one, self._forward)
        self._process = subprocess.Popen(
            [sys.executable, str(sweep.manifest.script), f"frozen={sweep.file(number, 'json')}"],
            cwd=sweep.manifest.folder,
            stdout=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, SWEEP_VARIABLE: sweep.path.name},
        )
        for early in self.told:
            self._process.send_signal(early)

    def wait(self) -> tuple[int, str]:
        """Its exit code and the last line it printed; the lines are passed on as they come."""
        assert self._process is not None
        assert self._process.stdout is not None
        last_line = ""
        for line in self._process.stdout:
            print(line, end="", flush=True)
            last_line = line.strip() or last_line
        return self._process.wait(), last_line

    def _forward(self, number: int, _: FrameType | None) -> None:
        self.told.add(number)
        if self._process is not None:
            self._process.send_signal(number)


def _requeue(job: str) -> None:
    """Back into the queue; Slurm then ends this process. A run that can't go back is owed."""
    for one in _FORWARDED:
        signal.signal(one, signal.SIG_DFL)
    try:
        asked = ["scontrol", "requeue", job]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
    except OSError as error:
        print(f"scontrol: {error.strerror}; resume.py starts it again", file=sys.stderr, flush=True)
        return
    if done.returncode:
        said = " ".join(done.stderr.split())
        print(f"scontrol requeue: {said}; resume.py starts it again", file=sys.stderr, flush=True)
        return
    time.sleep(60)


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
