"""A guardrail in front of a model that dies and comes back: what is answered, logged and lost meanwhile.

The model is a server of `eval/serve.py` in processes of its own (`engine=vllm`), the guardrail asks it by
`engine=served`, as in production, with the time-out and the limits that are set by default. `--clients` ask
for `--seconds` without a pause, among them some with a malformed body and one with 20 MB; before them
`--at-once` ask at the same moment. After a third of the time the server's processes get SIGKILL, after
half of it a new one is started.

Expected: an answer to every request, a line in the log for each that was taken, and no pass without a score.
Beside the bare model: the benchmark `guardrail`.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.guardrail import (
    Reply,
    answered,
    ask_at_once,
    load,
    percentiles,
    safety_ratios,
)
from benchmarks.guardrail_served import running, threshold_at
from benchmarks.judged import judged_samples
from benchmarks.measuring import ROOT, Ratio, Result
from monitorbench.config.deployment import Serve
from monitorbench.config.study import Study
from monitorbench.guardrail.calibrated import Calibrated, ServedJudge, open_part
from monitorbench.guardrail.decision import read_lines
from monitorbench.guardrail.monitor import open_monitor
from monitorbench.guardrail.service import DECISIONS, serving
from monitorbench.judging.identity import judge_spec
from monitorbench.judging.judge import sample_of
from monitorbench.judging.serving.served import address_file, reach
from monitorbench.scoring.operating_point import threshold_point

NAME, SAMPLES = "guardrail_outage", 100
POINT = f"{NAME}/direct/0"


class Times(NamedTuple):
    """Moments in Unix seconds, as the log has them."""

    died: float
    started: float
    """When the next server was started."""
    answered: float
    """When that one first answered `/v1/models`."""

    def phase(self, line: dict[str, Any]) -> str:
        """Which part of the outage a line of the log is of."""
        moment = _moment(line)
        return "before" if moment < self.died else "away" if moment < self.answered else "back"


def main(work: Path, *, seconds: float, clients: int, at_once: int, settings: list[str]) -> Result:
    """Start the model, ask through the guardrail while it dies and comes back, and count."""
    settings = [f"paths.runs={work / 'runs'}", f"paths.data={work / 'data'}", *settings]
    judged = judged_samples(
        ["engine=served", f"engine.server={NAME}", "engine.server_seconds=600", *settings]
    )
    server = _start(settings, work)
    try:
        study = reach(judged.study)
        judge = ServedJudge(judge_spec(study.monitor, study.engine, study.prompt), judged.study)
        samples = [sample_of(sample.request, sample.response) for sample in judged.fitting(SAMPLES)]
        opened = open_part(judge, 60)
        threshold = float(np.median([verdict.score or 0.0 for verdict in opened.verdicts(samples)]))
        opened.close()
        point = threshold_point(threshold_at(threshold, POINT))
        calibrated = Calibrated(work, point, work, None, {POINT: judge})
        serve = Serve(guardrail=True)
        with (
            open_monitor(calibrated, serve.timeout_seconds) as monitor,
            serving(monitor, serve, work, 0, None) as (listening, _),
            running(listening) as port,
            ThreadPoolExecutor(1) as beside,
        ):
            together = ask_at_once(port, samples, at_once)
            outage = beside.submit(_die_and_come_back, server, judged.study, settings, seconds, work)
            under_load = load(port, samples, clients, seconds)
            times, server = outage.result()
    finally:
        _end(server)
    return _result(work, together, under_load, times)


def _start(settings: list[str], work: Path) -> "subprocess.Popen[bytes]":
    """Start `eval/serve.py` as a process, its output in a file."""
    command = [sys.executable, str(ROOT / "eval" / "serve.py"), "engine=vllm", f"engine.served_as={NAME}"]
    with (work / "server.out").open("ab") as stream:
        return subprocess.Popen([*command, *settings], cwd=ROOT, stdout=stream, stderr=stream)


def _end(server: "subprocess.Popen[bytes]") -> None:
    """End a server and its model."""
    server.send_signal(signal.SIGTERM)
    server.wait(60)


def _die_and_come_back(
    server: "subprocess.Popen[bytes]", study: Study, settings: list[str], seconds: float, work: Path
) -> tuple[Times, "subprocess.Popen[bytes]"]:
    """Kill the model after a third of the time, start another after half of it; returns that one."""
    began = time.time()
    time.sleep(seconds / 3)
    address = json.loads(address_file(study.paths.runs, NAME).read_text())
    os.killpg(address["pid"], signal.SIGKILL)
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
    return Times(died, started, time.time()), server


def _result(work: Path, together: list[Reply], under_load: list[Reply], times: Times) -> Result:
    """Count what was answered before, during and after the outage."""
    lines = read_lines(work / DECISIONS)
    of_load = lines[-len(answered(under_load)) :]
    phases: dict[str, Counter[str]] = {"before": Counter(), "away": Counter(), "back": Counter()}
    scores: dict[str, set[float]] = {}
    for line in of_load:
        outcome = f"flag ({line['error']})" if line["score"] is None else line["answered"]
        phases[times.phase(line)][outcome] += 1
    for line in lines:
        scores.setdefault(line["sample_id"], set()).update([] if line["score"] is None else [line["score"]])
    scored = [line for line in of_load if line["score"] is not None]
    # Answered well after the model died, and asked before another was started.
    dead = [line for line in scored if times.died + 1 < _moment(line) < times.started]
    again = min((_moment(line) for line in scored if _moment(line) > times.started), default=float("nan"))
    changes = [max(of_sample) - min(of_sample) for of_sample in scores.values() if of_sample]
    ratios = {
        **safety_ratios([*together, *under_load], work / DECISIONS),
        "scored while the model was dead": Ratio(len(dead), most=0),
        "largest change of a sample's score": Ratio(max(changes)),
        "seconds from the model's first answer to the guardrail's": Ratio(again - times.answered),
    }
    rows = {"at once": percentiles(answered(together)), "load": percentiles(answered(under_load))}
    statuses = Counter(str(reply.status) for reply in [*together, *under_load])
    errors = Counter(str(reply.answer.get("error") or reply.answer.get("action")) for reply in together)
    details = {"phases": phases, "at_once": errors, "statuses": statuses}
    for name, counts in {**phases, "at once": errors, "statuses": statuses}.items():
        print(f"{name:<9}{dict(sorted(counts.items()))}")
    return Result(rows, ratios, {**details, "times": times._asdict()})


def _moment(line: dict[str, Any]) -> float:
    return datetime.fromisoformat(line["time"]).timestamp()
