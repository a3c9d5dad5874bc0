"""The guardrail beside its bare judge: what it adds to a request, 200 requests at once, and load for a while.

    python benchmarks/guardrail.py [--requests 100] [--at-once 200] [--seconds 10] [--clients 16] [monitor=…]

One process: the judge as it is opened for serving, asked directly (in the thread that the server asks it in)
and through `POST /guardrail` on the loopback, in turning order, so that a noisy machine disturbs both alike;
each request is a connection of its own. What is added is what a client waited less what the judge itself took
for that request; the difference of the medians stands beside it. The samples are the first of the test split.

Then `--at-once` clients ask at the same moment; then `--clients` ask for `--seconds` without a pause, among
them some with a malformed body and one with 20 MB. The threshold is the median score, so that both actions
come. Expected: an answer to every request, a line in the log for each that was judged, and no pass without a
score. Settings are those of `eval/evaluate.py`. Prints a table and writes
`runs/benchmarks/guardrail/ratios.json`; for ten minutes of load `--seconds 600`.
"""

import argparse
import http.client
import json
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from evaluate_samples import Judged, judged_samples

from monitorbench.config.serving import Serve
from monitorbench.guardrail.calibrated import Calibrated, ServedJudge
from monitorbench.guardrail.log import read_lines
from monitorbench.guardrail.monitor import OpenMonitor
from monitorbench.guardrail.opened import Opened, open_part
from monitorbench.guardrail.runner import Runner
from monitorbench.guardrail.service import DECISIONS, PATH, serving
from monitorbench.judging.judge import judge_spec
from monitorbench.judging.pair.judgement import Judgement, sample_of
from monitorbench.records import Sample
from monitorbench.scoring.operating_point import OperatingPoint, threshold_point
from monitorbench.scoring.thresholds import CalibratedThreshold

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "runs" / "benchmarks" / "guardrail"
WARM_UP = 3
BAR = "<= 5"
TIMEOUT = 120.0
BROKEN = (b"{", b'{"request": "a"}', b"[" * 5000, b"\xff\xfe")
LARGE = json.dumps({"request": "a", "response": "x" * 20 * 2**20}).encode()
ODD_EACH = 25
"""Every so many requests of the load one is malformed, and the first of each client but one is large."""


class Got(NamedTuple):
    """What a client saw of one request."""

    seconds: float
    status: int
    """0: the connection broke."""
    answer: dict[str, Any]


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--requests", type=int, default=100, help="asked one at a time, beside the bare judge"
    )
    parser.add_argument("--at-once", type=int, default=200, help="asked at the same moment")
    parser.add_argument("--seconds", type=float, default=10.0, help="of load")
    parser.add_argument("--clients", type=int, default=16, help="of the load")
    parser.add_argument("overrides", nargs="*", help="settings, as for eval/evaluate.py")
    asked = parser.parse_args()
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    judged = judged_samples(["engine=transformers", *asked.overrides])
    study = judged.study
    spec = judge_spec(study.monitor, study.engine, study.prompt)
    opened, took = timed(open_part(ServedJudge(spec, study), TIMEOUT))
    samples = [sample_of(one.request, one.response) for one in fitting(judged, asked.requests)]
    scores = [float(opened.judges(one).score or 0.0) for one in samples]
    with guarded(opened, spec.monitor.name, float(np.median(scores))) as (port, runner):
        found = {
            "beside": beside(runner, port, samples, took),
            "at once": at_once(port, samples, asked.at_once),
            "load": load(port, samples, asked.clients, asked.seconds),
        }
    report(found, asked)


def timed(opened: Opened) -> tuple[Opened, list[float]]:
    """The judge, and a list that gets the seconds of each of its judgements."""
    took: list[float] = []

    def judges(sample: Sample) -> Judgement:
        began = time.perf_counter()
        found = opened.judges(sample)
        took.append(time.perf_counter() - began)
        return found

    return Opened(judges, opened.close), took


def fitting(judged: Judged, most: int) -> list[Sample]:
    """The first samples that fit the context."""
    fits = judged.study.monitor.context_tokens - judged.study.prompt.most_tokens
    pairs = zip(judged.samples, judged.prompts, strict=True)
    return [sample for sample, ids in pairs if len(ids) <= fits][:most]


def point_at(threshold: float, monitor: str) -> OperatingPoint:
    """One at that threshold, which promises nothing."""
    return threshold_point(
        CalibratedThreshold(
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
    )


@contextmanager
def guarded(opened: Opened, name: str, threshold: float) -> Iterator[tuple[int, Runner]]:
    """The port of a guardrail on that judge, and what asks the judge."""
    bound = f"{name}/benchmark/0"
    point = point_at(threshold, bound)
    runner = Runner(name, lambda: opened, lambda: opened)
    monitor = OpenMonitor(Calibrated(WORK, point, WORK, None, {}), {bound: runner})
    settings = Serve(guardrail=True, timeout_seconds=TIMEOUT, at_once=1000)
    with serving(monitor, settings, WORK, 0, None) as (server, _):
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1], runner
        finally:
            server.shutdown()
            thread.join()
    runner.close()


