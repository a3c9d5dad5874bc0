"""The guardrail beside its bare judge: what it adds to a request, 200 requests at once, and load for a while.

One process: the judge as it is opened for serving, asked directly (in the thread that the server asks it in)
and through `POST /guardrail` on the loopback, in turning order, so that a noisy machine disturbs both alike;
each request is a connection of its own. What is added is what a client waited less what the judge itself took
for that request; the difference of the medians stands beside it, and so does the processor time, client
included, which a busy machine changes least. The samples are the shortest of the test
split: what is added is the same for long ones, and a slow core takes half a second for each of these.

Then `--at-once` clients ask at the same moment; then `--clients` ask for `--seconds` without a pause, among
them some with a malformed body and one with 20 MB; for ten minutes of load `--seconds 600`. The threshold is
the median score, so that both actions come. Expected: an answer to every request, a line in the log for each
that was judged, and no pass without a score.

With `--outage 1` the model is a server of `eval/serve.py` (`engine=vllm`) that the guardrail asks by
`engine=served`, as in production: it gets SIGKILL after a third of the load, and after half of it there is
another. What is added is not measured then.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import numpy as np

from benchmarks.clients import (
    TIMEOUT,
    answered,
    ask,
    ask_at_once,
    load,
    percentiles,
    running,
    safety_ratios,
)
from benchmarks.judged import body_of, judged_samples
from benchmarks.measuring import ROOT, Ratio, Result, in_turns
from monitorbench.config.deployment import Serve
from monitorbench.config.study import Study
from monitorbench.guardrail.calibrated import Calibrated, ServedJudge, open_part
from monitorbench.guardrail.decision import read_lines
from monitorbench.guardrail.monitor import OpenMonitor, open_monitor
from monitorbench.guardrail.runner import Runner
from monitorbench.guardrail.service import DECISIONS, serving
from monitorbench.judging.judge import Judge, Question, judge_spec, sample_of
from monitorbench.judging.serving.served import address_file, reach
from monitorbench.records import Sample, Verdict
from monitorbench.scoring.operating_point import CalibratedThreshold, threshold_point

WARM_UP, MOST_ADDED_MS, MOST_MEBIBYTES = 3, 3, 1024


def main(
    work: Path,
    *,
    requests: int,
    at_once: int,
    seconds: float,
    clients: int,
    outage: int,
    settings: list[str],
) -> Result:
    """Ask in both ways, then at once, then for a while; `outage`: a model that dies meanwhile."""
    if outage:
        return _outage(work, requests, at_once, seconds, clients, settings)
    study, samples = _shortest(["engine=transformers", f"paths.data={work / 'data'}", *settings], requests)
    spec = judge_spec(study.monitor, study.engine, study.prompt)
    judge = TimedJudge(open_part(ServedJudge(spec, study), TIMEOUT))
    scores = [float(verdict.score or 0.0) for verdict in judge.verdicts(samples)]
    _forget_peak()
    loaded, own = _mebibytes(), _mebibytes("RssAnon")
    with _guarded(judge, spec.monitor.name, float(np.median(scores)), work) as (port, runner):
        beside = _ask_in_both_ways(runner, port, samples, judge)
        together = ask_at_once(port, samples, at_once)
        under_load = load(port, samples, clients, seconds)
    rows = {name: percentiles(times) for name, times in beside.items()}
    rows |= {"at once": percentiles(answered(together)), "load": percentiles(answered(under_load))}
    replies = [*together, *under_load]
    between = rows["guardrail"]["p50 ms"] - rows["bare judge"]["p50 ms"]
    ratios = {
        "added, p50 in ms": Ratio(rows["added"]["p50 ms"], most=MOST_ADDED_MS),
        "added, p95 in ms": Ratio(rows["added"]["p95 ms"]),
        "added processor time, client included, p50 in ms": Ratio(rows["added CPU"]["p50 ms"]),
        "between the p50s, in ms": Ratio(between),
        "answers a second, under load": Ratio(len(answered(under_load)) / seconds),
        "memory with the model loaded, in MiB": Ratio(loaded),
        "of that anonymous, in MiB": Ratio(own),
        "most memory after that, clients included, in MiB": Ratio(_mebibytes(), most=MOST_MEBIBYTES),
        "anonymous at the end, in MiB": Ratio(_mebibytes("RssAnon")),
        **safety_ratios(replies, work / DECISIONS, len(beside["guardrail"]) + WARM_UP),
    }
    judged_replies = [reply for reply in replies if reply.status == 200]
    counts = {
        "statuses": dict(sorted(Counter(str(reply.status) for reply in replies).items())),
        "not_judged": sum(reply.answer.get("error") is not None for reply in judged_replies),
    }
    print(counts)
    return Result(rows, ratios, {**counts, "seconds": beside})


def _shortest(settings: list[str], n: int) -> tuple[Study, list[Sample]]:
    """The study, and its shortest samples; what rendered them is not kept, as no server has it twice."""
    judged = judged_samples(settings)
    shortest = sorted(zip(judged.samples, judged.prompts, strict=True), key=lambda pair: len(pair[1]))
    return judged.study, [sample_of(sample.request, sample.response) for sample, _ in shortest[:n]]


def _forget_peak() -> None:
    """Have the most memory counted from now on: loading a model takes more than judging with it."""
    Path("/proc/self/clear_refs").write_text("5")


def _mebibytes(what: str = "VmHWM") -> float:
    """The most that this process, its clients included, has had in memory since `_forget_peak`.

    `RssAnon` is what it has of its own now: libraries and files, which processes share, left out.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition(f"{what}:")[2].split()[0]) / 1024


