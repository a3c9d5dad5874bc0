"""One run of a sweep, in Slurm or not: `python -m monitorbench.sweeps.worker SWEEP NUMBER`.

Starts the script on its frozen study and leaves a marker: `.done`, a link to the directory it printed,
or `.failed` with its exit code, which is this process's too. USR1, TERM and INT are passed on to the
script. One that then stops resumably (exit code 75) leaves no marker: it is pending, and in Slurm it is put
back into the queue at once, unless somebody cancelled it.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from monitorbench.config.base import UserError
from monitorbench.config.preemption import SWEEP_VARIABLE
from monitorbench.runs.files import write_atomically, write_json
from monitorbench.sweeps.child import run_child
from monitorbench.sweeps.manifest import Sweep, read

_PASSED_ON = (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT)


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
        for one in _PASSED_ON:  # until the child is there, and once it has ended, they change nothing
            signal.signal(one, lambda *_: None)
        code, last_line, signals = run_child(
            [sys.executable, str(sweep.manifest.script), f"frozen={sweep.file(number, 'json')}"],
            _PASSED_ON,
            folder=sweep.manifest.folder,
            environment={**os.environ, SWEEP_VARIABLE: sweep.path.name},
            on_line=lambda line: print(line, end="", flush=True),
        )
    finally:
        running.unlink(missing_ok=True)
    if code == os.EX_TEMPFAIL or (signals and code in (130, *(-one for one in signals))):
        print(f"run {number}: stopped, to be resumed", file=sys.stderr, flush=True)
        if job and not {signal.SIGTERM, signal.SIGINT}.intersection(signals):
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


def _requeue(job: str) -> None:
    """Back into the queue; Slurm then ends this process. A run that can't go back is pending."""
    for one in _PASSED_ON:
        signal.signal(one, signal.SIG_DFL)
    try:
        asked = ["scontrol", "requeue", job]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
    except OSError as error:
        print(f"scontrol: {error.strerror}; resume.py starts it again", file=sys.stderr, flush=True)
        return
    if done.returncode:
        reason = " ".join(done.stderr.split())
        print(f"scontrol requeue: {reason}; resume.py starts it again", file=sys.stderr, flush=True)
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