def body_of(sample: Sample) -> bytes:
    """What a client sends of it."""
    return json.dumps(sample.model_dump(mode="json", include={"request", "response"})).encode()


def ask(port: int, body: bytes) -> Got:
    """One request on a connection of its own, from opening it to the answer's last byte."""
    began = time.perf_counter()
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=2 * TIMEOUT)
    try:
        client.request("POST", PATH, body, {"Content-Type": "application/json"})
        answer = client.getresponse()
        content = json.loads(answer.read())
        return Got(time.perf_counter() - began, answer.status, content)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Got(time.perf_counter() - began, 0, {"error": repr(error)})
    finally:
        client.close()


def beside(runner: Runner, port: int, samples: list[Sample], took: list[float]) -> dict[str, list[float]]:
    """Seconds of the bare judge, through the guardrail, and added by it, request by request."""
    seconds: dict[str, list[float]] = {"bare judge": [], "guardrail": [], "added": []}

    def bare(sample: Sample) -> None:
        deadline = time.monotonic() + TIMEOUT
        runner.result(runner.begin(sample, deadline))
        seconds["bare judge"].append(took[-1])

    def through(sample: Sample) -> None:
        seconds["guardrail"].append(ask(port, body_of(sample)).seconds)
        seconds["added"].append(seconds["guardrail"][-1] - took[-1])

    for sample in samples[:WARM_UP]:
        bare(sample)
        through(sample)
    for of in seconds.values():
        of.clear()
    for number, sample in enumerate(samples):
        for one in (bare, through) if number % 2 else (through, bare):
            one(sample)
    return seconds


def at_once(port: int, samples: list[Sample], clients: int) -> list[Got]:
    """So many requests that begin together."""
    together = threading.Barrier(clients)

    def one(number: int) -> Got:
        together.wait()
        return ask(port, body_of(samples[number % len(samples)]))

    with ThreadPoolExecutor(clients) as pool:
        return list(pool.map(one, range(clients)))


def load(port: int, samples: list[Sample], clients: int, seconds: float) -> list[Got]:
    """Clients that ask without a pause, now and then with what is no request."""
    until = time.monotonic() + seconds

    def one(client: int) -> list[Got]:
        found = [ask(port, LARGE)] if client % 2 == 0 else []
        number = client
        while time.monotonic() < until:
            odd = number % ODD_EACH == 0
            body = BROKEN[number % len(BROKEN)] if odd else body_of(samples[number % len(samples)])
            found.append(ask(port, body))
            number += 1
        return found

    with ThreadPoolExecutor(clients) as pool:
        return [got for each in pool.map(one, range(clients)) for got in each]


def percentiles(seconds: list[float]) -> dict[str, float]:
    """In seconds."""
    return {f"p{share}": float(np.percentile(seconds, share)) for share in (50, 95, 99)}


def report(found: dict[str, Any], asked: argparse.Namespace) -> None:
    """Print and write."""
    alone = found["beside"]
    rows = {name: percentiles(of) for name, of in alone.items()}
    for name in ("at once", "load"):
        rows[name] = percentiles([got.seconds for got in found[name] if got.status == 200] or [float("nan")])
    print(f"\n{asked.requests} requests one at a time, {asked.at_once} at once, {asked.seconds:g} s of load")
    for name, row in rows.items():
        print(f"  {name:<12}" + "".join(f" {share} {value * 1000:9.1f} ms" for share, value in row.items()))
    got = [*found["at once"], *found["load"]]
    judged = [one for one in got if one.status == 200]
    n_alone = len(alone["guardrail"]) + WARM_UP
    lines = read_lines(WORK / DECISIONS)
    counts = {
        "answers": dict(sorted(Counter(str(one.status) for one in got).items())),
        "broken connections": sum(one.status == 0 for one in got),
        "judged answers without a line in the log": len(judged) + n_alone - len(lines),
        "passed without a score": sum(
            one.answer.get("action") == "pass" and one.answer.get("score") is None for one in got
        ),
        "not judged": sum(one.answer.get("error") is not None for one in judged),
        "a second, under load": len([one for one in found["load"] if one.status == 200]) / asked.seconds,
    }
    for name, value in counts.items():
        print(f"{name:<44} {value}")
    ratios = {
        "added, p50 in ms": (rows["added"]["p50"] * 1000, BAR),
        "added, p95 in ms": (rows["added"]["p95"] * 1000, ""),
        "between the p50s, in ms": (rows["guardrail"]["p50"] * 1000 - rows["bare judge"]["p50"] * 1000, ""),
        "broken connections": (counts["broken connections"], "<= 0"),
        "judged answers without a line in the log": (
            counts["judged answers without a line in the log"],
            "<= 0",
        ),
        "passed without a score": (counts["passed without a score"], "<= 0"),
    }
    for name, (value, bar) in ratios.items():
        print(f"{name:<44} {value:7.3f} {bar}")
    measured = {"percentiles": rows, "counts": counts, "seconds": alone}
    (WORK / "ratios.json").write_text(json.dumps({"ratios": ratios, "measured": measured}, indent=2) + "\n")
    print(WORK)


if __name__ == "__main__":
    main()
