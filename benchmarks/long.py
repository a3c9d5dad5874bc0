"""Half a million tokens by chunks and by a ledger, beside one full read: memory, seconds and tokens.

A session of real turns of the starter is lengthened to `tokens` and judged with `unit=chunk` and with
`unit=ledger`, each in a process of its own. `model=random` is two small layers of random weights with the
monitor's tokenizer, so that the whole length is read on any machine; `model=monitor` is the monitor itself. A
full read takes quadratically more with its length, so it is made of `full` tokens only, where the chunks read
the same ones: tokens are compared over the whole length, seconds over that part. A random model fills every
list up to its limit, which no better one does.
"""

import time
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.measuring import Measured, Ratio, Result, apart, composed
from monitorbench.config.study import Study
from monitorbench.corpus.build import ensure
from monitorbench.corpus.store import read_split
from monitorbench.engines.stored.model_folder import load_tokenizer
from monitorbench.engines.weights import weights_folder
from monitorbench.judging.identity import judge_spec
from monitorbench.judging.open import open_judge
from monitorbench.prompts.render import Renderer
from monitorbench.records import Label, Sample, Split
from monitorbench.stress.changes.insertions import CHARACTERS_A_TOKEN, lengthened

WAYS = {"chunk": ("unit=chunk",), "ledger": ("unit=ledger", "prompt=ledger")}
MOST_MIB, MOST_COST = 6 * 1024, 1.3
_POSITIONS = 2**20


def main(work: Path, *, tokens: int, full: int, model: str, settings: list[str]) -> Result:
    """Judge the session in each way, and a part of it at once as well."""
    settings = [f"paths.data={work / 'data'}", "engine=transformers", "tracking=none", *settings]
    if model == "random":
        settings += [f"monitor.path={_random_model(work, settings)}", f"monitor.context_tokens={_POSITIONS}"]
    rows: dict[str, dict[str, float]] = {}
    of_whole, of_part = ({} for _ in range(2))
    whole = _n_tokens(settings, tokens)
    for name, way in WAYS.items():
        of_whole[name] = _judged(rows, f"{name}, {whole:,} tokens", tokens, [*settings, *way])
        of_part[name] = _judged(rows, f"{name}, the first {full:,}", full, [*settings, *way])
    at_once = _judged(rows, f"one full read of {full:,}", full, settings)
    ratios = {}
    for name, row in of_whole.items():
        ratios[f"{name}_tokens_over_a_full_read"] = Ratio(row["prompt_tokens"] / whole, most=MOST_COST)
        ratios[f"{name}_memory_over_6_gib"] = Ratio(row["peak_mib"] / MOST_MIB, most=1)
    ratios["chunk_seconds_over_a_full_read"] = Ratio(
        of_part["chunk"]["judging_seconds"] / at_once["judging_seconds"], most=MOST_COST
    )
    return Result(rows, ratios, {"tokens": whole, "full": full, "model": model})


def _judged(
    rows: dict[str, dict[str, float]], name: str, tokens: int, settings: list[str]
) -> dict[str, float]:
    taken: Measured = apart("long:judge", tokens, settings)
    seconds, prompt, completion = taken.output.strip("[]").split(",")
    rows[name] = {
        "judging_seconds": float(seconds),
        "peak_mib": taken.peak_mib,
        "prompt_tokens": float(prompt),
        "completion_tokens": float(completion),
    }
    return rows[name]


def judge(tokens: int, settings: list[str]) -> list[float]:
    """Judge a session of so many tokens: seconds once the model is loaded, tokens read, tokens written."""
    study = composed("evaluate", settings)
    sample = _session(study, tokens)
    judge_of = open_judge(judge_spec(study.monitor, study.engine, study.prompt), study.paths.models)
    judge_of.verdicts([_session(study, 300)])  # loads the model
    began = time.perf_counter()
    (verdict,) = judge_of.verdicts([sample])
    return [time.perf_counter() - began, verdict.prompt_tokens, verdict.completion_tokens]


def _session(study: Study, tokens: int) -> Sample:
    """A misbehavior sample in the middle of real benign turns."""
    samples = list(read_split(ensure(study, [Split.TEST]), Split.TEST, study.dataset.view("test")))
    bad = min((one for one in samples if one.label is Label.MISBEHAVIOR), key=lambda one: one.id)
    others = [one for one in samples if one.label is Label.BENIGN and one.group_id != bad.group_id]
    return lengthened(bad, others, tokens * CHARACTERS_A_TOKEN, "middle", Random(0))


def _n_tokens(settings: list[str], tokens: int) -> int:
    """Tokens of the whole session in one prompt."""
    study = composed("evaluate", settings)
    tokenizer: Any = load_tokenizer(weights_folder(study.monitor, study.paths.models))
    return len(Renderer(study.prompt, tokenizer, study.monitor.opening).render(_session(study, tokens)))


def _random_model(work: Path, settings: list[str]) -> Path:
    """Two layers of random weights with the monitor's tokenizer."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    study = composed("evaluate", settings)
    tokenizer = load_tokenizer(weights_folder(study.monitor, study.paths.models))
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=_POSITIONS,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.eos_token_id,
    )
    LlamaForCausalLM(config).save_pretrained(work / "random")
    tokenizer.save_pretrained(work / "random")
    return work / "random"
