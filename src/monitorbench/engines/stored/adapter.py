"""A LoRA adapter on disk: where it is, what names it, which base it was trained on, and whether it fits that.

PEFT writes sets of module names in an order that changes with every process. Here such lists are sorted, on
writing and in the hash, so that equal adapters are equal. An adapter is refused before anything is generated
where it does not belong on its base: only headers are read, since which tensors there have to be, and their
shapes, is what PEFT makes of the adapter's settings on a base of the same configuration that holds no memory.
"""

import hashlib
import json
import logging
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from monitorbench.config.base import Config, UserError
from monitorbench.engines.stored.model_folder import foreign_code_refused, load_config, model_weights_sha256
from monitorbench.runs.files import file_sha256, refuse_changed
from monitorbench.untrusted import document, interrupted
from monitorbench.untrusted_rows import json_object

CONFIG, WEIGHTS, BASE = "adapter_config.json", "adapter_model.safetensors", "base.json"
"""The files of an adapter; the last one only where training here wrote it."""
_SETS = ("target_modules", "exclude_modules", "modules_to_save")
"""Lists of module names whose order means nothing."""


class Base(Config):
    """The model that an adapter was trained on, as `base.json` beside the adapter says it."""

    hub_id: str
    weights: str
    """`engines.weights.weights_identity` of it: with the commit, where it came from the hub."""
    sha256: str
    """`model_weights_sha256` of its folder."""


def adapter_folder(adapter: Path | None) -> Path | None:
    """The PEFT folder of `monitor.adapter`: the path itself, or `adapter/` in a training run.

    Raises `UserError` where there is none, only a pickle, one of a training that did not finish, or one that
    is not as the training wrote it.
    """
    if adapter is None:
        return None
    for folder in (adapter / "adapter", adapter):
        if (folder / CONFIG).is_file() and (folder / WEIGHTS).is_file():
            _check_run(folder)
            return folder
    for folder in (adapter / "adapter", adapter):
        if (folder / "adapter_model.bin").is_file():
            raise UserError(
                f"monitor.adapter={adapter}: its weights are a pickle (adapter_model.bin), which can run "
                f"code; expected {WEIGHTS}, as PEFT's save_pretrained writes it where you trust the file"
            )
    _check_run(adapter / "adapter")
    raise UserError(f"monitor.adapter={adapter}: no {WEIGHTS} there; expected a run of `monitorbench train`")


def adapter_sha256(folder: Path) -> str:
    """Hash of an adapter's weights and settings; the order of module names does not matter.

    Raises `UserError` for settings that are no JSON object.
    """
    settings = canonical(adapter_config(folder)).encode("utf-8", "surrogatepass")
    parts = hashlib.sha256(settings).digest() + bytes.fromhex(file_sha256(folder / WEIGHTS))
    return hashlib.sha256(parts).hexdigest()


def adapter_config(folder: Path) -> dict[str, Any]:
    """The settings of an adapter, as PEFT wrote them; `UserError` where they are no JSON object."""
    return json_object(folder / CONFIG, "an adapter as PEFT writes it")


def canonical(config: Mapping[str, Any]) -> str:
    """An adapter's settings as a file that equal settings share: keys and sets of module names sorted."""
    settings = {name: _ordered(value) if name in _SETS else value for name, value in config.items()}
    return json.dumps(settings, indent=2, sort_keys=True) + "\n"


def stated_base(folder: Path) -> Base | None:
    """The base that training here wrote beside the adapter; None for an adapter from elsewhere.

    Raises `UserError` for a file that says something else.
    """
    file = folder / BASE
    if not file.is_file():
        return None
    try:
        return Base.model_validate_json(document(file))
    except ValidationError as error:
        raise UserError(f"{file}: not what `monitorbench train` writes; get the adapter again") from error


def _ordered(value: Any) -> Any:
    """A list of texts in their order; anything else, such as a pattern, as it is."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return sorted(value)
    return value


def _check_run(folder: Path) -> None:
    """Raise `UserError` for a PEFT folder of a training run that did not finish, or that changed since.

    Looks where a training has its manifest: beside `adapter/`, `best/` and `checkpoints/`.
    """
    folder = folder.resolve()
    run = folder.parent.parent if folder.parent.name == "checkpoints" else folder.parent
    file = run / "manifest.json"
    if not file.is_file():
        return
    manifest = json_object(file, "the manifest that `monitorbench train` wrote")
    if manifest.get("status", "done") != "done":
        raise UserError(
            f"monitor.adapter={folder}: that training did not finish; run its command again, it resumes there"
        )
    files = manifest.get("files")
    for name in (CONFIG, WEIGHTS, BASE):
        recorded = files.get(f"{folder.name}/{name}") if isinstance(files, dict) else None
        if recorded is not None:
            refuse_changed(folder / name, recorded, "get the run again, or train again")


_Shapes = Mapping[str, tuple[int, ...]]
_SECONDS = 60.0
"""Longest time in which an adapter's settings, patterns among them, are laid on a model's layers."""
_UNFIT = (ValueError, TypeError, KeyError, AttributeError, RuntimeError, OverflowError, ImportError, re.error)
"""Errors of PEFT where settings don't fit a model, or are none."""
_log = logging.getLogger(__name__)


