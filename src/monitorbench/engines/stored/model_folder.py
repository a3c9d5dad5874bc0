"""A folder with a model: the hash of all that can be loaded from it, and the folders that are refused."""

import hashlib
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from monitorbench.config.base import UserError
from monitorbench.runs.files import file_sha256
from monitorbench.untrusted_rows import json_object

PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
"""Weights that can run code when they are read: never loaded, never downloaded."""

_NOT_LOADED = (
    # Weights of other libraries, or pickled: every model is loaded with `use_safetensors=True`.
    *("pytorch_model*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.h5", "*.msgpack", "*.onnx", "*.onnx_data"),
    *("*.gguf", "*.tflite", "training_args.bin"),
    # Code: nothing is loaded with `trust_remote_code`.
    *("*.py", "*.pyc"),
    # For people, and for Git.
    *("README*", "LICENSE*", "NOTICE*", "*.md", "*.pdf", "*.png", "*.jpg", "*.jpeg", "*.gif", "*.svg"),
    ".*",
)
_INDEX = "model.safetensors.index.json"
_BLOB = re.compile(r"[0-9a-f]{64}")


def model_folder_sha256(folder: Path) -> str:
    """Hash of the names and contents of every file that a model or its tokenizer can be loaded from.

    Of the files at any depth all but those that nothing here loads; it does not depend on the folder's path.
    """
    files = _files(folder)
    digests = ((file.relative_to(folder).as_posix(), file_sha256(file)) for file in files)
    return _of_lines(f"{digest}  {name}" for name, digest in digests)


def model_weights_sha256(folder: Path) -> str:
    """Hash of the names and contents of the safetensors that a model is loaded from, wherever they came from.

    A file in the hub's cache is taken for what the hub named it: the cache names large files by their
    SHA-256.
    """
    files = sorted(_weights(folder))
    return _of_lines(f"{blob_sha256(file) or file_sha256(file)}  {file.name}" for file in files)


def refuse_unloadable(folder: Path, where: str) -> None:
    """Raise `UserError` for a folder that would be loaded from a pickle, from outside, or with an adapter.

    `where` names the folder in the message, as in `monitor.path=DIR`.
    """
    if not (folder / "config.json").is_file():
        raise UserError(f"{where}: no config.json there; expected a folder with a model")
    if (folder / "adapter_config.json").is_file():
        raise UserError(
            f"{where}: an adapter lies in it, which would be added unasked; expected a model's own folder, "
            "and the adapter in monitor.adapter"
        )
    if not list(folder.glob("*.safetensors")):
        pickles = sorted(file.name for pattern in PICKLES for file in folder.glob(pattern))
        problem = f"its weights are a pickle ({pickles[0]}), which can run code" if pickles else "no weights"
        raise UserError(
            f"{where}: {problem}; expected *.safetensors, as AutoModelForCausalLM.from_pretrained(DIR)"
            ".save_pretrained(OTHER) writes them where you trust the file"
        )
    stated = json_object(folder / "config.json", "a whole model").get("transformers_weights")
    shards = (_shards(index) for index in folder.glob("*.safetensors.index.json"))
    for name in {str(stated) if stated else "model.safetensors"}.union(*shards):
        if "/" in name or not name.endswith((".safetensors", ".safetensors.index.json")):
            raise UserError(f"{where}: {name!r} is to be its weights; expected *.safetensors in the folder")
    missing = [name for name in _shards(folder / _INDEX) if not (folder / name).is_file()]
    if missing:
        raise UserError(f"{where}: {min(missing)} is not there; expected every file that {_INDEX} names")


def _files(folder: Path) -> list[Path]:
    """The files that can be loaded, in the order of their names."""
    files = [
        file
        for file in {*folder.rglob("*"), *folder.glob("*/*")}  # the first passes by folders that are links
        if file.is_file()
        and not any(segment.startswith(".") for segment in file.relative_to(folder).parts)
        and not any(fnmatchcase(file.name, pattern) for pattern in _NOT_LOADED)
    ]
    return sorted(files, key=lambda file: file.relative_to(folder).as_posix())


def _weights(folder: Path) -> Iterable[Path]:
    """One file, else the shards of the index, as transformers looks for them; else all that there are.

    A repository may hold the same weights a second time, for another library.
    """
    if (folder / "model.safetensors").is_file():
        return [folder / "model.safetensors"]
    shards = _shards(folder / _INDEX)
    return [folder / name for name in shards] or folder.glob("*.safetensors")


def _shards(index: Path) -> set[str]:
    """The files that an index names; none where there is no index."""
    weight_map = json_object(index, "a whole model").get("weight_map") if index.is_file() else None
    return {str(name) for name in weight_map.values()} if isinstance(weight_map, dict) else set()


def _of_lines(lines: Iterable[str]) -> str:
    text = "".join(f"{line}\n" for line in lines)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def blob_sha256(file: Path) -> str | None:
    """The SHA-256 that the hub's cache names a file by, where it does."""
    blob = file.resolve()
    return blob.name if blob.parent.name == "blobs" and _BLOB.fullmatch(blob.name) else None
