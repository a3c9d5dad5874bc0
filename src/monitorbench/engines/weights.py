"""The place of a monitor's weights: a local folder, a GGUF file (here, in a package, on the hub), the hub.

A GGUF file is converted once into an ordinary model folder (safetensors), kept with checksums.
"""

from pathlib import Path
from typing import Any

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import Monitor
from monitorbench.engines.stored.gguf import GgufSource, convert_gguf, gguf_source, gguf_tokenizer
from monitorbench.engines.stored.model_folder import (
    hub_commit,
    hub_folder,
    load_causal_lm,
    load_tokenizer,
    model_folder_sha256,
    refuse_unloadable,
)
from monitorbench.runs.directory import checked_file, is_finished, read_manifest
from monitorbench.runs.files import locked

_HUB = "hub:"


def weights_identity(monitor: Monitor) -> str:
    """Name of the weights in a content hash: their content, package version or commit, never a path.

    Raises `UserError` where a folder can't be loaded or the hub's commit is not to be had, `ConfigError` for
    a monitor that has none.
    """
    _refuse_without_weights(monitor)
    if monitor.path is not None:
        return f"sha256:{model_folder_sha256(_folder(monitor.path))}"
    if (source := gguf_source(monitor)) is not None:
        return source.identity
    return f"{_HUB}{monitor.hub_id}@{hub_commit(monitor.hub_id, monitor.revision)}"


def at_identity(monitor: Monitor, identity: str) -> Monitor:
    """The monitor, its hub revision set to the commit that an earlier `weights_identity` of it names."""
    repo, _, commit = identity.removeprefix(_HUB).rpartition("@")
    if not identity.startswith(_HUB) or repo != monitor.hub_id:
        return monitor
    return monitor.model_copy(update={"revision": commit})


def weights_folder(monitor: Monitor, models: Path) -> Path:
    """A folder that `from_pretrained` reads; converts or downloads what is not there yet.

    Raises `UserError` with one line where the weights can't be had, `ConfigError` where there are none.
    """
    _refuse_without_weights(monitor)
    if monitor.path is not None:
        return _folder(monitor.path)
    if (source := gguf_source(monitor)) is not None:
        return _converted(source, models)
    folder = hub_folder(monitor.hub_id, hub_commit(monitor.hub_id, monitor.revision))
    refuse_unloadable(folder, f"monitor.hub_id={monitor.hub_id}")
    return folder


def _refuse_without_weights(monitor: Monitor) -> None:
    if monitor.kind == "bag_of_words":
        raise ConfigError(
            f"monitor={monitor.name}: it has no weights, only eval/pilot.py fits it; expected a model"
        )
    if monitor.kind == "recorded":
        raise ConfigError(f"monitor={monitor.name}: recorded verdicts have no weights; expected a model")


def merge(weights: Path, adapter: Path, target: Path, dtype: str) -> None:
    """Write the base with the adapter added in float32, rounded to `dtype`, as a model folder."""
    import torch
    from peft import PeftModel

    base = load_causal_lm(weights, torch.float32)
    merged: Any = PeftModel.from_pretrained(base, str(adapter), use_safetensors=True).merge_and_unload()
    merged.to(getattr(torch, dtype)).save_pretrained(target)
    load_tokenizer(weights).save_pretrained(target)


def _folder(path: Path) -> Path:
    refuse_unloadable(path, f"monitor.path={path}")
    return path


def _converted(source: GgufSource, models: Path) -> Path:
    """The model folder of a GGUF file, made where it is not there yet, and compared where it is."""
    target = models / source.folder
    if not is_finished(target):
        with locked(models / f".{target.name}.lock", wait=True):
            if not is_finished(target):  # another process may have been first
                convert_gguf(source.file(), target, source.where, source.results)
    for name in read_manifest(target)["files"]:
        checked_file(target, name)
    return target


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
