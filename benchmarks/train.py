"""Training speed and memory beside a stock `trl.SFTTrainer`, alternating, in one run.

SmolLM2-135M in bf16 on two threads, about 400 tokens a sample, eight samples a step; each measurement is
a process of its own. Both sides get the same token ids in the same order, the same LoRA from the same seed,
the same optimizer and schedule. A side's time is the better of its rounds, its memory the larger. Says where
the time goes and how near the machine's own matmul rate it comes.
"""

import json
import resource
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.judged import sample
from benchmarks.measuring import Ratio, Result, apart, composed, timed
from monitorbench.config.study import Study
from monitorbench.engines.stored.model_folder import load_tokenizer
from monitorbench.engines.weights import weights_folder
from monitorbench.prompts.render import Renderer
from monitorbench.records import Label
from monitorbench.training.examples import Example, make_examples

STEP, MICRO = 8, 4
"""Samples of a step on both sides, and of ours at once."""
WORDS = tuple("the report says our team has moved every box to a new shelf before noon on friday".split())
SIDES = ("ours", "stock")


def main(work: Path, *, samples: int, rounds: int, settings: list[str]) -> Result:
    """Train in both ways by turns, and compare."""
    tokens_per_sample = json.loads(apart("train:write_examples", work, samples, settings).output)
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    for _ in range(rounds):
        for side in SIDES:
            runs[side].append(json.loads(apart(f"train:{side}", work, samples, settings).output))
    matmul = json.loads(apart("train:matmul_rates").output)
    ours, stock = (min(runs[side], key=lambda run: run["seconds"]) for side in SIDES)
    peak = {side: max(run["peak_mib"] for run in runs[side]) for side in SIDES}
    losses = list(zip(ours["losses"], stock["losses"], strict=True))
    ratios = {
        "tokens_per_second_over_stock": ours["tokens_per_second"] / stock["tokens_per_second"],
        "cpu_seconds_stock_over_ours": stock["cpu_seconds"] / ours["cpu_seconds"],
        "peak_memory_over_stock": peak["ours"] / peak["stock"],
        "mean_loss_apart": abs(sum(ours["losses"]) - sum(stock["losses"])) / sum(stock["losses"]),
        "largest_loss_apart": max(abs(a - b) / b for a, b in losses),
        "share_of_matmul_rate": ours["gflops"] / matmul["bfloat16"],
    }
    rows = {
        f"{side}, round {i}": {name: value for name, value in run.items() if name != "losses"}
        for side in SIDES
        for i, run in enumerate(runs[side], start=1)
    }
    details = {"tokens_per_sample": tokens_per_sample, "matmul_gflops": matmul, "losses": losses}
    return Result(rows, {name: Ratio(value) for name, value in ratios.items()}, details)


def write_examples(folder: str, n_samples: int, settings: list[str]) -> float:
    """Write token ids of samples of about 400 tokens in the plan's order; returns their mean length."""
    import torch

    from monitorbench.training.trainer import make_plan

    draw, study = torch.Generator().manual_seed(0), _study(n_samples, settings)
    renderer = Renderer(study.prompt, load_tokenizer(weights_folder(study.monitor, study.paths.models)))
    samples = []
    for number in range(n_samples):
        n_words = int(torch.randint(150, 350, (1,), generator=draw))
        words = torch.randint(len(WORDS), (n_words,), generator=draw).tolist()
        label = Label.MISBEHAVIOR if number % 2 else Label.BENIGN
        samples.append(sample(str(number), " ".join(WORDS[k] for k in words), label))
    samples, examples = make_examples(samples, renderer, study.training.max_tokens)
    plan = make_plan(samples, [e.n_tokens for e in examples], 0, study.training, study.seed)
    ordered = [examples[i] for batch in plan for (i,) in batch]  # the eight of a step one after another
    (Path(folder) / "examples.json").write_text(json.dumps(ordered))
    return sum(e.n_tokens for e in ordered) / len(ordered)


def ours(folder: str, n_samples: int, settings: list[str]) -> dict[str, Any]:
    """Train as `train/sft.py` does."""
    from monitorbench.training.model import load_model
    from monitorbench.training.trainer import TrainingWork, arguments, make_trainer

    study, examples, weights = _opened(folder, n_samples, settings)
    tokenizer, model = load_tokenizer(weights), load_model(weights, study.training, study.seed)
    plan = [tuple((i,) for i in range(k, k + MICRO)) for k in range(0, len(examples), MICRO)]
    work = TrainingWork(
        tokenizer, Renderer(study.prompt, tokenizer).end_of_turn, examples, plan, added_loss=None
    )
    args = arguments(study.training, Path(folder) / "checkpoints", study.seed)
    args.save_strategy = "no"
    return _train(make_trainer(model, study.training, args, work, []), examples)


