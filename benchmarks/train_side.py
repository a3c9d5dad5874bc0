"""One side of `benchmarks/train.py` in a process of its own: `train_side.py data|ours|stock|matmul FOLDER`.

Both sides get the same token ids in the same order, the same LoRA from the same seed, the same optimizer
and schedule, and eight samples a step. Prints one line of JSON.
"""

import json
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from hydra import compose, initialize_config_dir
from transformers import PrinterCallback
from trl import SFTConfig, SFTTrainer

from monitorbench.config.load import load
from monitorbench.config.study import Study
from monitorbench.engines.stored.load import load_tokenizer
from monitorbench.engines.weights import weights_folder
from monitorbench.prompts.render import Renderer
from monitorbench.records import Category, Construction, Label, LabelSource, Message, Role, Sample, Task
from monitorbench.training.examples import Example, make_examples
from monitorbench.training.model import load_model
from monitorbench.training.plan import make_plan
from monitorbench.training.trainer import TrainingWork, arguments, make_trainer

ROOT = Path(__file__).resolve().parents[1]
MICRO = 4  # samples of ours at once; a step has eight on both sides
WORDS = tuple("the report says our team has moved every box to a new shelf before noon on friday".split())


def main() -> None:
    """Run the side that is named."""
    what, folder, n_samples = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(2)
    sides: dict[str, Callable[[], dict[str, Any]]] = {
        "data": lambda: data(study(n_samples), folder, n_samples),
        "ours": lambda: ours(study(n_samples), folder),
        "stock": lambda: stock(study(n_samples), folder),
        "matmul": matmul,
    }
    print(json.dumps(sides[what]()))


def study(n_samples: int) -> Study:
    """The project's own CPU settings, gone through the samples once."""
    changes = [
        "tracking=none",
        "training.device=cpu",
        "training.dtype=bfloat16",
        "training.batching=packed",
        f"training.micro_batch_size={MICRO}",
        f"training.max_steps={n_samples // 8}",
        "training.validate_every=1",
    ]
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return load(compose("train", changes))


def data(study: Study, folder: Path, n_samples: int) -> dict[str, Any]:
    """Write token ids of samples of about 400 tokens, in the plan's order."""
    draw = torch.Generator().manual_seed(0)
    tokenizer = load_tokenizer(weights_folder(study.monitor, study.paths.models))
    renderer = Renderer(study.prompt, tokenizer)
    samples = []
    for number in range(n_samples):
        n_words = int(torch.randint(150, 350, (1,), generator=draw))
        words = torch.randint(len(WORDS), (n_words,), generator=draw).tolist()
        samples.append(_sample(number, " ".join(WORDS[k] for k in words)))
    samples, examples = make_examples(samples, renderer, study.training.max_tokens)
    plan = make_plan(samples, [e.n_tokens for e in examples], 0, study.training, study.seed)
    ordered = [examples[i] for one in plan for (i,) in one]  # the eight of a step one after another
    (folder / "examples.json").write_text(json.dumps(ordered))
    return {"tokens_per_sample": sum(e.n_tokens for e in ordered) / len(ordered)}


def ours(study: Study, folder: Path) -> dict[str, Any]:
    """`train/sft.py`'s trainer."""
    examples, tokenizer, model = _given(study, folder)
    training = study.training
    micro = training.micro_batch_size
    plan = [tuple((i,) for i in range(k, k + micro)) for k in range(0, len(examples), micro)]
    renderer = Renderer(study.prompt, tokenizer)
    work = TrainingWork(tokenizer, renderer.end_of_turn, examples, plan, added_loss=None)
    args = arguments(training, folder / "checkpoints", study.seed)
    args.save_strategy = "no"
    return _timed(make_trainer(model, training, args, work, []), examples)


