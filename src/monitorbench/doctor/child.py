"""One trial in a process of its own, so that a crash, a hang or a patched library is that trial's alone.

    python -m monitorbench.doctor.child TRIAL STUDY.json FOLDER

`imports` imports what the environment has; `transformers` and `unsloth` train some steps;
`judge-transformers` and `judge-vllm` judge with the adapter that `transformers` left. Each writes
`FOLDER/TRIAL.json`. The model has two layers and a tokenizer made on the spot, so nothing is downloaded and
what fails is the machine's; the label of its samples hangs on one phrase.
"""

import importlib
import json
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

from monitorbench.config.engine import TransformersEngine, VllmEngine
from monitorbench.config.hardware import ResolvedDtype, has_gpu
from monitorbench.config.load import read_frozen
from monitorbench.config.monitor import Monitor, Prompt
from monitorbench.config.study import Study
from monitorbench.config.training import Training
from monitorbench.doctor.system import wanted_modules
from monitorbench.prompts.wording import PromptWording
from monitorbench.records import Category, Construction, Label, LabelSource, Message, Role, Sample, Task

STEPS = 12
_CONTEXT = 1024
_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
_PLANTED = "as the ledger shows"
_TEXT = "the report says that every box was moved to a new shelf before noon on friday".split()


def imports() -> dict[str, Any]:
    """Import every module of the environment; returns their names, and one line for each that failed."""
    failed = {}
    for name in wanted_modules():
        try:
            importlib.import_module(name)
        except Exception as error:  # whatever a library raises is the answer
            failed[name] = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    return {"modules": wanted_modules(), "failed": failed}


def training(study: Study, folder: Path, loader: Literal["transformers", "unsloth"]) -> dict[str, Any]:
    """Train `STEPS` steps on a few samples; returns each step's loss and the adapter's effect."""
    if loader == "unsloth":  # it patches what is imported behind it
        from monitorbench.training.stage import import_unsloth

        import_unsloth()
    from monitorbench.engines.stored.adapter import Base
    from monitorbench.engines.stored.model_folder import load_tokenizer, model_weights_sha256
    from monitorbench.engines.weights import weights_folder, weights_identity
    from monitorbench.prompts.render import Renderer
    from monitorbench.training import processes
    from monitorbench.training.examples import make_examples
    from monitorbench.training.model import load_model, refuse_idle_adapter, save_adapter
    from monitorbench.training.trainer import TrainingWork, arguments, make_plan, make_trainer

    monitor = _monitor(study, folder)
    settings = Training(
        name="doctor",
        batching="padded",
        learning_rate=5e-3 if study.doctor.model == "tiny" else 2e-4,
        lora_rank=8,
        lora_alpha=16,
        max_steps=STEPS,
        batch_size=4,
        micro_batch_size=1,
        max_tokens=_CONTEXT,
        dtype=_dtype(),
        device="cuda" if has_gpu() else "cpu",
        loader=loader,
        validate_every=STEPS,
        checkpoint_every=STEPS,
    )
    weights = weights_folder(monitor, study.paths.models)
    processes.join(settings)
    tokenizer = load_tokenizer(weights)
    renderer = Renderer(study.prompt, tokenizer, monitor.opening, date=monitor.template_date)
    trained, examples = make_examples(samples(4), renderer, settings.max_tokens)
    model = load_model(weights, settings, study.seed)
    plan = make_plan(trained, [example.n_tokens for example in examples], 0, settings, study.seed)
    args = arguments(settings, folder / f"{loader}-checkpoints", study.seed)
    work = TrainingWork(tokenizer, renderer.end_of_turn, examples, plan, None)
    trainer = make_trainer(model, settings, args, work, [])
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    change = refuse_idle_adapter(model, renderer, examples[0])
    base = Base(
        hub_id=monitor.hub_id, weights=weights_identity(monitor), sha256=model_weights_sha256(weights)
    )
    save_adapter(model, folder / f"{loader}-adapter", base)
    return {"losses": losses, "change": change, "dtype": settings.resolved_dtype, "device": str(model.device)}