def stock(folder: str, n_samples: int, settings: list[str]) -> dict[str, Any]:
    """Train by `trl.SFTTrainer` and PEFT as they come: their loss, layers, attention and mixed precision."""
    import torch
    from datasets import Dataset
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, PrinterCallback, set_seed
    from trl import SFTConfig, SFTTrainer

    study, examples, weights = _opened(folder, n_samples, settings)
    training = study.training
    set_seed(study.seed)
    base = AutoModelForCausalLM.from_pretrained(weights, dtype=getattr(torch, training.resolved_dtype))
    lora = LoraConfig(
        r=training.lora_rank,
        lora_alpha=training.lora_alpha,
        lora_dropout=training.lora_dropout,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    model = get_peft_model(base, lora)
    rows = [
        {"input_ids": [*e.prompt, *e.completion], "labels": [-100] * len(e.prompt) + list(e.completion)}
        for e in examples
    ]
    args = SFTConfig(
        output_dir=f"{folder}/stock",
        max_steps=training.max_steps,
        per_device_train_batch_size=training.batch_size,
        train_sampling_strategy="sequential",
        learning_rate=training.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=round(training.warmup_share * (n_samples // STEP)),
        weight_decay=training.weight_decay,
        max_grad_norm=training.max_grad_norm,
        gradient_checkpointing=False,  # as on our side; on, it is slower
        use_cpu=True,
        seed=study.seed,
        logging_steps=1,
        disable_tqdm=True,
        dataloader_pin_memory=False,
        report_to=[],
        save_strategy="no",
        max_length=None,
    )
    dataset = Dataset.from_list(rows)
    trainer = SFTTrainer(
        model=model, args=args, train_dataset=dataset, processing_class=load_tokenizer(weights)
    )
    trainer.remove_callback(PrinterCallback)
    return _train(trainer, examples)


def matmul_rates() -> dict[str, float]:
    """The machine's own rate at the model's largest layer, in GFLOP/s, the best of several."""
    import torch

    torch.set_num_threads(2)
    rates = {}
    for name in ("bfloat16", "float32"):
        x, w = (torch.randn(shape, dtype=getattr(torch, name)) for shape in ((1600, 576), (576, 1536)))
        seconds, _ = timed(lambda x=x, w=w: [x @ w for _ in range(20)], times=10)  # type: ignore[misc]
        rates[name] = 20 * 2 * 1600 * 576 * 1536 / seconds / 1e9
    return rates


def _study(n_samples: int, settings: list[str]) -> Study:
    """The project's own CPU settings, gone through the samples once."""
    own = ["tracking=none", "training.device=cpu", "training.dtype=bfloat16", "training.batching=packed"]
    own += [f"training.micro_batch_size={MICRO}", f"training.max_steps={n_samples // STEP}"]
    return composed("train", [*own, "training.validate_every=1", *settings])


def _opened(folder: str, n_samples: int, settings: list[str]) -> tuple[Study, list[Example], Path]:
    """The study, the examples and the folder of the model's weights, on two threads."""
    import torch

    torch.set_num_threads(2)
    study = _study(n_samples, settings)
    stored = json.loads((Path(folder) / "examples.json").read_text())
    examples = [Example(tuple(prompt), tuple(completion)) for prompt, completion in stored]
    return study, examples, weights_folder(study.monitor, study.paths.models)


def _train(trainer: Any, examples: list[Example]) -> dict[str, Any]:
    """Train; time, its shares, the process's peak memory and the loss of every step."""
    spent: defaultdict[str, float] = defaultdict(float)

    def watch(owner: Any, method: str, name: str) -> None:
        inner: Callable[..., Any] = getattr(owner, method)

        def watched(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            try:
                return inner(*args, **kwargs)
            finally:
                spent[name] += time.perf_counter() - began

        setattr(owner, method, watched)

    trainer.create_optimizer()
    watch(trainer, "compute_loss", "forward")
    watch(trainer.accelerator, "backward", "backward")
    watch(trainer, "data_collator", "data")
    watch(trainer.optimizer, "step", "optimizer")
    watch(trainer.accelerator, "clip_grad_norm_", "optimizer")
    before_kib = int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0])
    began_cpu = time.process_time()
    seconds, _ = timed(trainer.train)
    tokens = sum(example.n_tokens for example in examples)
    base = sum(p.numel() for n, p in trainer.model.named_parameters() if "proj" in n and "lora" not in n)
    return {
        "seconds": seconds,
        "cpu_seconds": time.process_time() - began_cpu,
        "tokens_per_second": tokens / seconds,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "before_mib": before_kib / 1024,
        "losses": [entry["loss"] for entry in trainer.state.log_history if "loss" in entry],
        **{f"{name}_share": taken / seconds for name, taken in spent.items()},
        # Forward, and the gradients of activations: the base's own weights get none.
        "gflops": 4 * base * tokens / (spent["forward"] + spent["backward"]) / 1e9,
    }
