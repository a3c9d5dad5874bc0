"""How benchmarks measure: studies as scripts compose them, time and memory of a command, what comes out."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import psutil
from hydra import compose, initialize_config_dir
from hydra.errors import HydraException

from monitorbench.config.base import ConfigError
from monitorbench.config.load import load
from monitorbench.config.study import Study
from monitorbench.records import Sample

ROOT = Path(__file__).resolve().parents[1]
RUN = ROOT / "benchmarks" / "run.py"
T = TypeVar("T")


class Ratio(NamedTuple):
    """A figure that a benchmark exists for, and the bar that it has to keep."""

    value: float
    most: float | None = None
    least: float | None = None

    @property
    def bar(self) -> str:
        """The bar as text; empty where there is none."""
        bars = (("<=", self.most), (">=", self.least))
        return " ".join(f"{sign} {limit:g}" for sign, limit in bars if limit is not None)

    @property
    def is_missed(self) -> bool:
        """Whether the figure is on the wrong side of its bar, or is no number."""
        above = self.most is not None and not self.value <= self.most
        return above or (self.least is not None and not self.value >= self.least)


class Result(NamedTuple):
    """Results of a benchmark: `run.py` prints the first two, and writes all three to `ratios.json`."""

    rows: Mapping[str, Mapping[str, float]]
    """Figures by name, of each thing that was measured."""
    ratios: Mapping[str, Ratio]
    details: Mapping[str, Any] = {}


class Measured(NamedTuple):
    """Wall time, and the largest sum of resident memory over a process and all its descendants."""

    seconds: float
    peak_mib: float
    output: str
    """The last line on stdout."""

    @property
    def row(self) -> dict[str, float]:
        """The two figures, as a `Result` has them."""
        return {"seconds": self.seconds, "peak_mib": self.peak_mib}


def measured(command: Sequence[str | Path], changes: Mapping[str, str] | None = None) -> Measured:
    """Run a command, its environment changed, and watch its memory. Raises `SystemExit` where it fails."""
    peak = 0.0
    ended = threading.Event()
    began = time.monotonic()
    changed = environment(**changes or {})
    with subprocess.Popen(command, cwd=ROOT, env=changed, stdout=subprocess.PIPE, text=True) as process:

        def watch() -> None:
            nonlocal peak
            while not ended.wait(0.05):
                peak = max(peak, _resident_mib(process.pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        out, _ = process.communicate()
        ended.set()
        watcher.join()
    if process.returncode:
        name = " ".join(Path(part).name for part in command[1:4])
        raise SystemExit(f"{name} ended with exit code {process.returncode}")
    return Measured(time.monotonic() - began, peak, (out.strip().splitlines() or [""])[-1])


def script(path: str, *settings: str) -> Measured:
    """Run one of the project's scripts, such as `eval/score.py`, and watch its memory."""
    return measured([sys.executable, ROOT / path, *settings])


def apart(function: str, *arguments: Any, changes: Mapping[str, str] | None = None) -> Measured:
    """Call `module:function` of this folder in a process of its own; `output` is its result as JSON."""
    return measured([sys.executable, RUN, "--side", function, json.dumps(arguments, default=str)], changes)


def _resident_mib(pid: int) -> float:
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


def timed(work: Callable[[], T], times: int = 1) -> tuple[float, T]:
    """Seconds of the fastest of `times` calls, and what the last one gave."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - began)
    return min(seconds), result


def in_turns(names: Iterable[str], number: int) -> list[str]:
    """Names in the order of their turns: who is first changes from one `number` to the next."""
    order = list(names)
    first = number % len(order)
    return order[first:] + order[:first]


def over_usual(ours: Measured, usual: Measured, seconds: float, mib: float) -> dict[str, Ratio]:
    """Ratios of the usual way to ours, and of ours to the seconds and MiB that it may take."""
    return {
        "usual_seconds_over_ours": Ratio(usual.seconds / ours.seconds),
        "usual_memory_over_ours": Ratio(usual.peak_mib / ours.peak_mib),
        "seconds_over_the_limit": Ratio(ours.seconds / seconds, most=1),
        "memory_over_the_limit": Ratio(ours.peak_mib / mib, most=1),
    }


def environment(**changes: str) -> dict[str, str]:
    """This process's environment with some changes; Python keeps its bytecode, as it does for a user."""
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**usual, **changes}


def composed(primary: str, settings: Sequence[str]) -> Study:
    """Compose the study of a script: `evaluate` for `eval/evaluate.py`. Raises `SystemExit` of one line."""
    try:
        with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
            return load(compose(primary, list(settings)))
    except (HydraException, ConfigError) as error:
        raise SystemExit(f"error: {str(error).splitlines()[0]}") from None


def body_of(sample: Sample) -> bytes:
    """The JSON that a client sends of a sample."""
    return json.dumps(sample.model_dump(mode="json", include={"request", "response"})).encode()
