"""Judging 200 paired samples, beside raw vLLM, lm-evaluation-harness and Inspect AI; and start-up times.

`engine`: `engine=vllm` against `vllm.LLM.generate` on the same token ids, and what ordering the requests
spares. `peers`: clients of one running server; lm-eval and Inspect get an environment of their own in
`.venv-peers`, made from `requirements/peers.txt` when it isn't there. `start`: `import monitorbench` and
every script's `--help`. Each part is a process of its own, sides alternate, and a part that can't be had
is skipped with its reason.
"""

import json
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.judged import Judged, judged_samples
from benchmarks.measuring import ROOT, Ratio, Result, apart, timed
from monitorbench.config.study import VllmEngine
from monitorbench.engines.open import LocalModel
from monitorbench.engines.protocol import Decoding
from monitorbench.engines.stored.model_folder import load_tokenizer
from monitorbench.engines.vllm_engine import InProcessVllm, llm_settings, prefix_order
from monitorbench.judging.display import judging
from monitorbench.judging.local import TokenJudge
from monitorbench.judging.logged import LoggedJudge
from monitorbench.prompts.label_tokens import score
from monitorbench.runs.keyed_log import open_failure_log, open_verdict_log, read_verdicts
from monitorbench.runs.tracking import Track

_PARTS = {"engine": "evaluate:engine", "peers": "evaluate_peers:measure"}
"""Functions that measure a part in a process of its own."""
ROUNDS, SMALL_CACHE_TOKENS = 3, 4096
Prompts = Sequence[Sequence[int]]


def main(work: Path, *, parts: str, start_runs: int, settings: list[str]) -> Result:
    """Measure the parts, each in its process."""
    rows: dict[str, Mapping[str, float]] = {}
    ratios: dict[str, Ratio] = {}
    details: dict[str, Any] = {}
    settings = ["dataset.test.pairs_per_cell=15", f"paths.data={work / 'data'}", *settings]
    for part in parts.split(","):
        if part not in (*_PARTS, "start"):
            raise SystemExit(f"--parts: no part {part}; expected some of engine,peers,start")
        try:
            result = start_up(start_runs) if part == "start" else _apart(part, work, settings)
        except SystemExit as reason:
            print(f"{part}: skipped, {reason}")
            details[part] = {"skipped": str(reason)}
            continue
        rows, ratios = {**rows, **result.rows}, {**ratios, **result.ratios}
        details[part] = result.details
    return Result(rows, ratios, details)


def _apart(part: str, work: Path, settings: list[str]) -> Result:
    rows, ratios, details = json.loads(apart(_PARTS[part], work, settings).output)
    return Result(rows, {name: Ratio(*ratio) for name, ratio in ratios.items()}, details)


def start_up(n_runs: int) -> Result:
    """Seconds of `import monitorbench`, less an interpreter's own, and of every script's `--help`."""
    python = [sys.executable, "-c"]
    commands = {"an interpreter": [*python, "pass"], "import": [*python, "import monitorbench"]}
    for folder in ("data_build", "train", "eval"):
        for script in sorted((ROOT / folder).glob("*.py")):
            commands[f"{folder}/{script.name} --help"] = [sys.executable, str(script), "--help"]
    fastest = dict.fromkeys(commands, float("inf"))
    for _ in range(n_runs):
        for name, command in commands.items():
            seconds, _ = timed(lambda command=command: _run(command))  # type: ignore[misc]
            fastest[name] = min(fastest[name], seconds)
    helps = [seconds for name, seconds in fastest.items() if name.endswith("--help")]
    importing = fastest["import"] - fastest["an interpreter"]
    rows = {f"{name}, the fastest of {n_runs}": {"seconds": s} for name, s in fastest.items()}
    ratios = {"import monitorbench, s": Ratio(importing, most=0.15)}
    return Result(rows, {**ratios, "slowest --help, s": Ratio(max(helps), most=0.8)})


def _run(command: list[str]) -> None:
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)


class Raw(NamedTuple):
    """Answers of `LLM.generate`: seconds, P(misbehavior) of each prompt, share of prompt tokens cached."""

    seconds: float
    scores: list[float | None]
    cached: float


def engine(work: str, settings: list[str]) -> Result:
    """Compare ours with raw vLLM, and an ordered with a shuffled list of prompts.

    Three sides take turns: our judging (rendering, engine, parsing, verdict log), `LLM.generate` on the same
    token ids in the same order in the very same `LLM`, and `LLM.generate` in an `LLM` at its own defaults on
    the samples as they come. All have both the same cores and KV space; prefix caches are emptied each time.
    Ours is compiled and in `engine.scores=fast`, as raw's defaults are: a start-up of minutes that a sweep's
    prompts repay, and bfloat16 where the machine multiplies it. `engine.scores=reproducible` among the
    settings shows what float32 costs beside them.
    """
    judged = judged_samples(["engine=vllm", "engine.enforce_eager=false", "engine.scores=fast", *settings])
    result = _against_raw(judged, Path(work))
    cache = _ordered_against_shuffled(judged)
    return Result({**result.rows, **cache}, result.ratios, result.details)


