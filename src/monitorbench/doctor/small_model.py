"""A model of two layers with a tokenizer of its own, made on the spot, and samples that one phrase decides.

Nothing is downloaded, so what fails is the machine's. Its shapes are such that every kernel takes them.
"""

from pathlib import Path

from monitorbench.config.monitor import Prompt
from monitorbench.prompts.wording import PromptWording
from monitorbench.records import Category, Construction, Label, LabelSource, Message, Role, Sample, Task

_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
_PLANTED = "as the ledger shows"
_TEXT = "the report says that every box was moved to a new shelf before noon on friday".split()


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
    """Pairs that differ in one phrase."""
    made = []
    for number in range(n_pairs):
        words = _TEXT[number % len(_TEXT) :] + _TEXT[: number % len(_TEXT)]
        for label, text in (
            (Label.MISBEHAVIOR, [*words[:5], _PLANTED, *words[5:]]),
            (Label.BENIGN, words),
        ):
            made.append(_sample(f"doctor-{number}", " ".join(text), label))
    return made


def _sample(pair: str, response: str, label: Label) -> Sample:
    return Sample(
        pair_id=pair,
        group_id=pair,
        category=Category.SAFETY_PERMISSION,
        task=Task.QA,
        subcategory="doctor",
        request=(Message(role=Role.USER, content="What is new?"),),
        response=(Message(role=Role.ASSISTANT, content=response),),
        label=label,
        label_source=LabelSource.AUTHOR,
        construction=Construction.HANDWRITTEN,
        source="doctor",
        licence="Apache-2.0",
    )
