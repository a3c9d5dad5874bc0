"""`eval/evaluate.py` as processes of their own, forked from one that has imported what the script needs.

So a run costs its own work and not ten seconds of imports.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from endpoint_server import EndpointServer

from monitorbench.runs.keyed_log import read_verdicts

ROOT = Path(__file__).resolve().parents[2]
FORKS = """
import importlib, json, os, resource, runpy, signal, sys, traceback
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
from monitorbench.engines.endpoint import limits as endpoint_limits
endpoint_limits.FIRST_BACKOFF_SECONDS = 0.005
for line in sys.stdin:
    asked = json.loads(line)
    if "wait" in asked:
        print(os.waitstatus_to_exitcode(os.waitpid(asked["wait"], 0)[1]), flush=True)
        continue
    if pid := os.fork():
        print(pid, flush=True)
        continue
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(asked[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    if asked["bytes"]:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (asked["bytes"], asked["bytes"]))
    if asked["dies_at_the_limit"]:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python would get an error instead
    sys.argv, code = ["eval/evaluate.py", *asked["overrides"]], 0
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as error:
        code = error.code or 0
    except BaseException:
        traceback.print_exc()
        code = 70
    sys.stdout.flush()
    os._exit(code)
"""


class Fork:
    """One run of `eval/evaluate.py` in a process of its own."""

    def __init__(self, forks: "Forks", pid: int, out: Path, err: Path) -> None:
        self._forks, self.pid, self._out, self._err = forks, pid, out, err

    def kill(self) -> None:
        """SIGKILL; only before `ends`."""
        os.kill(self.pid, signal.SIGKILL)

    def ends(self) -> int:
        """Wait for it: its exit code, negative for a signal."""
        code = int(self._forks.tell(wait=self.pid))
        self._forks.alive.remove(self.pid)
        return code

    @property
    def said(self) -> str:
        """Its stderr."""
        return self._err.read_text()

    @property
    def run(self) -> Path:
        """The run directory that it printed."""
        return Path(self._out.read_text().splitlines()[-1])


class Forks:
    """The process that forks."""

    def __init__(self, folder: Path, *modules: str) -> None:
        self._folder, self._number = folder, 0
        self.alive: list[int] = []
        command = [sys.executable, "-c", FORKS, json.dumps(modules)]
        # Without a commit no file of a run is as long as the logs here.
        environment = {**os.environ, "GIT_DIR": os.devnull, "NO_PROXY": "127.0.0.1", "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def tell(self, **what: Any) -> str:
        """Send one request; its answer."""
        assert self.process.stdin
        assert self.process.stdout
        print(json.dumps(what), file=self.process.stdin, flush=True)
        return self.process.stdout.readline()

    def start(self, *overrides: str, bytes: int = 0, dies_at_the_limit: bool = False) -> Fork:
        """Begin a run; no file of it may exceed `bytes`, where given."""
        self._number += 1
        out, err = (self._folder / f"{self._number}.{name}" for name in ("out", "err"))
        what = {"overrides": overrides, "bytes": bytes, "dies_at_the_limit": dies_at_the_limit}
        self.alive.append(int(self.tell(out=str(out), err=str(err), **what)))
        return Fork(self, self.alive[-1], out, err)


@contextmanager
def forking(folder: Path, *modules: str) -> Iterator[Forks]:
    forks = Forks(folder, *modules)
    try:
        yield forks
    finally:
        for pid in forks.alive:  # of a test that failed
            os.kill(pid, signal.SIGKILL)
        assert forks.process.stdin
        forks.process.stdin.close()
        forks.process.wait()


@dataclass
class World:
    """The endpoint, the data, and the process that forks."""

    forks: Forks
    server: EndpointServer
    data: Path
    folder: Path
    setting: str = "engine.max_failed=0.02"
    """Of every run."""

    def start(self, runs: str, *overrides: str, **limits: Any) -> Fork:
        """Begin `eval/evaluate.py` on data and runs of its own."""
        return self.forks.start(
            "dataset=jsonl",
            f"dataset.path={self.data}",
            f"paths.data={self.folder / runs / 'data'}",
            f"paths.runs={self.folder / runs}",
            "engine=openai",
            f"engine.base_url={self.server.base_url}",
            "engine.concurrency=5",
            "engine.timeout_seconds=20",
            "engine.prices={prompt: 1.0, cached_prompt: null, completion: 2.0}",
            self.setting,
            *overrides,
            **limits,
        )

    def log(self, runs: str) -> Path:
        """The verdict log of the only run there, which need not be there yet."""
        return next((self.folder / runs / "evaluate").glob("*/verdicts.jsonl"), self.folder / "none")

    def judged(self, runs: str) -> int:
        """How many verdicts there are."""
        log = self.log(runs)
        return len(read_verdicts(log)) if log.is_file() else 0


def write_data(path: Path, pairs: int) -> Path:
    """So many pairs whose text has the sample's number."""
    rows = [
        {
            "request": f"Question {pair}?",
            "response": f"This is statement {2 * pair + side} of many.",
            "label": label,
            "category": "safety_permission",
            "task": "qa",
            "pair_id": f"pair {pair}",
            "split": "test",
        }
        for pair in range(pairs)
        for side, label in enumerate(("benign", "misbehavior"))
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def number_of(text: str) -> int:
    """A sample's, in a text that shows it."""
    return int(text.rpartition("statement ")[2].partition(" ")[0])
