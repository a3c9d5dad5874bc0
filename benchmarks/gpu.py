"""Training and judging speed of an architecture on one GPU, with random weights.

What a plan has to know before its first training: tokens a second and peak GPU memory of LoRA at several
lengths of samples, the activations recomputed or kept, beside the rate of the card's own matrix product; and
prompts a second and memory of judging, in both numeric types. Random weights do the arithmetic of trained
ones; nothing is downloaded. With `--tiny`, or where no GPU is, a model of two small layers.
"""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measuring import Ratio, Result, apart, composed, timed
from monitorbench.config.hardware import has_gpu

ARCHITECTURES: dict[str, dict[str, Any]] = {
    # config.json of Qwen/Qwen3-4B-Instruct-2507, by its published values.
    "qwen3_4b": {
        "vocab_size": 151_936,
        "hidden_size": 2560,
        "intermediate_size": 9728,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 262_144,
        "tie_word_embeddings": True,
        "rope_parameters": {"rope_type": "default", "rope_theta": 5_000_000},
    }
}
TINY = "tiny"
STEPS = 4
"""Optimizer steps at each length; the first warms up and is not timed."""
BATCH = 32
"""Prompts at a time when judging."""


def main(work: Path, *, model: str, passes: str, prompt: int, prompts: int) -> Result:
    """Train at each `number x tokens[k]` of `passes` (k: activations are kept), then judge in both types."""
    if not has_gpu():
        model = TINY
    folder = work / "model"
    apart("gpu:write_model", folder, model)
    rate = json.loads(apart("gpu:matmul_rate").output)
    trained = json.loads(apart("gpu:training", folder, work, passes.split(",")).output)
    rows: dict[str, dict[str, float]] = {
        f"train {name}": {**row, "share_of_matmul_rate": row["tflops"] / rate}
        for name, row in trained.items()
    }
    for scores, number in (("fast", prompts), ("reproducible", prompts // 4)):
        judged = json.loads(apart("gpu:judging", folder, scores, prompt, number).output)
        rows[f"judge, scores={scores}"] = judged
    shares = [row["share_of_matmul_rate"] for name, row in rows.items() if name.startswith("train")]
    details = {"model": model, "matmul_tflops": rate, **json.loads(apart("gpu:machine").output)}
    return Result(rows, {"largest share of the matmul rate": Ratio(max(shares))}, details)


def machine() -> dict[str, str]:
    """Name the card and the versions that ran on it."""
    import peft
    import torch
    import transformers

    card = torch.cuda.get_device_name() if has_gpu() else "no GPU"
    return {
        "card": card,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "peft": peft.__version__,
    }


def write_model(folder: str, model: str) -> int:
    """Write the architecture with random weights in bfloat16, and a small tokenizer; returns parameters."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    from monitorbench.doctor.child import make_model

    study = composed("train", ["tracking=none"])
    target = make_model(Path(folder), study.prompt, study.seed)
    if model == TINY:
        return 0
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        made = Qwen3ForCausalLM(Qwen3Config(**ARCHITECTURES[model], dtype="bfloat16"))
    made.save_pretrained(target)
    return int(made.num_parameters())


def matmul_rate() -> float:
    """The card's own rate of one large bfloat16 product, in TFLOP/s, the best of several."""
    import torch

    device, size = ("cuda", 8192) if has_gpu() else ("cpu", 512)
    a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))

    def product() -> None:
        for _ in range(10):
            torch.mm(a, b)
        _wait()

    product()
    return 10 * 2 * size**3 / timed(product, times=5)[0] / 1e12


