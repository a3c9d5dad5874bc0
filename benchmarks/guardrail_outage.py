"""A guardrail in front of a model that dies and comes back: what is answered, logged and lost meanwhile.

    python benchmarks/guardrail_outage.py [--seconds 600] [--clients 16] [--at-once 200] [monitor=…]

The model is a server of `eval/serve.py` in processes of its own (`engine=vllm`), the guardrail asks it by
`engine=served`, as in production, with the time-out and the limits that are set by default. `--clients` ask
for `--seconds` without a pause, among them some with a malformed body and one with 20 MB; before them
`--at-once` ask at the same moment. After a third of the time the server's processes get SIGKILL, after
half of it a new one is started.

Expected: an answer to every request, a line in the log for each that was taken, and no pass without a score.
Settings are those of `eval/evaluate.py`. Prints a table and writes
`runs/benchmarks/guardrail_outage/ratios.json`. Beside the bare model: `benchmarks/guardrail.py`.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from evaluate_samples import judged_samples
from guardrail import Got, at_once, fitting, load, percentiles, point_at

from monitorbench.config.serving import Serve
from monitorbench.config.study import Study
from monitorbench.guardrail.calibrated import Calibrated, ServedJudge
from monitorbench.guardrail.log import read_lines
from monitorbench.guardrail.monitor import open_monitor
from monitorbench.guardrail.opened import open_part
from monitorbench.guardrail.service import DECISIONS, serving
from monitorbench.judging.judge import judge_spec
from monitorbench.judging.pair.judgement import sample_of
from monitorbench.judging.served import address_file, reach

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "runs" / "benchmarks" / "guardrail_outage"
NAME = "guardrail_outage"
POINT = "guardrail_outage/direct/0"
SAMPLES = 100


class Times(NamedTuple):
    """When what happened, in Unix seconds, as the log has it."""

    died: float
    started: float
    """When the next server was started."""
    answered: float
    """When that one first answered `/v1/models`."""


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=240.0, help="of load")
    parser.add_argument("--clients", type=int, default=16, help="of the load")
    parser.add_argument("--at-once", type=int, default=200, help="asked at the same moment, before it")
    parser.add_argument("overrides", nargs="*", help="settings, as for eval/evaluate.py")
    asked = parser.parse_args()
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    given = [f"paths.runs={WORK / 'runs'}", *asked.overrides]
    judged = judged_samples(["engine=served", f"engine.server={NAME}", "engine.server_seconds=600", *given])
    server = start(given)
    try:
        study = reach(judged.study)
        spec = judge_spec(study.monitor, study.engine, study.prompt)
        part = ServedJudge(spec, judged.study)
        samples = [sample_of(one.request, one.response) for one in fitting(judged, SAMPLES)]
        opened = open_part(part, 60)
        fixed = float(np.median([opened.judges(one).score or 0.0 for one in samples]))
        opened.close()
        calibrated = Calibrated(WORK, point_at(fixed, POINT), WORK, None, {POINT: part})
        settings = Serve(guardrail=True)
        with open_monitor(calibrated, settings.timeout_seconds) as monitor, ExitStack() as stack:
            listening, _ = stack.enter_context(serving(monitor, settings, WORK, 0, None))
            thread = threading.Thread(target=listening.serve_forever)
            thread.start()
            stack.callback(thread.join)
            stack.callback(listening.shutdown)
            port = listening.server_address[1]
            together = at_once(port, samples, asked.at_once)
            with ThreadPoolExecutor(1) as side:
                outage = side.submit(die_and_come_back, server, judged.study, given, asked.seconds)
                under_load = load(port, samples, asked.clients, asked.seconds)
                times, server = outage.result()
    finally:
        end(server)
    report(asked, together, under_load, times)


def start(overrides: list[str]) -> "subprocess.Popen[bytes]":
    """`eval/serve.py` as a process, its output in a file."""
    command = [sys.executable, str(ROOT / "eval" / "serve.py"), "engine=vllm", f"engine.served_as={NAME}"]
    with (WORK / "server.out").open("ab") as stream:
        return subprocess.Popen([*command, *overrides], stdout=stream, stderr=stream)


def end(server: "subprocess.Popen[bytes]") -> None:
    """End it and its model."""
    server.send_signal(signal.SIGTERM)
    server.wait(60)


def die_and_come_back(
    server: "subprocess.Popen[bytes]", study: Study, overrides: list[str], seconds: float
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
    server = start(overrides)
    try:
        reach(study)
    except BaseException:
        end(server)
        raise
    return Times(died, started, time.time()), server


def report(asked: argparse.Namespace, together: list[Got], under_load: list[Got], times: Times) -> None:
    """Print and write."""
    lines = read_lines(WORK / DECISIONS)
    of_load = lines[-sum(got.status == 200 for got in under_load) :]
    phases: dict[str, Counter[str]] = {"before": Counter(), "away": Counter(), "back": Counter()}
    again = float("nan")
    for line in of_load:
        at = datetime.fromisoformat(line["time"]).timestamp()
        phase = "before" if at < times.died else "away" if at < times.answered else "back"
        is_scored = line["score"] is not None
        if phase != "before" and is_scored and at > times.started and not again <= at:
            again = at
        phases[phase][line["answered"] if is_scored else f"flag ({line['error']})"] += 1
    print(f"\n{asked.at_once} at once, then {asked.seconds:g} s of {asked.clients} clients")
    print(f"at once: {dict(sorted(Counter(outcome(got) for got in together).items()))}")
    for name, counted in phases.items():
        print(f"model {name:<7} {dict(sorted(counted.items()))}")
    rows = {
        name: percentiles([got.seconds for got in found if got.status == 200] or [float("nan")])
        for name, found in (("at once", together), ("load", under_load))
    }
    for name, row in rows.items():
        print(f"  {name:<9}" + "".join(f" {share} {value * 1000:9.1f} ms" for share, value in row.items()))
    got = [*together, *under_load]
    scores: dict[str, set[float]] = {}
    for line in lines:
        if line["score"] is not None:
            scores.setdefault(line["sample_id"], set()).add(line["score"])
    ratios = {
        "broken connections": (sum(one.status == 0 for one in got), "<= 0"),
        "answers without a line in the log": (sum(one.status == 200 for one in got) - len(lines), "<= 0"),
        "passed without a score": (sum(passed_unscored(one) for one in got), "<= 0"),
        "scored while the model was dead": (sum(scored(one) for one in of_load if dead(one, times)), "<= 0"),
        "largest change of a sample's score": (max(max(of) - min(of) for of in scores.values()), ""),
        "seconds from the model's first answer to the guardrail's": (again - times.answered, ""),
    }
    statuses = dict(sorted(Counter(str(one.status) for one in got).items()))
    print(f"answers by status: {statuses}")
    for name, (value, bar) in ratios.items():
        print(f"{name:<58} {value:8.4f} {bar}")
    measured = {"percentiles": rows, "phases": phases, "statuses": statuses, "times": times._asdict()}
    (WORK / "ratios.json").write_text(json.dumps({"ratios": ratios, "measured": measured}, indent=2) + "\n")
    print(WORK)


def outcome(got: Got) -> str:
    """What came of a request, in a word or two."""
    if got.status != 200:
        return str(got.status)
    error = got.answer.get("error")
    return f"flag ({error})" if error else str(got.answer["action"])


def passed_unscored(got: Got) -> bool:
    """What must never be."""
    return got.answer.get("action") == "pass" and got.answer.get("score") is None


def scored(line: dict[str, Any]) -> bool:
    """Whether there is a score."""
    return line["score"] is not None


def dead(line: dict[str, Any], times: Times) -> bool:
    """Answered well after the model died, and asked before another was started."""
    at = datetime.fromisoformat(line["time"]).timestamp()
    return times.died + 1 < at < times.started


if __name__ == "__main__":
    main()
