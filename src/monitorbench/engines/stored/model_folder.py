"""A folder with a model, here or on the hub: its hash, what is refused of it, and how it is loaded.

Nothing else loads models and tokenizers: from safetensors alone, and without code of their own. For the hub
its client's own variables hold: HF_HOME, HF_ENDPOINT, HF_HUB_OFFLINE, HF_TOKEN.
"""

import copy
import functools
import hashlib
import logging
import math
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

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


def n_parameters(folder: Path) -> int | None:
    """The number of parameters in a model folder; None where they are packed as integers, or unreadable."""
    from safetensors import SafetensorError, safe_open

    n = 0
    for file in _weights(folder):
        try:
            with safe_open(file, framework="numpy") as tensors:
                slices = [tensors.get_slice(name) for name in tensors.keys()]  # noqa: SIM118, it is no mapping
                if not all(part.get_dtype().startswith(("F", "BF")) for part in slices):
                    return None
                n += sum(math.prod(part.get_shape()) for part in slices)
        except (OSError, SafetensorError):
            return None
    return n


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


_COMMIT, _SHA256 = re.compile(r"[0-9a-f]{40}"), re.compile(r"[0-9a-f]{64}")
_log = logging.getLogger(__name__)


@functools.cache
def hub_commit(repo: str, revision: str) -> str:
    """The commit of `revision`, 40 hex digits: asked of the hub, or where that can't be reached of its cache.

    Asked once a process, so that all of a run has one answer. A revision that is a commit is not asked for.
    Raises `UserError` where neither knows it.
    """
    if _COMMIT.fullmatch(revision):
        return revision
    # The client keeps a folder for each commit, and notes for later which one a branch or tag was.
    folder = _snapshot(repo, revision, "config.json")
    if not _COMMIT.fullmatch(folder.name):
        raise UserError(f"{repo}@{revision}: the hub names no commit; expected one in monitor.revision")
    _log.info("%s@%s is commit %s", repo, revision, folder.name)
    return folder.name


def hub_folder(repo: str, commit: str) -> Path:
    """The folder of that commit in the hub's cache, downloaded where it is not there, pickles left out.

    Raises `UserError` where it can't be had.
    """
    return _snapshot(repo, commit, None)


def hub_file(repo: str, commit: str, name: str) -> Path:
    """A file of that commit in the hub's cache, downloaded where it is not there.

    Raises `UserError` where it can't be had.
    """
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(repo, name, revision=commit))
    except client_errors() as error:
        raise _not_to_be_had(
            f"{repo}@{commit}/{name}", error, "monitor.gguf to a local copy of it"
        ) from error


def hub_file_sha256(repo: str, commit: str, name: str) -> str:
    """The SHA-256 of a file of that commit: the hub and its cache name large files by it.

    Nothing is downloaded but a file that is small, or that the hub names otherwise. Raises `UserError` where
    neither knows the file.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_url, try_to_load_from_cache

    cached = try_to_load_from_cache(repo, name, revision=commit)
    if not isinstance(cached, str):
        try:
            etag = get_hf_file_metadata(hf_hub_url(repo, name, revision=commit)).etag
        except client_errors() as error:
            raise _not_to_be_had(
                f"{repo}@{commit}/{name}", error, "monitor.gguf to a local copy of it"
            ) from error
        if etag is not None and _SHA256.fullmatch(etag):
            return etag
        cached = str(hub_file(repo, commit, name))
    return blob_sha256(Path(cached)) or file_sha256(Path(cached))


def _snapshot(repo: str, revision: str, pattern: str | None) -> Path:
    from huggingface_hub import snapshot_download

    try:
        folder = snapshot_download(
            repo, revision=revision, allow_patterns=pattern, ignore_patterns=list(PICKLES)
        )
    except client_errors() as error:
        raise _not_to_be_had(f"{repo}@{revision}", error, "monitor.path to a local folder of it") from error
    return Path(folder)


def _not_to_be_had(what: str, error: Exception, instead: str) -> UserError:
    return UserError(
        f"{what}: can't be had from the hub, nor from its cache ({type(error).__name__}: "
        f"{' '.join(str(error).split())[:120]}); set {instead}"
    )


def client_errors() -> tuple[type[Exception], ...]:
    """Errors of the hub's client when it is offline, refused, or given a bad name."""
    from huggingface_hub.errors import HfHubHTTPError

    # Its HTTP library's own errors pass through at some calls; which library that is, changes.
    transport: type[Exception] = HfHubHTTPError.__bases__[0]
    return (transport, OSError, ValueError)


@functools.cache
def _transformers() -> Any:
    """The library, imported without packages that nothing here uses of it and that it takes where it can.

    They are for assisted decoding (scikit-learn), losses of images (scipy), clouds (boto3), and on GPUs alone
    for compiling (triton): 240 MB, and a second.
    """
    import torch

    unused = ("boto3", "scipy", "sklearn", *(() if torch.cuda.is_available() else ("triton",)))
    loaded = {name: sys.modules.get(name) for name in unused}
    sys.modules.update(dict.fromkeys(unused))  # None: as if it were not installed
    try:
        import transformers.generation.utils
    finally:
        for name, module in loaded.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
    return transformers


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer of a model folder; `UserError` for one that needs code of its own.

    Unchanged files are read once a process. Settings, such as the chat template, are the caller's own; the
    vocabulary and its rules are all callers', since nobody adds a token: copying them takes a seventh of a
    second, and no sample is judged in it.
    """
    stats = [(file.name, file.stat()) for file in sorted(folder.glob("*")) if file.suffix != ".safetensors"]
    files = tuple((name, stat.st_ino, stat.st_size, stat.st_mtime_ns) for name, stat in stats)
    tokenizer = _read_tokenizer(folder, files)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    return copy.deepcopy(tokenizer, {id(backend): backend})


@functools.lru_cache(maxsize=4)
def _read_tokenizer(folder: Path, files: tuple[tuple[str, int, int, int], ...]) -> Any:
    with foreign_code_refused(folder):
        return _transformers().AutoTokenizer.from_pretrained(folder, trust_remote_code=False)


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

    with foreign_code_refused(folder), _unmapped(folder, dtype):
        try:
            model, loading_info = _transformers().AutoModelForCausalLM.from_pretrained(
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
def _unmapped(folder: Path, dtype: Any) -> Iterator[None]:
    """Have transformers read weights of another dtype tensor by tensor, where it would map the whole file.

    The pages of a mapped file stay in memory until its last tensor is converted.
    """
    config = json_object(folder / "config.json", "a whole model")
    if config.get("dtype", config.get("torch_dtype")) == str(dtype).removeprefix("torch."):
        yield
        return
    modeling = _transformers().modeling_utils
    mapped = modeling.safe_open
    modeling.safe_open = lambda file, **options: mapped(file, **options | {"backend": "pread"})
    try:
        yield
    finally:
        modeling.safe_open = mapped


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