def training(folder: str, work: str, passes: Sequence[str]) -> dict[str, dict[str, float]]:
    """Train as `train/sft.py` does, one packed pass of random tokens a step, in one process."""
    import torch

    from monitorbench.engines.stored.model_folder import load_tokenizer
    from monitorbench.training.examples import Example
    from monitorbench.training.model import load_model
    from monitorbench.training.trainer import TrainingWork, arguments, make_trainer

    device = "cuda" if has_gpu() else "cpu"
    own = ["tracking=none", "training=lora_h100", f"training.device={device}", "training.dtype=bfloat16"]
    own += ["training.loader=transformers", "training.batching=packed", "training.epochs=null"]
    tokenizer = load_tokenizer(Path(folder))
    draw = torch.Generator().manual_seed(0)
    rows, model = {}, None
    for wanted in passes:
        number, tokens = (int(part) for part in wanted.rstrip("k").split("x"))
        sizes = [f"training.{name}={number}" for name in ("batch_size", "micro_batch_size")]
        kept = f"training.gradient_checkpointing={str(not wanted.endswith('k')).lower()}"
        steps = [f"training.max_steps={STEPS}", f"training.max_tokens={tokens}"]
        study = composed("train", [*own, *sizes, *steps, kept])
        model = model or load_model(Path(folder), study.training, study.seed)
        n_words = model.get_input_embeddings().num_embeddings
        ids = torch.randint(n_words, (number, tokens), generator=draw).tolist()
        examples = [Example(tuple(row[:-2]), tuple(row[-2:])) for row in ids]
        plan = [tuple((k,) for k in range(number)) for _ in range(STEPS)]
        inputs = TrainingWork(tokenizer, 0, examples, plan, added_loss=None)
        args = arguments(study.training, Path(work) / "checkpoints", study.seed)
        args.save_strategy = "no"
        if not study.training.gradient_checkpointing:
            model.gradient_checkpointing_disable()
        trainer = make_trainer(model, study.training, args, inputs, [])
        rows[wanted] = _measured(trainer, number * tokens, 4 if wanted.endswith("k") else 6)
    return rows


def _measured(trainer: Any, tokens: int, flop: int) -> dict[str, float]:
    """Train; tokens a second after the first step, peak GPU memory, and TFLOP/s at `flop` a parameter."""
    import torch
    from transformers import TrainerCallback

    ends: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, *args: Any, **kwargs: Any) -> None:
            _wait()
            ends.append(time.perf_counter())

    trainer.add_callback(Clock())
    if has_gpu():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    trainer.train()
    seconds = (ends[-1] - ends[0]) / (len(ends) - 1)
    base = sum(
        p.numel() for name, p in trainer.model.named_parameters() if "proj" in name and "lora" not in name
    )
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    return {
        "tokens_per_second": tokens / seconds,
        "seconds_a_step": seconds,
        "peak_gib": torch.cuda.max_memory_allocated() / 2**30 if has_gpu() else 0.0,
        # The base's own products: attention's are not counted, nor are those of the adapter.
        "tflops": flop * base * tokens / seconds / 1e12,
        "first_loss": losses[0],
    }


def judging(folder: str, scores: str, length: int, number: int) -> dict[str, float]:
    """Answer prompts of random tokens, two tokens each, as `evaluate engine=transformers` does."""
    import torch

    from monitorbench.config.engine import TransformersEngine
    from monitorbench.engines.protocol import Decoding
    from monitorbench.engines.transformers_engine import InProcessTransformers

    engine = composed("evaluate", ["engine=transformers", f"engine.scores={scores}", "tracking=none"]).engine
    assert isinstance(engine, TransformersEngine)
    engine = engine.model_copy(update={"batch_size": BATCH})
    judge = InProcessTransformers(engine, Path(folder))
    draw = torch.Generator().manual_seed(0)
    prompts = torch.randint(100, 700, (number, length), generator=draw).tolist()
    decoding = Decoding(max_new_tokens=2, stop_token_ids=(0,), scored_token_ids=(10, 11))
    list(judge.complete(prompts[: min(BATCH, number)], decoding))
    _wait()
    seconds, _ = timed(lambda: list(judge.complete(prompts, decoding)))
    return {
        "prompts_per_second": number / seconds,
        "prompt_tokens_per_second": number * length / seconds,
        "peak_gib": torch.cuda.max_memory_allocated() / 2**30 if has_gpu() else 0.0,
    }


def _wait() -> None:
    """Wait until the GPU has done what it was given."""
    import torch

    if has_gpu():
        torch.cuda.synchronize()