def refuse_unfit_adapter(adapter: Path, weights: Path) -> None:
    """Raise `UserError` unless the PEFT folder `adapter` is a whole LoRA for the model folder `weights`.

    Every tensor that its settings ask for has to be there in its shape, and none besides; the base that it
    names has to be this one. An adapter that names none is taken, and the log says so.
    """
    config = adapter_config(adapter)
    if config.get("peft_type") != "LORA":
        raise UserError(f"{adapter / CONFIG}: peft_type={config.get('peft_type')!r}; expected a LoRA adapter")
    shapes = _found(adapter / WEIGHTS)
    _compare(shapes, _expected(adapter, config, weights), adapter / WEIGHTS, config.get("r"))
    base = stated_base(adapter)
    if base is None:
        _log.warning(
            "%s: doesn't say which weights it was trained on; taken as one for %s (its own hint: %s)",
            adapter,
            weights,
            config.get("base_model_name_or_path"),
        )
    elif base.sha256 != model_weights_sha256(weights):
        raise UserError(
            f"{adapter}: it was trained on other weights ({base.hub_id}, {base.weights}) than those in "
            f"{weights}; expected its own base"
        )


def _found(file: Path) -> _Shapes:
    """The shapes of the tensors in a file, from its header; `UserError` where that or the file is cut off."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="numpy") as tensors:
            return {name: tuple(tensors.get_slice(name).get_shape()) for name in tensors.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise UserError(f"{file}: can't be read ({error}); get the adapter again") from error


class _Saved(NamedTuple):
    """Tensors that PEFT saves of an adapter: those that have to be there, and those that may."""

    needed: _Shapes
    allowed: _Shapes
    """All of `needed` and the embeddings, which it adds where they were trained as well."""


def _expected(adapter: Path, config: Mapping[str, Any], weights: Path) -> _Saved:
    """The shapes of the tensors of an adapter with these settings on the model in `weights`."""
    import torch
    from peft import LoraConfig, get_peft_model, get_peft_model_state_dict
    from transformers import AutoModelForCausalLM

    base_config = load_config(weights)
    # How the tensors were begun with may need the base's weights, and has no part in their shapes.
    settings = {**config, "init_lora_weights": False, "base_model_name_or_path": None}
    settings.pop("runtime_config", None)  # PEFT leaves it out as well
    with foreign_code_refused(weights), torch.device("meta"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PEFT says them again when the adapter is loaded
        model = AutoModelForCausalLM.from_config(base_config, trust_remote_code=False)
        try:
            with interrupted(adapter / CONFIG, _SECONDS):
                adapted = get_peft_model(model, LoraConfig.from_peft_type(**settings))
                states = [
                    get_peft_model_state_dict(adapted, save_embedding_layers=embeddings)
                    for embeddings in (False, True)
                ]
        except _UNFIT as error:
            reason = " ".join(str(error).split())[:160]
            raise UserError(f"{adapter / CONFIG}: doesn't fit the model in {weights} ({reason})") from error
    needed, allowed = ({name: tuple(tensor.shape) for name, tensor in state.items()} for state in states)
    return _Saved(needed, allowed)


def _compare(found: _Shapes, expected: _Saved, file: Path, rank: Any) -> None:
    if missing := expected.needed.keys() - found.keys():
        raise UserError(
            f"{file}: {len(missing)} of {len(expected.needed)} tensors are missing, such as {min(missing)}; "
            "expected a whole adapter for this model"
        )
    if extra := found.keys() - expected.allowed.keys():
        raise UserError(
            f"{file}: {len(extra)} tensors have no place in this model, such as {min(extra)}; expected the "
            "adapter's own base"
        )
    for name in sorted(found):
        if found[name] != expected.allowed[name]:
            raise UserError(
                f"{file}: {name} is {_shape(found[name])}, on this model and with r={rank} it would be "
                f"{_shape(expected.allowed[name])}; expected the adapter's own base and settings"
            )


def _shape(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "a single number"
