"""The guardrail beside its bare judge: what it adds to a request, 200 requests at once, and load for a while.

The service is a process of its own, as deployed: the judge as it is opened for serving, behind
`POST /guardrail` on the loopback; samples and clients are here, and each request is a connection of its own.
What is added is what a client waited less what the judge itself took for that request, which the service
notes; so is the processor time of both processes, which a busy machine changes least. The samples are the
shortest of the test split: what is added is the same for long ones, and a slow core takes half a second for
each of these.

Then `--at-once` clients ask at the same moment; then `--clients` ask for `--seconds` without a pause, among
them some with a malformed body and one with 20 MB; for ten minutes of load `--seconds 600`. The threshold is
the median score, so that both actions come. Expected: an answer to every request, a line in the log for each
that was judged, and no pass without a score. Other benchmarks of a server on the loopback use these clients.
"""

import http.client
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any, NamedTuple

import numpy as np
import psutil

from benchmarks.guardrail_served import BODIES, TIMEOUT, WARM_UP, Taken
from benchmarks.judged import judged_samples
from benchmarks.measuring import ROOT, RUN, Ratio, Result, body_of
from monitorbench.guardrail.decision import read_lines
from monitorbench.guardrail.service import DECISIONS, PATH
from monitorbench.records import Sample

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


MOST_ADDED_MS, MOST_MEBIBYTES = 3, 1024


def main(
    work: Path, *, requests: int, at_once: int, seconds: float, clients: int, settings: list[str]
) -> Result:
    """Ask one by one, then at once, then for a while."""
    settings = ["engine=transformers", f"paths.data={work / 'data'}", *settings]
    samples = _shortest(settings, requests)
    (work / BODIES).write_bytes(b"\n".join(map(body_of, samples)))
    with _apart(work, settings) as service:
        while_loading, loaded = service.mebibytes("VmHWM"), service.mebibytes("VmRSS")
        own = service.mebibytes("RssAnon")
        service.forget_peak()
        waited, cpu = _ask_one_by_one(service, samples)
        together = ask_at_once(service.port, samples, at_once)
        under_load = load(service.port, samples, clients, seconds)
        most, own_at_end = service.mebibytes("VmHWM"), service.mebibytes("RssAnon")
    judge = service.judged(len(waited))
    added = [all_of - judges for all_of, judges in zip(waited, judge.took, strict=True)]
    rows = {"judge itself": percentiles(judge.took), "guardrail": percentiles(waited)}
    rows |= {"added": percentiles(added), "at once": percentiles(answered(together))}
    rows |= {"load": percentiles(answered(under_load))}
    replies = [*together, *under_load]
    ratios = {
        "added, p50 in ms": Ratio(rows["added"]["p50 ms"], most=MOST_ADDED_MS),
        "added, p95 in ms": Ratio(rows["added"]["p95 ms"]),
        "added processor time, client included, mean in ms": Ratio(
            (cpu - sum(judge.cpu)) / len(waited) * 1000
        ),
        "answers a second, under load": Ratio(len(answered(under_load)) / seconds),
        "most memory while it was loaded, in MiB": Ratio(while_loading),
        "memory once loaded, in MiB": Ratio(loaded),
        "of that anonymous, in MiB": Ratio(own),
        "most memory under load, in MiB": Ratio(most, most=MOST_MEBIBYTES),
        "anonymous at the end, in MiB": Ratio(own_at_end),
        **safety_ratios(replies, work / DECISIONS, WARM_UP + len(waited)),
    }
    judged_replies = [reply for reply in replies if reply.status == 200]
    counts = {
        "statuses": dict(sorted(Counter(str(reply.status) for reply in replies).items())),
        "not_judged": sum(reply.answer.get("error") is not None for reply in judged_replies),
    }
    print(counts)
    seconds_of = {"judge itself": judge.took, "guardrail": waited, "added": added}
    return Result(rows, ratios, {**counts, "seconds": seconds_of})


def _shortest(settings: list[str], n: int) -> list[Sample]:
    judged = judged_samples(settings)
    shortest = sorted(zip(judged.samples, judged.prompts, strict=True), key=lambda pair: len(pair[1]))
    return [sample for sample, _ in shortest[:n]]


def _ask_one_by_one(service: "_Service", samples: Sequence[Sample]) -> tuple[list[float], float]:
    """Seconds of each request behind the first few, and the processor seconds of all of these."""
    for _ in range(WARM_UP):
        ask(service.port, body_of(samples[0]))
    cpu = time.process_time() + service.processor_seconds()
    waited = [ask(service.port, body_of(sample)).seconds for sample in samples]
    return waited, time.process_time() + service.processor_seconds() - cpu


class _Service:
    """A process that serves a judge, and what the system says of it."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        """Wait until it is loaded, when it prints its port."""
        port = process.stdout.readline() if process.stdout else ""
        if not port.strip().isdigit():
            raise SystemExit("guardrail: the service did not start; its message is above")
        self.port, self._pid = int(port), process.pid
        self._process = psutil.Process(process.pid)
        self.last_line = ""

    def mebibytes(self, what: str) -> float:
        """`VmRSS` is its memory now, `RssAnon` what no file backs of that, `VmHWM` its most."""
        status = Path(f"/proc/{self._pid}/status").read_text(encoding="ascii")
        return int(status.partition(f"{what}:")[2].split()[0]) / 1024

    def forget_peak(self) -> None:
        """Have `VmHWM` counted from now on."""
        Path(f"/proc/{self._pid}/clear_refs").write_text("5")

    def processor_seconds(self) -> float:
        """Processor time so far."""
        return float(sum(self._process.cpu_times()[:2]))

    def judged(self, n: int) -> Taken:
        """Of the `n` requests behind those of the warm-up; known once it has ended."""
        return Taken(*(each[WARM_UP : WARM_UP + n] for each in json.loads(self.last_line)))


@contextmanager
def _apart(work: Path, settings: list[str]) -> Iterator[_Service]:
    """Serve the judge of these settings in a process of its own while the body runs."""
    command = [
        sys.executable,
        str(RUN),
        "--side",
        "guardrail_served:serve_judge",
        json.dumps([str(work), settings]),
    ]
    with subprocess.Popen(command, cwd=ROOT, stdin=PIPE, stdout=PIPE, text=True) as process:
        service = _Service(process)
        try:
            yield service
        finally:
            rest, _ = process.communicate()  # the end of its input ends it
            service.last_line = (rest.strip().splitlines() or [""])[-1]
