"""Whether one text has one score: alone, in batches, in another order, served, and behind the guardrail.

For each kind of CPU that this machine can show (`ONEDNN_MAX_CPU_ISA` takes units away) and each numeric
type a process of its own judges the first exchanges of `examples/dataset.jsonl`: one at a time, in batches
of 2, 7 and 32, in the given order and reversed, again after loading the model anew, and through `POST
/guardrail` at a threshold that was set as `calibrate` sets it, on the scores of the batches of 7.
`--server 1` adds vLLM's server in front of the same weights, asked by token ids (minutes). Measured are the
largest difference of a score from the one asked alone, the number of decisions that differ from those on
the batches of 7, and seconds a sample.

Expected with float32: at most 1e-4, and no decision.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.guardrail import ask
from benchmarks.guardrail_served import running, threshold_at
from benchmarks.measuring import ROOT, Ratio, Result, apart, body_of, composed, timed
from monitorbench.config.deployment import Serve
from monitorbench.config.endpoint import OpenAiEngine
from monitorbench.config.hardware import cpu_multiplies_bf16
from monitorbench.config.study import Study
from monitorbench.guardrail.calibrated import Calibrated, ServedBaseline, ServedJudge
from monitorbench.guardrail.monitor import open_monitor
from monitorbench.guardrail.service import serving
from monitorbench.judging.identity import judge_spec
from monitorbench.judging.judge import Judge, sample_of
from monitorbench.judging.open import open_judge
from monitorbench.judging.serving.served import free_port
from monitorbench.judging.serving.vllm_server import running_server
from monitorbench.metrics.guarantees.threshold import clear_of_scores
from monitorbench.metrics.rates import REPRODUCIBLE_WITHIN
from monitorbench.records import Message, Sample
from monitorbench.scoring.operating_point import threshold_point

BATCHES = (2, 7, 32)
CALIBRATED_IN = "batches of 7"
POINT = "benchmark/direct/0"
KINDS = {"AMX": "DEFAULT", "AVX512-BF16": "AVX512_CORE_BF16", "neither": "AVX512_CORE_VNNI"}
"""The kinds of CPU, and the value of `ONEDNN_MAX_CPU_ISA` under which a better one behaves like it."""
Scores = dict[str, float]
"""The scores by sample id."""


def main(work: Path, *, samples: int, dtypes: str, kinds: str, server: int, settings: list[str]) -> Result:
    """Measure each kind of CPU and numeric type in a process of its own."""
    names = kinds.split(",") if kinds else kinds_here()
    if unknown := sorted(set(names) - set(KINDS)):
        raise SystemExit(f"--kinds: no kind {', '.join(unknown)}; expected some of {', '.join(KINDS)}")
    rows: dict[str, dict[str, float]] = {}
    for kind in names:
        for dtype in dtypes.split(","):
            folder, changes = work / f"{kind}-{dtype}", {"ONEDNN_MAX_CPU_ISA": KINDS[kind]}
            arguments = (folder, settings, samples, dtype, server)
            ways = json.loads(apart("score_spread:measure", *arguments, changes=changes).output)
            rows |= {f"{kind}, {dtype}, {way}": facts for way, facts in ways.items()}
    exact = [facts for name, facts in rows.items() if ", float32, " in name]
    largest = max((facts["largest_difference"] for facts in exact), default=0.0)
    ratios = {
        "float32, largest difference / what is promised": Ratio(largest / REPRODUCIBLE_WITHIN, most=1),
        "float32, decisions that differ": Ratio(sum(facts["decisions"] for facts in exact), most=0),
    }
    return Result(rows, ratios, {"samples": samples})


def kinds_here() -> list[str]:
    """Name the kinds of CPU that this machine is, or can be made to look like."""
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").is_file() else ""
    has = {"AMX": "amx_bf16" in flags, "AVX512-BF16": cpu_multiplies_bf16(), "neither": True}
    return [kind for kind in KINDS if has[kind]]


def measure(
    work: str, settings: Sequence[str], n: int, dtype: str, is_served: int
) -> dict[str, dict[str, float]]:
    """By way of asking: the largest difference from asking alone, changed decisions, and seconds a sample."""
    samples, study = _exchanges(n), _study(settings, dtype)
    folder = Path(work)
    folder.mkdir(parents=True)
    scores: dict[str, Scores] = {}
    seconds: dict[str, float] = {}
    model = _opened(study)
    _ask(model, samples[:2], 2)  # the first pass sets things up
    orders = {"": samples, ", reversed": samples[::-1]}
    ways = {"alone": (samples, 1)}
    ways |= {f"batches of {n}{name}": (order, n) for name, order in orders.items() for n in BATCHES}
    for way, (order, batch) in ways.items():
        seconds[way], scores[way] = timed(lambda: _ask(model, order, batch))  # noqa: B023
    model.close()
    model = _opened(study)
    way = "alone, loaded anew"
    seconds[way], scores[way] = timed(lambda: _ask(model, samples, 1))
    model.close()
    limit = _calibrated(list(scores[CALIBRATED_IN].values()))
    way = "guardrail"
    seconds[way], scores[way] = timed(lambda: _through_guardrail(study, samples, limit, folder))
    if is_served:
        way = "vLLM's server"
        seconds[way], scores[way] = timed(lambda: _through_server(study, settings, samples, folder))
    decided = _flagged(scores[CALIBRATED_IN], limit)
    return {
        way: {
            "largest_difference": max(abs(of_way[name] - scores["alone"][name]) for name in of_way),
            "decisions": float(len(_flagged(of_way, limit) ^ decided)),
            "seconds_a_sample": seconds[way] / len(samples),
        }
        for way, of_way in scores.items()
    }


def _study(settings: Sequence[str], dtype: str) -> Study:
    """The settings of an evaluation in this numeric type; bfloat16 in batches is fast by definition."""
    mode = "reproducible" if dtype == "float32" else "fast"
    own = ["engine=transformers", "engine.batch_size=32"]
    return composed("evaluate", [*own, *settings, f"engine.dtype={dtype}", f"engine.scores={mode}"])


def _exchanges(n: int) -> list[Sample]:
    """The first exchanges of the examples, longest and shortest mixed as they come."""

    def messages(side: Any, role: str) -> tuple[Message, ...]:
        turns = [{"role": role, "content": side}] if isinstance(side, str) else side
        return tuple(Message.model_validate_json(json.dumps(turn)) for turn in turns)

    lines = (ROOT / "examples" / "dataset.jsonl").read_text(encoding="utf-8").splitlines()[:n]
    rows = [json.loads(line) for line in lines]
    return [
        sample_of(messages(row["request"], "user"), messages(row["response"], "assistant")) for row in rows
    ]


def _opened(study: Study) -> Judge:
    """The judge of the study, as every stage opens it."""
    return open_judge(judge_spec(study.monitor, study.engine, study.prompt), study.paths.models)


def _ask(judge: Judge, samples: Sequence[Sample], batch: int) -> Scores:
    """The scores of the samples, so many of them in each call."""
    scores: Scores = {}
    for start in range(0, len(samples), batch):
        verdicts = judge.verdicts(samples[start : start + batch])
        scores |= {verdict.sample_id: float(verdict.score or 0.0) for verdict in verdicts}
    return scores


def _calibrated(scores: list[float]) -> float:
    """A threshold that flags a third of these scores: one of them, raised as `calibrate` raises it."""
    limit = sorted(scores)[-len(scores) // 3 - 1]
    return float(clear_of_scores(limit, np.array(scores)))


def _flagged(scores: Scores, limit: float) -> set[str]:
    """The ids of the samples above the threshold."""
    return {name for name, score in scores.items() if score > limit}


def _through_guardrail(study: Study, samples: Sequence[Sample], limit: float, work: Path) -> Scores:
    """The scores in a guardrail's answers, one request at a time; actions have to fit the threshold."""
    spec = judge_spec(study.monitor, study.engine, study.prompt)
    judges: dict[str, ServedJudge | ServedBaseline] = {POINT: ServedJudge(spec, study)}
    calibrated = Calibrated(work, threshold_point(threshold_at(limit, POINT)), work, None, judges)
    serve = Serve(guardrail=True, timeout_seconds=600, at_once=1000)
    scores: Scores = {}
    with (
        open_monitor(calibrated, 600) as monitor,
        serving(monitor, serve, work, 0, None) as (server, _),
        running(server) as port,
    ):
        for sample in samples:
            answer = ask(port, body_of(sample)).answer
            scores[sample.id] = float(answer["score"])
            assert (answer["action"] == "flag") == (scores[sample.id] > limit)
    return scores


def _through_server(study: Study, settings: Sequence[str], samples: Sequence[Sample], work: Path) -> Scores:
    """The scores of the same weights in vLLM's server, asked by token ids with all requests at once."""
    shared = [setting for setting in settings if not setting.startswith("engine")]
    engine = [
        f"engine.dtype={study.engine.precision}",
        f"engine.scores={getattr(study.engine, 'scores', 'fast')}",
        "engine.enforce_eager=true",  # compiling takes minutes, and gives the same scores
        "engine.startup_seconds=1800",
    ]
    served = composed("evaluate", [*shared, "engine=vllm", *engine])
    with running_server(served, free_port("127.0.0.1", 0), work / "server.log") as server:
        asks = composed("evaluate", [*shared, "engine=openai", "engine.by_token_ids=true"])
        address = {"base_url": server.url, "model": server.model}
        endpoint = OpenAiEngine.model_validate(asks.engine.model_dump() | address)
        judge = open_judge(judge_spec(asks.monitor, endpoint, asks.prompt), asks.paths.models)
        scores = _ask(judge, samples, len(samples))
        judge.close()
    return scores
