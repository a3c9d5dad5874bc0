"""Whether one text has one score: alone, in batches, in another order, served, and behind the guardrail.

    python benchmarks/score_spread.py [--samples 16] [--dtypes float32] [--kinds …] [--server] [monitor=…]

For each kind of CPU that this machine can show (`ONEDNN_MAX_CPU_ISA` takes units away) and each numeric
type a process of its own judges the first exchanges of `examples/dataset.jsonl`: one at a time, in batches
of 2, 7 and 32, in the given order and reversed, again after loading the model anew, and through `POST
/guardrail` at a threshold that was set as `calibrate` sets it, on the scores of the batches of 7.
`--server` adds vLLM's server in front of the same weights, asked by token ids (minutes). Printed are the
largest difference of a score from the one asked alone, the number of decisions that differ from those on
the batches of 7, and seconds a sample.

Expected with float32: at most 1e-4, and no decision. Settings are those of `eval/evaluate.py`. Writes
`runs/benchmarks/score_spread/ratios.json`.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir

from monitorbench.config.engine import REPRODUCIBLE_WITHIN, cpu_multiplies_bf16
from monitorbench.config.load import load
from monitorbench.config.study import Study
from monitorbench.records import Message, Sample

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "runs" / "benchmarks" / "score_spread"
BATCHES = (2, 7, 32)
CALIBRATED_IN = "batches of 7"
KINDS = {"AMX": "DEFAULT", "AVX512-BF16": "AVX512_CORE_BF16", "neither": "AVX512_CORE_VNNI"}
"""The kinds of CPU, and the value of `ONEDNN_MAX_CPU_ISA` under which a better one behaves like it."""
Scores = dict[str, float]
"""The scores by sample id."""


def main() -> None:
    """Measure in child processes, print the table and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--samples", type=int, default=16, help="exchanges that are judged")
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"], help="numeric types")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, help="kinds of CPU; those that this machine has")
    parser.add_argument("--server", action="store_true", help="also through vLLM's server")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("overrides", nargs="*", help="settings, as for eval/evaluate.py")
    asked = parser.parse_intermixed_args()
    if asked.child:
        print(json.dumps(measured(asked.overrides, asked.samples, asked.dtypes[0], is_served=asked.server)))
        return
    rows = []
    for kind in asked.kinds or kinds_here():
        for dtype in asked.dtypes:
            ways = in_child(kind, dtype, asked)
            rows += [{"cpu": kind, "dtype": dtype, "way": way, **facts} for way, facts in ways.items()]
    show(rows)
    WORK.mkdir(parents=True, exist_ok=True)
    (WORK / "ratios.json").write_text(json.dumps(rows, indent=2) + "\n")


def kinds_here() -> list[str]:
    """The kinds of CPU that this machine is, or can be made to look like."""
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").is_file() else ""
    has = {"AMX": "amx_bf16" in flags, "AVX512-BF16": cpu_multiplies_bf16(), "neither": True}
    return [kind for kind in KINDS if has[kind]]


def in_child(kind: str, dtype: str, asked: argparse.Namespace) -> dict[str, dict[str, float]]:
    """The facts of every way of asking, measured in a process whose CPU behaves as `kind`."""
    command = [sys.executable, __file__, "--child", "--samples", str(asked.samples), "--dtypes", dtype]
    command += [*(["--server"] if asked.server else []), "--", *asked.overrides]
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": KINDS[kind]}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    ways: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return ways


def measured(overrides: Sequence[str], n: int, dtype: str, *, is_served: bool) -> dict[str, dict[str, float]]:
    """By way of asking: the largest difference from asking alone, changed decisions, and seconds a sample."""
    samples = exchanges(n)
    study = study_of(overrides, dtype)
    scores: dict[str, Scores] = {}
    seconds: dict[str, float] = {}

    def note(way: str, found: Scores, began: float) -> None:
        scores[way], seconds[way] = found, (time.perf_counter() - began) / len(samples)

    model = opened(study)
    asked_of(model, samples[:2], 2)  # the first pass sets things up
    for way, order, batch in [
        ("alone", samples, 1),
        *((f"batches of {batch}", samples, batch) for batch in BATCHES),
        *((f"batches of {batch}, reversed", samples[::-1], batch) for batch in BATCHES),
    ]:
        began = time.perf_counter()
        note(way, asked_of(model, order, batch), began)
    model.close()
    model = opened(study)
    began = time.perf_counter()
    note("alone, loaded anew", asked_of(model, samples, 1), began)
    model.close()
    limit = calibrated(list(scores[CALIBRATED_IN].values()))
    began = time.perf_counter()
    note("guardrail", through_guardrail(study, samples, limit), began)
    if is_served:
        began = time.perf_counter()
        note("vLLM's server", through_server(study, samples), began)
    decided = flagged(scores[CALIBRATED_IN], limit)
    return {
        way: {
            "largest_difference": max(abs(found[name] - scores["alone"][name]) for name in found),
            "decisions": float(len(flagged(found, limit) ^ decided)),
            "seconds": seconds[way],
        }
        for way, found in scores.items()
    }


def study_of(overrides: Sequence[str], dtype: str) -> Study:
    """The settings of an evaluation in this numeric type; bfloat16 in batches is fast by definition."""
    mode = "reproducible" if dtype == "float32" else "fast"
    fixed = ["engine=transformers", "engine.batch_size=32"]
    return composed([*fixed, *overrides, f"engine.dtype={dtype}", f"engine.scores={mode}"])


def composed(overrides: Sequence[str]) -> Study:
    """The configuration of `eval/evaluate.py`."""
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return load(compose("evaluate", list(overrides)))


