"""The one place where models and tokenizers are loaded: from safetensors, and without code of their own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from monitorbench.config.base import UserError


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer of a model folder; `UserError` for one that needs code of its own."""
    from transformers import AutoTokenizer

    with foreign_code_refused(folder):
        return AutoTokenizer.from_pretrained(folder, trust_remote_code=False)


def load_config(folder: Path) -> Any:
    """The configuration of a model folder; `UserError` for one that needs code of its own."""
    from transformers import AutoConfig

    with foreign_code_refused(folder):
        return AutoConfig.from_pretrained(folder, trust_remote_code=False)


def load_causal_lm(folder: Path, dtype: Any, attention: str = "sdpa") -> Any:
    """The model of a folder, in the torch dtype `dtype`; `attention` is transformers' name for it.

    Raises `UserError` for a model that needs code of its own, and for weights that are cut off or not all
    there: transformers would fill the others at random.
    """
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM

    with foreign_code_refused(folder):
        try:
            model, loading_info = AutoModelForCausalLM.from_pretrained(
                folder,
                dtype=dtype,
                attn_implementation=attention,
                use_safetensors=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
        except SafetensorError as error:
            raise UserError(f"{folder}: its weights can't be read ({error}); get the model again") from error
    if missing := sorted(loading_info["missing_keys"]):
        raise UserError(
            f"{folder}: {len(missing)} of the model's tensors are not in its weights, such as {missing[0]}; "
            "get the model again"
        )
    return model


@contextmanager
def foreign_code_refused(folder: Path) -> Iterator[None]:
    """Say in one line that a model or tokenizer would have to run the code that comes with it."""
    try:
        yield
    except ValueError as error:
        if "trust_remote_code" not in str(error):
            raise
        raise UserError(
            f"{folder}: it needs code of its own, and code that comes with a model is never run here; "
            "expected a model that transformers knows"
        ) from error
