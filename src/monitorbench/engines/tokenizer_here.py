"""A monitor's own tokenizer, where this machine has it: nothing is downloaded, converted or written."""

from pathlib import Path
from typing import Any

from monitorbench.config.base import UserError
from monitorbench.config.study import Monitor
from monitorbench.engines.stored.gguf_model import gguf_tokenizer
from monitorbench.engines.stored.gguf_source import GgufSource, gguf_source
from monitorbench.engines.stored.load import load_tokenizer


def tokenizer_here(monitor: Monitor, models: Path) -> Any | None:
    """The tokenizer of a folder, a GGUF file or the hub's cache; None where it is not here."""
    try:
        if monitor.path is not None:
            return load_tokenizer(monitor.path)
        if (source := gguf_source(monitor)) is not None:
            return _of_gguf(source, models, is_here=monitor.gguf_file is None)
        folder = _cached(monitor.hub_id, monitor.revision)
        return None if folder is None else load_tokenizer(folder)
    except (UserError, OSError, ValueError, KeyError, ImportError):  # whoever runs the model says why
        return None


def _of_gguf(source: GgufSource, models: Path, *, is_here: bool) -> Any | None:
    """The converted one, else the file's own where that is here."""
    converted = models / source.folder
    if (converted / "tokenizer_config.json").is_file():
        return load_tokenizer(converted)
    return gguf_tokenizer(source.file(), source.where) if is_here else None


def _cached(repo: str, revision: str) -> Path | None:
    """The folder of a hub's model in the client's cache."""
    from huggingface_hub import try_to_load_from_cache

    file = try_to_load_from_cache(repo, "tokenizer_config.json", revision=revision)
    return Path(file).parent if isinstance(file, str) else None