def exchanges(n: int) -> list[Sample]:
    """The first exchanges of the examples, longest and shortest mixed as they come."""
    from monitorbench.judging.pair.judgement import sample_of

    lines = (ROOT / "examples" / "dataset.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines][:n]
    return [
        sample_of(messages(row["request"], "user"), messages(row["response"], "assistant")) for row in rows
    ]


def messages(given: Any, role: str) -> tuple[Message, ...]:
    """One side of an exchange, a string or chat messages."""
    turns = [{"role": role, "content": given}] if isinstance(given, str) else given
    return tuple(Message.model_validate_json(json.dumps(turn)) for turn in turns)


def opened(study: Study) -> Any:
    """The judge of the study, as every stage opens it."""
    from monitorbench.judging.open import open_prompted

    return open_prompted(study.monitor, study.engine, study.prompt, study.paths.models, "score_spread")


def asked_of(model: Any, samples: Sequence[Sample], batch: int) -> Scores:
    """The scores of the samples, so many of them in each call."""
    found: Scores = {}
    for start in range(0, len(samples), batch):
        part = samples[start : start + batch]
        for index, reply in model.replies([model.question(sample) for sample in part]):
            found[part[index].id] = float(model.read(reply).score.score or 0.0)
    return found


def calibrated(scores: list[float]) -> float:
    """A threshold that flags a third of these scores: one of them, raised as `calibrate` raises it."""
    import numpy as np

    from monitorbench.scoring.calibrate import clear_of_scores

    limit = sorted(scores)[-len(scores) // 3 - 1]
    raised = clear_of_scores(threshold_at(limit), np.array(scores)).threshold
    assert raised is not None
    return raised


def threshold_at(limit: float) -> Any:
    """A threshold that promises nothing."""
    from monitorbench.scoring.thresholds import CalibratedThreshold

    return CalibratedThreshold(
        method="neyman_pearson",
        monitor="benchmark/direct/0",
        category="",
        data="benchmark",
        part="whole",
        alpha=0.5,
        n=0,
        n_unscored=0,
        threshold=limit,
    )


def flagged(scores: Scores, limit: float) -> set[str]:
    """The ids of the samples above the threshold."""
    return {name for name, score in scores.items() if score > limit}


def through_guardrail(study: Study, samples: Sequence[Sample], limit: float) -> Scores:
    """The scores in a guardrail's answers, one request at a time; actions have to fit the threshold."""
    from monitorbench.config.serving import Serve
    from monitorbench.guardrail.calibrated import Calibrated, ServedBaseline, ServedJudge
    from monitorbench.guardrail.monitor import open_monitor
    from monitorbench.guardrail.service import PATH, serving
    from monitorbench.judging.judge import judge_spec
    from monitorbench.scoring.operating_point import threshold_point

    spec = judge_spec(study.monitor, study.engine, study.prompt)
    threshold = threshold_at(limit)
    parts: dict[str, ServedJudge | ServedBaseline] = {threshold.monitor: ServedJudge(spec, study)}
    WORK.mkdir(parents=True, exist_ok=True)
    settings = Serve(guardrail=True, timeout_seconds=600, at_once=1000)
    found: Scores = {}
    with (
        open_monitor(Calibrated(WORK, threshold_point(threshold), WORK, None, parts), 600) as monitor,
        serving(monitor, settings, WORK, 0, None) as (server, _),
    ):
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            for sample in samples:
                answer = posted(f"http://127.0.0.1:{server.server_address[1]}{PATH}", sample)
                found[sample.id] = float(answer["score"])
                assert (answer["action"] == "flag") == (found[sample.id] > limit)
        finally:
            server.shutdown()
            thread.join()
    return found


def posted(url: str, sample: Sample) -> dict[str, Any]:
    """The guardrail's answer to one exchange."""
    body = json.dumps(sample.model_dump(mode="json", include={"request", "response"})).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        content: dict[str, Any] = json.loads(answer.read())
    return content


def through_server(study: Study, samples: Sequence[Sample]) -> Scores:
    """The scores of the same weights in vLLM's server, asked by token ids with all requests at once."""
    from monitorbench.config.endpoint import OpenAiEngine
    from monitorbench.judging.open import open_prompted
    from monitorbench.judging.server import running_server

    engine = study.engine
    dtype = [f"engine.dtype={engine.precision}", f"engine.scores={getattr(engine, 'scores', 'fast')}"]
    paths = [f"monitor={study.monitor.name}", "engine=vllm", *dtype, "engine.startup_seconds=1800"]
    served = composed(paths)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    with running_server(served, port, WORK / "server.log") as server:
        asks = composed([f"monitor={study.monitor.name}", "engine=openai", "engine.by_token_ids=true"])
        settings = asks.engine.model_dump() | {"base_url": server.url, "model": server.model}
        endpoint = OpenAiEngine.model_validate(settings)
        model = open_prompted(asks.monitor, endpoint, asks.prompt, asks.paths.models, "score_spread")
        found = asked_of(model, samples, len(samples))
        model.close()
    return found


def show(rows: Sequence[dict[str, Any]]) -> None:
    """The table in Markdown."""
    print("| CPU | numeric type | asked | largest difference | decisions | s a sample |")
    print("| --- | --- | --- | --- | --- | --- |")
    for row in rows:
        cells = [row["cpu"], row["dtype"], row["way"], f"{row['largest_difference']:.1e}"]
        print(f"| {' | '.join(cells)} | {row['decisions']:.0f} | {row['seconds']:.2f} |")
    worst = max((row["largest_difference"] for row in rows if row["dtype"] == "float32"), default=0.0)
    print(f"float32: at most {worst:.1e}, expected at most {REPRODUCIBLE_WITHIN:g}")


if __name__ == "__main__":
    main()
