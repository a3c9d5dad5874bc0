"""`engine=vllm` against raw `vllm.LLM`, and cached tokens with and without an order; see evaluate.py.

    python benchmarks/evaluate_engine.py OUT.json [SETTINGS]

Three sides take turns: our judging (rendering, engine, parsing, verdict log), `LLM.generate` on the same
token ids in the same order in the very same `LLM`, and `LLM.generate` in an `LLM` at its own defaults on
the samples as they come. All have both the same cores and KV space; prefix caches are emptied each time.
Ours is compiled, as raw's defaults are: a start-up of minutes that a sweep's thousands of prompts repay.
"""

import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from evaluate_samples import Judged, judged_samples

from monitorbench.config.study import VllmEngine
from monitorbench.engines.local_model import LocalModel
from monitorbench.engines.protocol import Decoding
from monitorbench.engines.stored.load import load_tokenizer
from monitorbench.engines.vllm_engine import InProcessVllm, llm_settings, prefix_order
from monitorbench.judging.display import judging
from monitorbench.judging.judge import Judge
from monitorbench.judging.local import LocalPrompt
from monitorbench.prompts.parse import score
from monitorbench.runs.tracking import Track
from monitorbench.runs.verdict_log import open_failure_log, open_verdict_log, read_verdicts

ROUNDS = 3
SMALL_CACHE_TOKENS = 4096
Prompts = Sequence[Sequence[int]]


class Raw(NamedTuple):
    """What `LLM.generate` gave: seconds, P(misbehavior) of each prompt, share of prompt tokens cached."""

    seconds: float
    scores: list[float | None]
    cached: float


def main() -> None:
    """Measure, print and write."""
    out, *overrides = sys.argv[1:]
    judged = judged_samples(["engine=vllm", "engine.enforce_eager=false", *overrides])
    measured = against_raw(judged, Path(out).parent)
    measured["cache"] = ordered_against_shuffled(judged)
    Path(out).write_text(json.dumps(measured, indent=2) + "\n")


def against_raw(judged: Judged, work: Path) -> dict[str, Any]:
    """Ours, raw at the same settings, raw at its defaults: prompts a second, and their ratios."""
    study, config = judged.study, judged.study.engine
    assert isinstance(config, VllmEngine)
    decoding = decoding_of(judged)
    warm_up = [judged.prompts[0][:40]]
    began = time.perf_counter()
    engine = InProcessVllm(config, judged.weights, [], study.monitor.context_tokens)
    list(engine.complete(warm_up, decoding))
    loading = time.perf_counter() - began
    model = LocalModel(load_tokenizer(judged.weights), lambda: engine)
    identity = dict.fromkeys(("weights", "adapter", "dtype", "engine"), "benchmark")
    prompted = LocalPrompt(model, judged.study.prompt, judged.study.monitor, identity)
    from vllm import LLM  # after the engine has set the environment

    began = time.perf_counter()
    default = LLM(model=str(judged.weights))
    generate(default, warm_up, judged)
    loading_default = time.perf_counter() - began
    ordered = [judged.prompts[index] for index in prefix_order(judged.prompts)]
    ours: list[float] = []
    same: list[Raw] = []
    defaults: list[Raw] = []
    for number in range(ROUNDS):
        log = work / f"verdicts-{number}.jsonl"
        log.unlink(missing_ok=True)  # verdicts of an earlier run would be reused
        engine.llm.reset_prefix_cache()
        ours.append(seconds_of(lambda log=log: judge(judged, prompted, log)))
        same.append(generate(engine.llm, ordered, judged))
        defaults.append(generate(default, judged.prompts, judged))
    engine.close()
    default.llm_engine.engine_core.shutdown()

    verdicts = read_verdicts(work / "verdicts-0.jsonl")
    scored = {verdict.sample_id: verdict.score for verdict in verdicts}
    mine = [scored[sample.id] for sample in judged.samples]
    n, form = len(judged.samples), config.form
    rows = {
        f"monitorbench (block {form.block_size}, {compiled(form.enforce_eager)})": (ours, loading),
        "raw, same settings and order": ([raw.seconds for raw in same], loading),
        f"raw, its defaults (block {default_block(default)}, {compiled(is_eager(default))})": (
            [raw.seconds for raw in defaults],
            loading_default,
        ),
    }
    print(f"\n{n} paired samples, {sum(map(len, judged.prompts)) / n:.0f} tokens each; median of {ROUNDS}")
    for name, (seconds, loaded) in rows.items():
        print(f"  {name:<54} {n / median(seconds):6.2f} /s   loading {loaded:6.1f} s")
    difference = largest_difference(mine, defaults[0].scores)
    print(f"  cached tokens: {same[0].cached:.1%}, at raw's defaults {defaults[0].cached:.1%}")
    print(f"  largest difference of a score: {difference:.4f}")
    against_same = median(raw.seconds / own for raw, own in zip(same, ours, strict=True))
    against_default = median(raw.seconds / own for raw, own in zip(defaults, ours, strict=True))
    return {
        "samples": n,
        "seconds": {name: seconds for name, (seconds, _) in rows.items()},
        "loading_seconds": {name: loaded for name, (_, loaded) in rows.items()},
        "settings": config.model_dump(mode="json"),
        "cached_share": {"same": same[0].cached, "defaults": defaults[0].cached},
        "largest_score_difference": difference,
        "ratios": {
            "rate, ours / raw at the same settings": (against_same, ">= 0.95"),
            "rate, ours / raw at its defaults": (against_default, ">= 1.2"),
        },
    }


