"""The stage `train`, before anything heavy is imported: what no training takes, which a plan asks as well.

Unsloth comes before what it replaces: parts of transformers, TRL and PEFT, as it is imported. It compiles
kernels into a folder below the working directory, and asks the hub for a file that counts its users. Read in
its pinned version's source; a small model was trained with it on an H100, with the losses of Transformers.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import Monitor, Prompt, PromptKind, Study
from monitorbench.config.training import Training
from monitorbench.engines.weights import refuse_without_weights
from monitorbench.records import Split


def train(study: Study) -> Path:
    """See `training.sft.train`."""
    if study.training.loader == "unsloth":
        import_unsloth()
    from monitorbench.training import sft

    return sft.train(study)


def refuse_untrainable(prompt: Prompt, monitor: Monitor) -> None:
    """Refuse a prompt or a monitor that no training takes.

    Raises `ConfigError` for a few-shot prompt, and for a monitor that has no weights, has an adapter or a
    head, or reasons first; `UserError` for a prompt that is not direct, and a local model that isn't there.
    """
    if prompt.kind is not PromptKind.DIRECT:
        raise UserError(
            f"prompt={prompt.name}: training supervises the label alone; expected a direct prompt"
        )
    if prompt.shots:
        raise ConfigError(f"prompt={prompt.name}: training uses zero-shot prompts; expected one")
    if monitor.adapter:
        raise ConfigError(
            f"monitor.adapter={monitor.adapter}: training starts from the base; expected null (to go on from "
            "an adapter: `monitorbench merge`, then monitor.path)"
        )
    if monitor.head:
        raise ConfigError(f"monitor.head={monitor.head}: `monitorbench fit` fits a probe; expected null")
    if monitor.reasoning:
        raise ConfigError(
            f"monitor={monitor.name}: training supervises the label alone, not reasoning; expected "
            "monitor.reasoning=null, and in monitor.opening what makes it answer at once"
        )
    refuse_without_weights(monitor)


def refuse_none_fits(n_fitting: int, n_samples: int, split: Split, max_tokens: int) -> None:
    """Raise `UserError` where no sample of a split fits into `training.max_tokens`."""
    if not n_fitting:
        raise UserError(f"training.max_tokens={max_tokens}: none of {n_samples:,} {split} samples fits")


_ENVIRONMENT = "UNSLOTH_COMPILE_LOCATION", "UNSLOTH_DISABLE_STATISTICS"


def import_unsloth() -> Any:
    """Unsloth's module; to be called before anything imports transformers.

    What it compiles goes into a folder of this process alone, unless the environment names one: two runs, or
    two processes of a run, that compile into one folder read each other's half-written files. `UserError`
    where it can't be imported; without a GPU it never can.
    """
    compiled, statistics = _ENVIRONMENT
    os.environ[statistics] = "1"
    if compiled not in os.environ:
        os.environ[compiled] = tempfile.mkdtemp(prefix="unsloth-")
        atexit.register(shutil.rmtree, os.environ[compiled], ignore_errors=True)
    try:
        import unsloth
    except (ImportError, NotImplementedError) as error:
        raise UserError(
            f"training.loader=unsloth: {' '.join(str(error).split())[:120]}; set training.loader=transformers"
        ) from error
    return unsloth


def load_with_unsloth(weights: Path, training: Training, seed: int) -> Any:
    """The frozen base in `training.dtype`, and a fresh LoRA adapter on the layers that its kernels know.

    Raises `UserError` where Unsloth can't be imported, or the model needs code of its own.
    """
    fast = import_unsloth().FastLanguageModel
    import torch

    from monitorbench.engines.stored.model_folder import foreign_code_refused

    with foreign_code_refused(weights):
        model, _ = fast.from_pretrained(
            str(weights),
            max_seq_length=training.max_tokens,
            dtype=getattr(torch, training.resolved_dtype),
            load_in_4bit=False,
            trust_remote_code=False,
            use_safetensors=True,
        )
    return fast.get_peft_model(
        model,
        r=training.lora_rank,
        lora_alpha=training.lora_alpha,
        lora_dropout=training.lora_dropout,
        target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
        use_gradient_checkpointing="unsloth" if training.gradient_checkpointing else False,
        random_state=seed,
    )
