"""`engine=vllm` against raw `vllm.LLM`, and cached tokens with and without an order; see `evaluate`.

Three sides take turns: our judging (rendering, engine, parsing, verdict log), `LLM.generate` on the same
token ids in the same order in the very same `LLM`, and `LLM.generate` in an `LLM` at its own defaults on
the samples as they come. All have both the same cores and KV space; prefix caches are emptied each time.
Ours is compiled, as raw's defaults are: a start-up of minutes that a sweep's thousands of prompts repay.
"""

import random
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.judged import Judged, judged_samples
from benchmarks.measuring import Ratio, Result, timed
from monitorbench.config.study import VllmEngine
from monitorbench.engines.open import LocalModel
from monitorbench.engines.protocol import Decoding
from monitorbench.engines.stored.model_folder import load_tokenizer
from monitorbench.engines.vllm_engine import InProcessVllm, llm_settings, prefix_order
from monitorbench.judging.display import judging
from monitorbench.judging.local import TokenJudge
from monitorbench.judging.logged import LoggedJudge
from monitorbench.prompts.label_tokens import score
from monitorbench.runs.tracking import Track
from monitorbench.runs.verdict_log import open_failure_log, open_verdict_log, read_verdicts

ROUNDS, SMALL_CACHE_TOKENS = 3, 4096
Prompts = Sequence[Sequence[int]]


class Raw(NamedTuple):
    """Answers of `LLM.generate`: seconds, P(misbehavior) of each prompt, share of prompt tokens cached."""

    seconds: float
    scores: list[float | None]
    cached: float


def measure(work: str, settings: list[str]) -> Result:
    """Compare ours with raw vLLM, and an ordered with a shuffled list of prompts."""
    judged = judged_samples(["engine=vllm", "engine.enforce_eager=false", *settings])
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
        "rate, ours / raw at the same settings": Ratio(against[0], least=0.95),
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
