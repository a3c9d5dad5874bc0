"""A GGUF file of a tiny Qwen2 in float32, written with llama.cpp's own package, or with faults."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from tokenizers.pre_tokenizers import ByteLevel
from transformers import Qwen2Config, Qwen2ForCausalLM

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
WORDS = (("y", "e"), ("ye", "s"), ("n", "o"), ("Ġ", "yes"), ("Ġ", "no"), ("Y", "es"), ("N", "o"), ("e", "s"))
VOCABULARY = (*sorted(ByteLevel.alphabet()), *("".join(pair) for pair in WORDS), *CONTROL)


def tiny_qwen2(*, tied: bool = False, seed: int = 0) -> Qwen2ForCausalLM:
    """The model itself, randomly initialised; its own numbers are what a conversion has to give."""
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=len(VOCABULARY),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
        tie_word_embeddings=tied,
    )
    return Qwen2ForCausalLM(config).eval()


def write_gguf(
    file: Path,
    model: Qwen2ForCausalLM,
    *,
    architecture: str = "qwen2",
    split: str | None = "qwen2",
    template: str | None = CHATML,
    without: str = "",
    more: Mapping[str, Any] | None = None,
    scaling: str = "",
) -> Path:
    """Write the model as a GGUF file; what is not the default is a fault.

    Args:
        file: where to.
        model: what is written.
        architecture: what the file says it is.
        split: how text is split in front of the merges.
        template: the chat template.
        without: the name of a tensor that is left out.
        more: tensors that are added.
        scaling: how the context is stretched.

    """
    config, writer = model.config, gguf.GGUFWriter(file, architecture)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    if scaling:
        writer.add_rope_scaling_type(gguf.RopeScalingType(scaling))
    writer.add_tokenizer_model("gpt2")
    if split is not None:
        writer.add_tokenizer_pre(split)
    writer.add_token_list(list(VOCABULARY))
    writer.add_token_types([3 if token in CONTROL else 1 for token in VOCABULARY])
    writer.add_token_merges([" ".join(pair) for pair in WORDS])
    writer.add_eos_token_id(VOCABULARY.index("<|im_end|>"))
    writer.add_pad_token_id(VOCABULARY.index("<|endoftext|>"))
    if template is not None:
        writer.add_chat_template(template)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2, config.num_hidden_layers)
    tied = config.tie_word_embeddings
    for name, tensor in model.state_dict().items():
        called = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if name != without and not (tied and name == "lm_head.weight"):
            writer.add_tensor(called, tensor.numpy().astype(np.float32))
    for called, tensor in (more or {}).items():
        writer.add_tensor(called, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file
