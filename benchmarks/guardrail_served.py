"""The judge of a benchmark as a guardrail serves it, in a process that imports no more than a guardrail.

Its memory is the guardrail's, so nothing here builds or reads data.
"""

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measuring import composed
from monitorbench.config.deployment import Serve
from monitorbench.guardrail.calibrated import Calibrated, ServedJudge, open_part
from monitorbench.guardrail.monitor import OpenMonitor
from monitorbench.guardrail.runner import Runner
from monitorbench.guardrail.service import serving
from monitorbench.judging.identity import judge_spec
from monitorbench.judging.judge import Judge, Question
from monitorbench.judging.serving.asked import asked_in, json_in, sample_asked
from monitorbench.records import Sample, Verdict
from monitorbench.scoring.operating_point import CalibratedThreshold, threshold_point

TIMEOUT, WARM_UP = 120.0, 3
BODIES = "bodies.jsonl"


@contextmanager
def running(server: Any) -> Iterator[int]:
    """Serve in a thread of its own while the body runs; yields the port."""
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.port
    finally:
        server.shutdown()
        thread.join()


class Taken(NamedTuple):
    """What the judge itself took for each request."""

    took: list[float]
    cpu: list[float]
    """Processor seconds of the service meanwhile."""


def serve_judge(work: str, settings: list[str]) -> Taken:
    """Serve a judge at the median of its scores until the input ends; prints the port first."""
    folder, study = Path(work), composed("evaluate", settings)
    spec = judge_spec(study.monitor, study.engine, study.prompt)
    judge = TimedJudge(open_part(ServedJudge(spec, study), TIMEOUT))
    scores = []
    for body in (folder / BODIES).read_bytes().splitlines():
        (verdict,) = judge.verdicts([sample_asked(asked_in(json_in(body), "show").exchange, None)])
        scores.append(verdict.score or 0.0)
    judge.taken = Taken([], [])
    bound = f"{spec.monitor.name}/benchmark/0"
    runner = Runner(spec.monitor.name, lambda: judge, lambda: judge)
    point = threshold_point(threshold_at(float(np.median(scores)), bound))
    monitor = OpenMonitor(Calibrated(folder, point, folder, None, {}), {bound: runner})
    serve = Serve(guardrail=True, timeout_seconds=TIMEOUT, at_once=1000)
    with serving(monitor, serve, folder, 0, None) as (server, _), running(server) as port:
        print(port, flush=True)
        sys.stdin.read()
    runner.close()
    return judge.taken


class TimedJudge(Judge):
    """A judge, and what each call of its `verdicts` took."""

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge.prompt)
        self._judge = judge
        self.taken = Taken([], [])

    def question(self, sample: Sample) -> Question:
        """See `Judge.question`."""
        return self._judge.question(sample)

    def ask(self, questions: Sequence[Question]) -> Iterator[tuple[int, Verdict]]:
        """See `Judge.ask`."""
        return self._judge.ask(questions)

    def verdicts(self, samples: Sequence[Sample]) -> list[Verdict]:
        """See `Judge.verdicts`."""
        began, cpu = time.perf_counter(), time.process_time()
        verdicts = self._judge.verdicts(samples)
        self.taken.took.append(time.perf_counter() - began)
        self.taken.cpu.append(time.process_time() - cpu)
        return verdicts


def threshold_at(threshold: float, monitor: str) -> CalibratedThreshold:
    """Make a threshold that promises nothing."""
    return CalibratedThreshold(
        method="neyman_pearson",
        monitor=monitor,
        category="",
        data="benchmark",
        part="whole",
        alpha=0.5,
        n=0,
        n_unscored=0,
        threshold=threshold,
    )
