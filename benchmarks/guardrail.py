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
that was judged, and no pass without a score. Other benchmarks of a server on the loopback use these clients.
"""

import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.judged import body_of, judged_samples
from benchmarks.measuring import Ratio, Result, in_turns
from monitorbench.config.deployment import Serve
from monitorbench.config.study import Study
from monitorbench.guardrail.calibrated import Calibrated, ServedJudge, open_part
from monitorbench.guardrail.decision import read_lines
from monitorbench.guardrail.monitor import OpenMonitor
from monitorbench.guardrail.runner import Runner
from monitorbench.guardrail.service import DECISIONS, PATH, serving
from monitorbench.judging.judge import Judge, Question, judge_spec, sample_of
from monitorbench.records import Sample, Verdict
from monitorbench.scoring.operating_point import CalibratedThreshold, threshold_point

TIMEOUT = 120.0
BROKEN = (b"{", b'{"request": "a"}', b"[" * 5000, b"\xff\xfe")
LARGE = json.dumps({"request": "a", "response": "x" * 20 * 2**20}).encode()
ODD_EACH = 25
"""Every so many requests of the load one is malformed, and the first of every second client is large."""


class Reply(NamedTuple):
    """One request as its client saw it."""

    seconds: float
    status: int
    """0: the connection broke."""
    answer: dict[str, Any]

    @property
    def passed_unscored(self) -> bool:
        """Whether the guardrail let the request through without a score, which must never be."""
        return self.answer.get("action") == "pass" and self.answer.get("score") is None


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


def ask(port: int, body: bytes, path: str = PATH) -> Reply:
    """Send one request on a connection of its own; timed from opening it to the answer's last byte."""
    began = time.perf_counter()
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=2 * TIMEOUT)
    try:
        client.request("POST", path, body, {"Content-Type": "application/json"})
        answer = client.getresponse()
        content = answer.read()
        seconds = time.perf_counter() - began
        return Reply(seconds, answer.status, json.loads(content))
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Reply(time.perf_counter() - began, 0, {"error": repr(error)})
    finally:
        client.close()


def ask_at_once(port: int, samples: Sequence[Sample], clients: int) -> list[Reply]:
    """Send as many requests as there are clients, which begin together."""
    together = threading.Barrier(clients)

    def client(number: int) -> Reply:
        together.wait()
        return ask(port, body_of(samples[number % len(samples)]))

    with ThreadPoolExecutor(clients) as pool:
        return list(pool.map(client, range(clients)))


def load(port: int, samples: Sequence[Sample], clients: int, seconds: float) -> list[Reply]:
    """Have clients ask without a pause, now and then with what is no request."""
    until = time.monotonic() + seconds

    def client(first: int) -> list[Reply]:
        replies = [ask(port, LARGE)] if first % 2 == 0 else []
        number = first
        while time.monotonic() < until:
            is_odd = number % ODD_EACH == 0
            body = BROKEN[number % len(BROKEN)] if is_odd else body_of(samples[number % len(samples)])
            replies.append(ask(port, body))
            number += 1
        return replies

    with ThreadPoolExecutor(clients) as pool:
        return [reply for replies in pool.map(client, range(clients)) for reply in replies]


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Percentiles in milliseconds; NaN where there are no times."""
    times = np.array(seconds or [np.nan]) * 1000
    return {f"p{share} ms": float(np.percentile(times, share)) for share in (50, 95, 99)}


def answered(replies: Sequence[Reply]) -> list[float]:
    """Seconds of the requests that were answered with status 200."""
    return [reply.seconds for reply in replies if reply.status == 200]


def safety_ratios(replies: Sequence[Reply], log: Any, n_others: int = 0) -> dict[str, Ratio]:
    """Count what must not be; `n_others`: answers beside these that the decision log has a line for, too."""
    unlogged = len(answered(replies)) + n_others - len(read_lines(log))
    return {
        "broken connections": Ratio(sum(reply.status == 0 for reply in replies), most=0),
        "answers without a line in the log": Ratio(unlogged, most=0),
        "passed without a score": Ratio(sum(reply.passed_unscored for reply in replies), most=0),
    }


WARM_UP, MOST_ADDED_MS, MOST_MEBIBYTES = 3, 3, 1024


def main(
    work: Path, *, requests: int, at_once: int, seconds: float, clients: int, settings: list[str]
) -> Result:
    """Ask in both ways, then at once, then for a while."""
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
