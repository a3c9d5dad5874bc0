"""The model that is trained: loaded with a fresh adapter, checked afterwards, its adapter written."""

from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from peft import LoraConfig, get_peft_model, set_peft_model_state_dict
from safetensors.torch import load_file
from torch.distributed.tensor import DTensor
from transformers import set_seed

from monitorbench.config.base import UserError
from monitorbench.config.training import Training
from monitorbench.engines import adapter_gate
from monitorbench.engines.stored.adapter import BASE, CONFIG, Base, adapter_config, canonical
from monitorbench.engines.stored.load import foreign_code_refused, load_causal_lm
from monitorbench.prompts.render import Renderer
from monitorbench.runs.files import folder_in_the_making, write_atomically, write_json
from monitorbench.training.disk import writing
from monitorbench.training.examples import Example
from monitorbench.training.layers import BY_SAMPLE, use_fused_layers
from monitorbench.training.processes import on_cpu


def load_model(weights: Path, training: Training, seed: int) -> Any:
    """The frozen base in `training.dtype`, with a fresh LoRA adapter in float32 on every linear layer."""
    set_seed(seed)
    if training.loader == "unsloth":
        return _load_with_unsloth(weights, training, seed)
    base = load_causal_lm(weights, getattr(torch, training.resolved_dtype), BY_SAMPLE)
    base.to("cpu" if on_cpu(training) else "cuda")
    lora = LoraConfig(
        r=training.lora_rank,
        lora_alpha=training.lora_alpha,
        lora_dropout=training.lora_dropout,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    use_fused_layers(lora)
    return get_peft_model(base, lora)


def _load_with_unsloth(weights: Path, training: Training, seed: int) -> Any:
    """The same through Unsloth's kernels. Written against its documentation; not run here, no GPU."""
    try:
        from unsloth import FastLanguageModel
    except (ImportError, NotImplementedError) as error:  # without a GPU it can't be imported at all
        raise UserError(
            f"training.loader=unsloth: {' '.join(str(error).split())[:120]}; set training.loader=transformers"
        ) from error
    with foreign_code_refused(weights):
        model, _ = FastLanguageModel.from_pretrained(
            str(weights),
            max_seq_length=training.max_tokens,
            dtype=getattr(torch, training.resolved_dtype),
            load_in_4bit=False,
            trust_remote_code=False,
            use_safetensors=True,
        )
    return FastLanguageModel.get_peft_model(
        model,
        r=training.lora_rank,
        lora_alpha=training.lora_alpha,
        lora_dropout=training.lora_dropout,
        target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
        use_gradient_checkpointing="unsloth" if training.gradient_checkpointing else False,
        random_state=seed,
    )


def save_adapter(model: Any, folder: Path, base: Base) -> None:
    """Write the adapter as safetensors, with the base that it is for, whole or not at all.

    All processes have to ask for it. Equal adapters are equal files, in whichever order PEFT has the names
    of their layers.
    """
    # Sharded weights are put together by all, and written by one.
    state = {
        name: weight.full_tensor() if isinstance(weight, DTensor) else weight.detach()
        for name, weight in model.named_parameters()
        if weight.requires_grad
    }
    if not PartialState().is_main_process:
        return
    with writing(folder), folder_in_the_making(folder) as part:
        model.save_pretrained(part, state_dict=state, safe_serialization=True)
        (part / "README.md").unlink(missing_ok=True)  # an empty card
        # A path of this machine has no place in an adapter that others load.
        config = {**adapter_config(part), "base_model_name_or_path": base.hub_id}
        write_atomically(part / CONFIG, canonical(config))
        write_json(part / BASE, base.model_dump())


def restore_adapter(model: Any, folder: Path) -> None:
    """Give the model the adapter that `save_adapter` wrote."""
    set_peft_model_state_dict(model, load_file(folder / "adapter_model.safetensors"))


@torch.inference_mode()
def refuse_idle_adapter(model: Any, renderer: Renderer, example: Example) -> float:
    """The largest change of a label's log-probability; `UserError` where the adapter changes none."""
    model.eval()
    ids_BT = torch.tensor([example.prompt], device=model.device)
    label_ids = list(renderer.label_tokens.all)

    def logprobs() -> Any:
        return model(input_ids=ids_BT, logits_to_keep=1).logits[0, -1].float().log_softmax(-1)[label_ids]

    tuned = logprobs().tolist()
    with model.disable_adapter():
        return adapter_gate.refuse_idle_adapter(tuned, logprobs().tolist())