def judge(study: Study, folder: Path, engine: TransformersEngine | VllmEngine) -> dict[str, Any]:
    """Judge samples with the adapter; returns scores, and how far it moves a log-probability."""
    from monitorbench.judging.identity import judge_spec
    from monitorbench.judging.open import open_judge

    monitor = _monitor(study, folder).model_copy(update={"adapter": folder / "transformers-adapter"})
    judged = samples(4)
    with closing(open_judge(judge_spec(monitor, engine, study.prompt), study.paths.models)) as opened:
        change = opened.prepare(opened.question(judged[0]))
        scores = [verdict.score for verdict in opened.verdicts(judged)]
    return {"scores": scores, "change": change, "dtype": engine.resolved_dtype}


def _monitor(study: Study, folder: Path) -> Monitor:
    """The study's own monitor where `doctor.model` asks for it, else the small model, made if need be."""
    if study.doctor.model == "monitor":
        return study.monitor
    if not (folder / "model" / "config.json").is_file():
        make_model(folder / "model", study.prompt, study.seed)
    return Monitor(
        name="doctor", hub_id="doctor", revision="", path=folder / "model", context_tokens=_CONTEXT
    )


def _dtype() -> ResolvedDtype:
    """Choose float32 on the CPU, where engines agree to the third digit; bfloat16 on a GPU."""
    return "bfloat16" if has_gpu() else "float32"


def make_model(folder: Path, prompt: Prompt, seed: int) -> Path:
    """Write the model (Llama, 2 layers of 256, in float32) and its tokenizer as a model folder."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=768,
        special_tokens=_CONTROL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    words = prompt.label_words
    spelt = f"{words.misbehavior}\n {words.misbehavior}\n{words.benign}\n {words.benign}\n" * 50
    tokenizer.train_from_iterator([spelt, PromptWording(prompt).system, " ".join(_TEXT) * 5], trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", model_max_length=2048
    )
    fast.chat_template = _TEMPLATE
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=768,
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=2,
        pad_token_id=0,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


def samples(n_pairs: int) -> list[Sample]:
    """Make pairs that differ in one phrase, which decides the label."""
    pairs = []
    for number in range(n_pairs):
        words = _TEXT[number % len(_TEXT) :] + _TEXT[: number % len(_TEXT)]
        planted = [*words[:5], _PLANTED, *words[5:]]
        pairs += [
            Sample(
                pair_id=f"doctor-{number}",
                group_id=f"doctor-{number}",
                category=Category.SAFETY_PERMISSION,
                task=Task.QA,
                subcategory="doctor",
                request=(Message(role=Role.USER, content="What is new?"),),
                response=(Message(role=Role.ASSISTANT, content=" ".join(response)),),
                label=label,
                label_source=LabelSource.AUTHOR,
                construction=Construction.HANDWRITTEN,
                source="doctor",
                licence="Apache-2.0",
            )
            for label, response in ((Label.MISBEHAVIOR, planted), (Label.BENIGN, words))
        ]
    return pairs


TRIALS: dict[str, Callable[[Study, Path], dict[str, Any]]] = {
    "imports": lambda study, folder: imports(),
    "transformers": lambda study, folder: training(study, folder, "transformers"),
    "unsloth": lambda study, folder: training(study, folder, "unsloth"),
    "judge-transformers": lambda study, folder: judge(
        study, folder, TransformersEngine(kind="transformers", scores="fast", dtype=_dtype(), batch_size=4)
    ),
    "judge-vllm": lambda study, folder: judge(  # with its defaults, on one GPU at most
        study, folder, VllmEngine(kind="vllm", dtype=_dtype(), tensor_parallel_size=1)
    ),
}

if __name__ == "__main__":
    trial, frozen, where = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    began = time.perf_counter()
    result = TRIALS[trial](read_frozen(frozen), where)
    result["seconds"] = time.perf_counter() - began
    (where / f"{trial}.json").write_text(json.dumps(result))
