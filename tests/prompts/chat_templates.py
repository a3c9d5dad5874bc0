"""Chat templates in the format families of the benchmark's monitors, on a small byte-level tokenizer.

Written for the tests after the families' published formats; no model's own file is copied.
"""

from typing import Any, NamedTuple

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

_GENERATION = "{% if add_generation_prompt %}"
_NO_SYSTEM = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"


class Family(NamedTuple):
    """A template and its control tokens: the first begins a text, the second ends it, the third a turn."""

    template: str
    tokens: tuple[str, ...]
    has_system: bool = True
    eager: bool = False
    """Tokens that swallow white space beside them, as Phi's do."""


def _each(body: str, generation: str, first: str = "") -> str:
    return f"{first}{{% for m in messages %}}{body}{{% endfor %}}{_GENERATION}{generation}{{% endif %}}"


FAMILIES = {
    "chatml": Family(
        _each(
            "<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n",
            "<|im_start|>assistant\n",
        ),
        ("<|endoftext|>", "<|endoftext|>", "<|im_end|>", "<|im_start|>", "<tool_call>", "</tool_call>"),
    ),
    "chatml_thinking": Family(
        _each(
            "<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n",
            "<|im_start|>assistant\n<think>\n",
        ),
        ("<|endoftext|>", "<|endoftext|>", "<|im_end|>", "<|im_start|>", "<think>", "</think>"),
    ),
    "llama3": Family(
        _each(
            "<|start_header_id|>{{ m['role'] }}<|end_header_id|>\n\n{{ m['content'] | trim }}<|eot_id|>",
            "<|start_header_id|>assistant<|end_header_id|>\n\n",
            "{{ bos_token }}",
        ),
        (
            "<|begin_of_text|>",
            "<|end_of_text|>",
            "<|eot_id|>",
            "<|start_header_id|>",
            "<|end_header_id|>",
            "<|python_tag|>",
        ),
    ),
    "gemma": Family(
        _NO_SYSTEM
        + _each(
            "<start_of_turn>{{ 'model' if m['role'] == 'assistant' else m['role'] }}\n"
            "{{ m['content'] | trim }}<end_of_turn>\n",
            "<start_of_turn>model\n",
            "{{ bos_token }}",
        ),
        ("<bos>", "<eos>", "<end_of_turn>", "<start_of_turn>"),
        has_system=False,
    ),
    "mistral_plain": Family(  # the first generation's: [INST] is text, no token
        _NO_SYSTEM + "{{ bos_token }}{% for m in messages %}"
        "{% if m['role'] == 'user' %}[INST] {{ m['content'] }} [/INST]"
        "{% else %}{{ m['content'] }}{{ eos_token }}{% endif %}{% endfor %}",
        ("<s>", "</s>", "</s>"),
        has_system=False,
    ),
    "mistral": Family(
        "{{ bos_token }}{% for m in messages %}"
        "{% if m['role'] == 'system' %}[SYSTEM_PROMPT]{{ m['content'] }}[/SYSTEM_PROMPT]"
        "{% elif m['role'] == 'user' %}[INST]{{ m['content'] }}[/INST]"
        "{% else %}{{ m['content'] }}{{ eos_token }}{% endif %}{% endfor %}",
        ("<s>", "</s>", "</s>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CALLS]"),
    ),
    "deepseek": Family(
        "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'system' %}{{ m['content'] }}"
        "{% elif m['role'] == 'user' %}<｜User｜>{{ m['content'] }}"
        "{% else %}<｜Assistant｜>{{ m['content'] }}{{ eos_token }}{% endif %}{% endfor %}"
        + _GENERATION
        + "<｜Assistant｜></think>{% endif %}",
        (
            "<｜begin▁of▁sentence｜>",
            "<｜end▁of▁sentence｜>",
            "<｜end▁of▁sentence｜>",
            "<｜User｜>",
            "<｜Assistant｜>",
            "<think>",
            "</think>",
        ),
    ),
    "harmony": Family(
        _each(
            "<|start|>{{ 'developer' if m['role'] == 'system' else m['role'] }}"
            "{% if m['role'] == 'assistant' %}<|channel|>final{% endif %}"
            "<|message|>{{ m['content'] }}<|end|>",
            "<|start|>assistant<|channel|>final<|message|>",
            "<|start|>system<|message|>Answer in the final channel.<|end|>",
        ),
        ("<|startoftext|>", "<|return|>", "<|end|>", "<|start|>", "<|message|>", "<|channel|>", "<|call|>"),
    ),
    "phi3": Family(
        _each("<|{{ m['role'] }}|>\n{{ m['content'] }}<|end|>\n", "<|assistant|>\n"),
        ("<s>", "<|endoftext|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"),
        eager=True,
    ),
    "phi4": Family(
        _each(
            "<|im_start|>{{ m['role'] }}<|im_sep|>{{ m['content'] }}<|im_end|>",
            "<|im_start|>assistant<|im_sep|>",
        ),
        ("<|endoftext|>", "<|endoftext|>", "<|im_end|>", "<|im_start|>", "<|im_sep|>"),
    ),
    "glm": Family(
        _each("<|{{ m['role'] }}|>\n{{ m['content'] }}", "<|assistant|>\n", "[gMASK]<sop>"),
        ("[gMASK]", "<|endoftext|>", "<|endoftext|>", "<sop>", "<|system|>", "<|user|>", "<|assistant|>"),
    ),
}
"""Qwen3, Llama 3, Gemma, Mixtral and later Mistral, DeepSeek, gpt-oss, Phi 3 and 4, GLM 4."""


def tokenizer(family: Family) -> Any:
    """A byte-level tokenizer with the family's control tokens and template; `yes` and `no` are tokens."""
    from transformers import PreTrainedTokenizerFast

    words = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("y", "e"), ("ye", "s"), ("n", "o"), ("Ġ", "yes"), ("Ġ", "no"), ("<", "|"), ("|", ">")]
    vocabulary = {word: i for i, word in enumerate([*words, *("".join(merge) for merge in merges)])}
    core = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    added = [AddedToken(t, special=True, normalized=False, rstrip=family.eager) for t in family.tokens]
    core.add_special_tokens(added)
    made = PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token=added[0],
        eos_token=added[1],
        clean_up_tokenization_spaces=False,
    )
    made.chat_template = family.template
    return made