class TimedJudge(Judge):
    """A judge, and the seconds of each call of its `verdicts`."""

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge.prompt)
        self._judge = judge
        self.took: list[float] = []
        self.cpu: list[float] = []
        """Processor seconds of the process meanwhile."""

    def question(self, sample: Sample) -> Question:
        """See `Judge.question`."""
        return self._judge.question(sample)

    def ask(self, questions: Sequence[Question]) -> Iterator[tuple[int, Verdict]]:
        """See `Judge.ask`."""
        return self._judge.ask(questions)

    def verdicts(self, samples: Sequence[Sample]) -> list[Verdict]:
        """See `Judge.verdicts`."""
        began, cpu = time.perf_counter(), time.process_time()
        found = self._judge.verdicts(samples)
        self.took.append(time.perf_counter() - began)
        self.cpu.append(time.process_time() - cpu)
        return found


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


@contextmanager
def _guarded(judge: Judge, name: str, threshold: float, work: Path) -> Iterator[tuple[int, Runner]]:
    """The port of a guardrail on that judge, and what asks the judge."""
    bound = f"{name}/benchmark/0"
    runner = Runner(name, lambda: judge, lambda: judge)
    point = threshold_point(threshold_at(threshold, bound))
    monitor = OpenMonitor(Calibrated(work, point, work, None, {}), {bound: runner})
    settings = Serve(guardrail=True, timeout_seconds=TIMEOUT, at_once=1000)
    with serving(monitor, settings, work, 0, None) as (server, _), running(server) as port:
        yield port, runner
    runner.close()


def _ask_in_both_ways(
    runner: Runner, port: int, samples: list[Sample], judge: TimedJudge
) -> dict[str, list[float]]:
    """Seconds of the bare judge, through the guardrail, and added by it, request by request."""
    seconds: dict[str, list[float]] = {"bare judge": [], "guardrail": [], "added": [], "added CPU": []}
    for number, sample in enumerate([*samples[:WARM_UP], *samples], start=-min(WARM_UP, len(samples))):
        for way in in_turns(("guardrail", "bare judge"), number):
            cpu = time.process_time()
            if way == "bare judge":
                runner.result(runner.begin(sample, time.monotonic() + TIMEOUT))
                waited = judge.took[-1]
            else:
                waited = ask(port, body_of(sample)).seconds
            if number >= 0:
                seconds[way].append(waited)
                if way == "guardrail":
                    seconds["added"].append(waited - judge.took[-1])
                    seconds["added CPU"].append(time.process_time() - cpu - judge.cpu[-1])
    return seconds


