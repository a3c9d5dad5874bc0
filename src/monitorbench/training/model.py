"""The model that is trained: loaded with a fresh adapter, checked afterwards, its adapter and checkpoints.

A training may be killed while it writes a checkpoint, and libraries raise whatever they like for a disk that
is full or broken: a checkpoint is sealed when whole, else not used; a full disk is reported in one line.
"""

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from peft import LoraConfig, get_peft_model, set_peft_model_state_dict
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch.distributed.tensor import DTensor
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments, set_seed
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from monitorbench.config.base import UserError
from monitorbench.config.training import Training
from monitorbench.engines import open
from monitorbench.engines.stored.adapter import BASE, CONFIG, WEIGHTS, Base, adapter_config, canonical
from monitorbench.engines.stored.model_folder import load_causal_lm
from monitorbench.prompts.render import Renderer
from monitorbench.runs.directory import checked_file, read_finished, write_manifest
from monitorbench.runs.files import file_sha256, folder_in_the_making, write_atomically, write_json
from monitorbench.training.examples import Example
from monitorbench.training.layers import BY_SAMPLE, use_fused_layers

_OF_TORCH = ("inline_container", "PytorchStreamWriter")
"""Words in the message of the `RuntimeError` that `torch.save` raises where a write fails."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Run a body that writes below `path`; raises `UserError` where a write fails."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise _unwritable(path, error) from error
    except RuntimeError as error:
        if not any(word in str(error) for word in _OF_TORCH):
            raise
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: Exception) -> UserError:
    reason = " ".join(str(error).split())[:120]
    return UserError(
        f"{path}: can't be written ({reason}); make room or allow writing, then run the same command again"
    )


_log = logging.getLogger(__name__)


class SealCheckpoints(TrainerCallback):
    """Writes a manifest with checksums on one process, once all have written their part of a checkpoint."""

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Write the manifest after the last file of a checkpoint."""
        PartialState().wait_for_everyone()
        if state.is_world_process_zero:
            folder = Path(str(args.output_dir)) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"
            files = {
                path.relative_to(folder).as_posix(): file_sha256(path)
                for path in sorted(folder.rglob("*"))
                if path.is_file()
            }
            write_manifest(folder, {"status": "done", "results": {"step": state.global_step}, "files": files})


def last_whole_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint that is as it was written; those that are not are removed, which the log says."""
    checkpoints = sorted(folder.glob(f"{PREFIX_CHECKPOINT_DIR}-*"), key=step_of)
    intact = [path for path in checkpoints if _is_whole(path)]
    for path in set(checkpoints) - set(intact):
        shutil.rmtree(path, ignore_errors=True)
    return intact[-1] if intact else None


def step_of(checkpoint: Path) -> int:
    """The optimizer step after which a checkpoint was written."""
    return int(checkpoint.name.rpartition("-")[2])


def _is_whole(checkpoint: Path) -> bool:
    try:
        for name in read_finished(checkpoint)["files"]:
            checked_file(checkpoint, name)
    except UserError as error:
        _log.warning("train: a checkpoint is not used: %s", error)
        return False
    return True


_WRAPPED = "_checkpoint_wrapped_module."
"""Infix of names of layers whose activations FSDP recomputes; no loader of an adapter knows such names."""


def load_model(weights: Path, training: Training, seed: int) -> Any:
    """The frozen base in `training.dtype`, with a fresh LoRA adapter in float32 on every linear layer.

    It stays in main memory: the trainer puts it on its device, whole or a shard of it. cuDNN's attention is
    switched off: of masked rows of some lengths its gradients are not finite on Hopper GPUs, from torch 2.11
    on (github.com/pytorch/pytorch/issues/196678), and padded batches are masked.
    """
    set_seed(seed)
    torch.backends.cuda.enable_cudnn_sdp(False)
    if training.loader == "unsloth":
        from monitorbench.training.stage import load_with_unsloth

        return load_with_unsloth(weights, training, seed)
    base = load_causal_lm(weights, getattr(torch, training.resolved_dtype), BY_SAMPLE)
    lora = LoraConfig(
        r=training.lora_rank,
        lora_alpha=training.lora_alpha,
        lora_dropout=training.lora_dropout,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    use_fused_layers(lora)
    return get_peft_model(base, lora)


def save_adapter(model: Any, folder: Path, base: Base) -> None:
    """Write the adapter as safetensors, with the base that it is for, whole or not at all.

    All processes have to ask for it. Equal adapters are equal files, in whichever order PEFT has the names
    of their layers, and whatever wrapped the layers while they were trained.
    """
    # Sharded weights are put together by all, and written by one.
    state = {
        name: weight.full_tensor() if isinstance(weight, DTensor) else weight.detach()
        for name, weight in model.named_parameters()
        if weight.requires_grad
    }
    if not PartialState().is_main_process:
        return
    with writing(folder), folder_in_the_making(folder) as temporary:
        model.save_pretrained(temporary, state_dict=state, safe_serialization=True)
        _unwrap_names(temporary / WEIGHTS, len(state))
        (temporary / "README.md").unlink(missing_ok=True)  # an empty card
        # A path of this machine has no place in an adapter that others load.
        config = {**adapter_config(temporary), "base_model_name_or_path": base.hub_id}
        write_atomically(temporary / CONFIG, canonical(config))
        write_json(temporary / BASE, base.model_dump())


def _unwrap_names(file: Path, n: int) -> None:
    """Give the n tensors of an adapter the names of layers that nothing wraps."""
    tensors = load_file(file)
    if len(tensors) != n:
        raise ValueError(f"{file}: {len(tensors)} of the adapter's {n} tensors were written")
    if any(_WRAPPED in name for name in tensors):
        unwrapped = {name.replace(_WRAPPED, ""): tensor for name, tensor in tensors.items()}
        save_file(unwrapped, file, metadata={"format": "pt"})


def restore_adapter(model: Any, folder: Path) -> None:
    """Give the model the adapter that `save_adapter` wrote."""
    set_peft_model_state_dict(model, load_file(folder / WEIGHTS))


@torch.no_grad()  # sharded weights can't be put together in inference mode
def refuse_idle_adapter(model: Any, renderer: Renderer, example: Example) -> float:
    """The largest change of a label's log-probability; `UserError` where the adapter changes none."""
    model.eval()
    ids_BT = torch.tensor([example.prompt], device=model.device)
    label_ids = list(renderer.label_tokens.all)

    def logprobs() -> Any:
        return model(input_ids=ids_BT, logits_to_keep=1).logits[0, -1].float().log_softmax(-1)[label_ids]

    tuned = logprobs().tolist()
    with model.disable_adapter():
        return open.refuse_idle_adapter(tuned, logprobs().tolist())
