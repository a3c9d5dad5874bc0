"""A monitor's own tokenizer, where this machine has it: nothing is downloaded, converted or written."""

import importlib.metadata
from pathlib import Path
from typing import Any

from monitorbench.config.base import UserError
from monitorbench.config.study import Monitor, PackagedModel
from monitorbench.engines.stored.load import load_tokenizer
from monitorbench.engines.weights import split_as_trained


def tokenizer_here(monitor: Monitor, models: Path) -> Any | None:
    """The tokenizer of a folder, an installed package or the hub's cache; None where it is not here."""
    try:
        if monitor.path is not None:
            return load_tokenizer(monitor.path)
        if monitor.package is not None:
            return _packaged(monitor.package, models)
        folder = _cached(monitor.hub_id, monitor.revision)
        return None if folder is None else load_tokenizer(folder)
    except (UserError, OSError, ValueError, KeyError, ImportError):  # whoever runs the model says why
        return None


def _packaged(package: PackagedModel, models: Path) -> Any | None:
    converted = models / f"{package.distribution}-{package.version}"
    if (converted / "tokenizer_config.json").is_file():
        return load_tokenizer(converted)
    try:
        distribution = importlib.metadata.distribution(package.distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
    gguf = Path(str(distribution.locate_file(package.file)))
    if distribution.version != package.version or not gguf.is_file():
        return None
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name, trust_remote_code=False)
    split_as_trained(tokenizer, gguf)
    return tokenizer


def _cached(repo: str, revision: str) -> Path | None:
    """The folder of a hub's model in the client's cache."""
    from huggingface_hub import try_to_load_from_cache

    file = try_to_load_from_cache(repo, "tokenizer_config.json", revision=revision)
    return Path(file).parent if isinstance(file, str) else None