SERVED = "guardrail"
"""The name that the server of an outage is reached by."""


def _outage(
    work: Path, requests: int, at_once: int, seconds: float, clients: int, settings: list[str]
) -> Result:
    """Ask through the guardrail while its model dies and comes back, and count what was answered when."""
    settings = [f"paths.runs={work / 'runs'}", f"paths.data={work / 'data'}", *settings]
    served = ["engine=served", f"engine.server={SERVED}", "engine.server_seconds=600"]
    server = _start(settings, work)
    try:
        study, samples = _shortest([*served, *settings], requests)
        reached, bound = reach(study), f"{SERVED}/benchmark/0"
        judge = ServedJudge(judge_spec(reached.monitor, reached.engine, reached.prompt), study)
        opened = open_part(judge, TIMEOUT)
        limit = float(np.median([verdict.score or 0.0 for verdict in opened.verdicts(samples)]))
        opened.close()
        calibrated = Calibrated(work, threshold_point(threshold_at(limit, bound)), work, None, {bound: judge})
        serve = Serve(guardrail=True)
        with (
            open_monitor(calibrated, serve.timeout_seconds) as monitor,
            serving(monitor, serve, work, 0, None) as (listening, _),
            running(listening) as port,
            ThreadPoolExecutor(1) as beside,
        ):
            together = ask_at_once(port, samples, at_once)
            dying = beside.submit(_die_and_come_back, server, study, settings, seconds, work)
            under_load = load(port, samples, clients, seconds)
            (died, started, back), server = dying.result()
    finally:
        _end(server)
    phases: dict[str, Counter[str]] = {name: Counter() for name in ("before", "away", "back")}
    scored_dead = 0
    for line in read_lines(work / DECISIONS)[-len(answered(under_load)) :]:
        moment = datetime.fromisoformat(line["time"]).timestamp()
        phase = "before" if moment < died else "away" if moment < back else "back"
        phases[phase]["with a score" if line["error"] is None else line["error"]] += 1
        scored_dead += line["score"] is not None and died + 1 < moment < started
    ratios = safety_ratios([*together, *under_load], work / DECISIONS)
    ratios["scored while the model was dead"] = Ratio(scored_dead, most=0)
    rows = {"at once": percentiles(answered(together)), "load": percentiles(answered(under_load))}
    print(phases)
    return Result(rows, ratios, {"phases": phases})


def _start(settings: list[str], work: Path) -> "subprocess.Popen[bytes]":
    """Start `eval/serve.py` as a process, its output in a file."""
    command = [sys.executable, str(ROOT / "eval" / "serve.py"), "engine=vllm", f"engine.served_as={SERVED}"]
    with (work / "server.out").open("ab") as stream:
        return subprocess.Popen([*command, *settings], cwd=ROOT, stdout=stream, stderr=stream)


def _end(server: "subprocess.Popen[bytes]") -> None:
    server.send_signal(signal.SIGTERM)
    server.wait(60)


def _die_and_come_back(
    server: "subprocess.Popen[bytes]", study: Study, settings: list[str], seconds: float, work: Path
) -> tuple[tuple[float, float, float], "subprocess.Popen[bytes]"]:
    """Kill the model after a third of the time and start another after half; when each was, and that one."""
    began = time.time()
    time.sleep(seconds / 3)
    os.killpg(json.loads(address_file(study.paths.runs, SERVED).read_text())["pid"], signal.SIGKILL)
    died = time.time()
    server.wait(60)
    time.sleep(max(0.0, began + seconds / 2 - time.time()))
    started = time.time()
    server = _start(settings, work)
    try:
        reach(study)
    except BaseException:
        _end(server)
        raise
    return (died, started, time.time()), server