def stock(study: Study, folder: Path) -> dict[str, Any]:
    """`trl.SFTTrainer` as it comes: its own loss over all positions, and mixed precision as by default."""
    examples, tokenizer, model = _given(study, folder)
    training = study.training
    rows = [
        {"input_ids": [*e.prompt, *e.completion], "labels": [-100] * len(e.prompt) + list(e.completion)}
        for e in examples
    ]
    args = SFTConfig(
        output_dir=str(folder / "stock"),
        max_steps=training.max_steps,
        per_device_train_batch_size=training.batch_size,
        train_sampling_strategy="sequential",
        learning_rate=training.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=round(training.warmup_share * training.max_steps),
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
    trainer = SFTTrainer(
        model=model, args=args, train_dataset=Dataset.from_list(rows), processing_class=tokenizer
    )
    trainer.remove_callback(PrinterCallback)
    return _timed(trainer, examples)


def matmul() -> dict[str, Any]:
    """The machine's own rate at the model's largest layer, in GFLOP/s, the best of several."""
    rates = {}
    for name in ("bfloat16", "float32"):
        x, w = (torch.randn(shape, dtype=getattr(torch, name)) for shape in ((1600, 576), (576, 1536)))
        best = 0.0
        for _ in range(10):
            began = time.perf_counter()
            for _ in range(20):
                x @ w
            best = max(best, 20 * 2 * 1600 * 576 * 1536 / (time.perf_counter() - began) / 1e9)
        rates[name] = best
    return rates


def _given(study: Study, folder: Path) -> tuple[list[Example], Any, Any]:
    weights = weights_folder(study.monitor, study.paths.models)
    read = json.loads((folder / "examples.json").read_text())
    examples = [Example(tuple(prompt), tuple(completion)) for prompt, completion in read]
    return examples, load_tokenizer(weights), load_model(weights, study.training, study.seed)


def _timed(trainer: Any, examples: list[Example]) -> dict[str, Any]:
    """Train; time, its shares, the process's peak memory and the loss of every step."""
    shares: defaultdict[str, float] = defaultdict(float)

    def watch(owner: Any, method: str, name: str) -> None:
        inner = getattr(owner, method)

        def timed(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            try:
                return inner(*args, **kwargs)
            finally:
                shares[name] += time.perf_counter() - began

        setattr(owner, method, timed)

    watch(trainer, "compute_loss", "forward")
    watch(trainer.accelerator, "backward", "backward")
    watch(trainer, "data_collator", "data")
    trainer.create_optimizer()
    watch(trainer.optimizer, "step", "optimizer")
    watch(trainer.accelerator, "clip_grad_norm_", "optimizer")
    before_mib = _rss_mib()
    began, began_cpu = time.perf_counter(), time.process_time()
    trainer.train()
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - began_cpu
    tokens = sum(example.n_tokens for example in examples)
    base = sum(p.numel() for n, p in trainer.model.named_parameters() if "proj" in n and "lora" not in n)
    busy = shares["forward"] + shares["backward"]
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "tokens_per_second": tokens / seconds,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "before_mib": before_mib,
        "losses": [entry["loss"] for entry in trainer.state.log_history if "loss" in entry],
        "shares": {name: value / seconds for name, value in shares.items()},
        # Forward, and the gradients of activations: the base's own weights get none.
        "gflops": 4 * base * tokens / busy / 1e9,
    }


def _rss_mib() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def _sample(number: int, text: str) -> Sample:
    return Sample(
        pair_id=str(number),
        group_id=str(number),
        category=Category.SAFETY_PERMISSION,
        task=Task.QA,
        subcategory="benchmark",
        request=(Message(role=Role.USER, content="What is new?"),),
        response=(Message(role=Role.ASSISTANT, content=text),),
        label=Label.MISBEHAVIOR if number % 2 else Label.BENIGN,
        label_source=LabelSource.AUTHOR,
        construction=Construction.HANDWRITTEN,
        source="benchmark",
        licence="Apache-2.0",
    )


if __name__ == "__main__":
    main()