def ordered_against_shuffled(judged: Judged) -> dict[str, float]:
    """The share of prompt tokens that a small KV cache spares, in our order and shuffled."""
    config = judged.study.engine
    assert isinstance(config, VllmEngine)
    from vllm import LLM

    llm = LLM(
        **llm_settings(config, judged.weights, SMALL_CACHE_TOKENS),
        num_gpu_blocks_override=SMALL_CACHE_TOKENS // config.form.block_size + 1,  # one is never used
    )
    shuffled = list(judged.prompts)
    random.Random(0).shuffle(shuffled)
    in_order = [shuffled[index] for index in prefix_order(shuffled)]
    rows = {"ordered": generate(llm, in_order, judged), "shuffled": generate(llm, shuffled, judged)}
    llm.llm_engine.engine_core.shutdown()
    print(f"\na KV cache of {SMALL_CACHE_TOKENS:,} tokens, prompts of {sum(map(len, shuffled)):,} in all")
    for name, raw in rows.items():
        print(f"  {name:<54} {raw.cached:6.1%} of the tokens cached, {raw.seconds:6.1f} s")
    return {name: raw.cached for name, raw in rows.items()}


def judge(judged: Judged, prompted: LocalPrompt, log: Path) -> None:
    """What `judging.evaluate` does with a loaded model: render, complete, parse, append."""
    with open_verdict_log(log) as verdicts, open_failure_log(log.with_suffix(".failed")) as failures:
        ours, samples = Judge(prompted, verdicts, failures), judged.samples
        keys, questions = ours.pending(samples)
        ours.ask(questions, lambda: judging("benchmark", samples, keys, verdicts, Track()))


def generate(llm: Any, prompts: Prompts, judged: Judged) -> Raw:
    """Time `LLM.generate` on token ids, its prefix cache empty."""
    from vllm import SamplingParams, TokensPrompt

    decoding = decoding_of(judged)
    sampling = SamplingParams(
        temperature=0.0,
        max_tokens=decoding.max_new_tokens,
        stop_token_ids=list(decoding.stop_token_ids),
        logprob_token_ids=list(decoding.scored_token_ids),
        skip_special_tokens=False,
    )
    llm.reset_prefix_cache()
    began = time.perf_counter()
    outputs = llm.generate(
        [TokensPrompt(prompt_token_ids=list(ids)) for ids in prompts], sampling, use_tqdm=False
    )
    seconds = time.perf_counter() - began
    firsts = [output.outputs[0].logprobs[0] for output in outputs]
    scores = [
        score({i: first[i].logprob for i in decoding.scored_token_ids}, judged.renderer.label_tokens).score
        for first in firsts
    ]
    cached = sum(output.num_cached_tokens or 0 for output in outputs)
    return Raw(seconds, scores, cached / sum(map(len, prompts)))


def decoding_of(judged: Judged) -> Decoding:
    """As `judging.evaluate` asks for it."""
    renderer = judged.renderer
    return Decoding(renderer.prompt.max_new_tokens, (renderer.end_of_turn,), renderer.label_tokens.all)


def seconds_of(work: Callable[[], object]) -> float:
    """Wall time of a call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def largest_difference(ours: Sequence[float | None], theirs: Sequence[float | None]) -> float:
    """Over all samples; infinite where one side has no score."""
    return max(
        float("inf") if a is None or b is None else abs(a - b) for a, b in zip(ours, theirs, strict=True)
    )


def compiled(eager: bool) -> str:
    """In words."""
    return "eager" if eager else "compiled"


def is_eager(llm: Any) -> bool:
    """Whether vLLM by itself doesn't compile."""
    eager: bool = llm.llm_engine.vllm_config.model_config.enforce_eager
    return eager


def default_block(llm: Any) -> int:
    """The KV block that vLLM chose by itself."""
    block: int = llm.llm_engine.vllm_config.cache_config.block_size
    return block


if __name__ == "__main__":
    main()