def _against_raw(judged: Judged, work: Path) -> Result:
    """Ours, raw at the same settings, raw at its defaults: prompts a second, and their ratios."""
    study, config = judged.study, judged.study.engine
    assert isinstance(config, VllmEngine)
    warm_up = [judged.prompts[0][:40]]

    def load_ours() -> InProcessVllm:
        engine = InProcessVllm(config, judged.weights, [], study.monitor.context_tokens)
        list(engine.complete(warm_up, _decoding(judged)))
        return engine

    def load_default() -> Any:
        llm = LLM(model=str(judged.weights))
        _generate(llm, warm_up, judged)
        return llm

    loading, engine = timed(load_ours)
    from vllm import LLM  # after the engine has set the environment

    model = LocalModel(load_tokenizer(judged.weights), lambda: engine)
    identity = dict.fromkeys(("weights", "adapter", "dtype", "engine"), "benchmark")
    judge = TokenJudge(model, study.prompt, study.monitor, identity)
    loading_default, default = timed(load_default)
    ordered = [judged.prompts[index] for index in prefix_order(judged.prompts)]
    ours: list[float] = []
    same: list[Raw] = []
    defaults: list[Raw] = []
    for number in range(ROUNDS):
        log = work / f"verdicts-{number}.jsonl"
        engine.llm.reset_prefix_cache()
        ours.append(timed(lambda log=log: _judge(judged, judge, log))[0])  # type: ignore[misc]
        same.append(_generate(engine.llm, ordered, judged))
        defaults.append(_generate(default, judged.prompts, judged))
    engine.close()
    default.llm_engine.engine_core.shutdown()

    scored = {verdict.sample_id: verdict.score for verdict in read_verdicts(work / "verdicts-0.jsonl")}
    pairs = [(scored[s.id], raw) for s, raw in zip(judged.samples, defaults[0].scores, strict=True)]
    difference = max(float("inf") if a is None or b is None else abs(a - b) for a, b in pairs)
    vllm_config = default.llm_engine.vllm_config
    forms = {
        "ours": (config.form.block_size, config.form.enforce_eager),
        "defaults": (vllm_config.cache_config.block_size, vllm_config.model_config.enforce_eager),
    }
    in_words = {name: f"block {n}, {'eager' if eager else 'compiled'}" for name, (n, eager) in forms.items()}
    sides = {
        f"monitorbench ({in_words['ours']})": (ours, loading),
        "raw, same settings and order": ([raw.seconds for raw in same], loading),
        f"raw, its defaults ({in_words['defaults']})": ([raw.seconds for raw in defaults], loading_default),
    }
    n = len(judged.samples)
    rows = {
        name: {"prompts/s": n / median(seconds), "loading_seconds": loaded}
        for name, (seconds, loaded) in sides.items()
    }
    against = [
        median(raw.seconds / own for raw, own in zip(raws, ours, strict=True)) for raws in (same, defaults)
    ]
    ratios = {
        "rate, ours / raw at the same settings": Ratio(against[0], least=1.0),
        "rate, ours / raw at its defaults": Ratio(against[1], least=1.2),
        "largest difference of a score": Ratio(difference),
    }
    details = {
        "samples": n,
        "mean_tokens": sum(map(len, judged.prompts)) / n,
        "seconds": {name: seconds for name, (seconds, _) in sides.items()},
        "settings": config.model_dump(mode="json"),
        "cached_share": {"same": same[0].cached, "defaults": defaults[0].cached},
    }
    return Result(rows, ratios, details)


def _ordered_against_shuffled(judged: Judged) -> dict[str, dict[str, float]]:
    """The share of prompt tokens that a small KV cache spares, in our order and shuffled."""
    config = judged.study.engine
    assert isinstance(config, VllmEngine)
    from vllm import LLM

    blocks = SMALL_CACHE_TOKENS // config.form.block_size + 1  # one is never used
    llm = LLM(**llm_settings(config, judged.weights, SMALL_CACHE_TOKENS), num_gpu_blocks_override=blocks)
    shuffled = list(judged.prompts)
    random.Random(0).shuffle(shuffled)
    ordered = [shuffled[index] for index in prefix_order(shuffled)]
    raws = {
        name: _generate(llm, list_, judged) for name, list_ in (("ordered", ordered), ("shuffled", shuffled))
    }
    llm.llm_engine.engine_core.shutdown()
    return {
        f"{name}, a KV cache of {SMALL_CACHE_TOKENS:,} tokens": {"cached": raw.cached, "seconds": raw.seconds}
        for name, raw in raws.items()
    }


def _judge(judged: Judged, judge: TokenJudge, log: Path) -> None:
    """Do what `judging.evaluate` does with a loaded model: render, complete, parse, append."""
    with open_verdict_log(log) as verdicts, open_failure_log(log.with_suffix(".failed")) as failures:
        ours, samples = LoggedJudge(judge, verdicts, failures), judged.samples
        keys, questions = ours.pending(samples)
        ours.ask(questions, lambda: judging("benchmark", samples, keys, verdicts, Track()))


def _generate(llm: Any, prompts: Prompts, judged: Judged) -> Raw:
    """Time `LLM.generate` on token ids, its prefix cache empty."""
    from vllm import SamplingParams, TokensPrompt

    decoding = _decoding(judged)
    sampling = SamplingParams(
        temperature=0.0,
        max_tokens=decoding.max_new_tokens,
        stop_token_ids=list(decoding.stop_token_ids),
        logprob_token_ids=list(decoding.scored_token_ids),
        skip_special_tokens=False,
    )
    llm.reset_prefix_cache()
    tokens = [TokensPrompt(prompt_token_ids=list(ids)) for ids in prompts]
    seconds, outputs = timed(lambda: llm.generate(tokens, sampling, use_tqdm=False))
    scores = []
    for output in outputs:
        first = output.outputs[0].logprobs[0]
        by_token = {i: first[i].logprob for i in decoding.scored_token_ids}
        scores.append(score(by_token, judged.renderer.label_tokens).score)
    cached = sum(output.num_cached_tokens or 0 for output in outputs)
    return Raw(seconds, scores, cached / sum(map(len, prompts)))


def _decoding(judged: Judged) -> Decoding:
    """The decoding that `judging.evaluate` asks for."""
    renderer = judged.renderer
    return Decoding(renderer.prompt.max_new_tokens, (renderer.end_of_turn,), renderer.label_tokens.all)
