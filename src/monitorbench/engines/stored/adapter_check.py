"""An adapter is refused before anything is generated where it does not belong on its base.

Only headers are read: which tensors there have to be, and their shapes, is what PEFT makes of the adapter's
settings on a base of the same configuration that holds no memory.
"""

import logging
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.engines.stored.adapter import CONFIG, WEIGHTS, adapter_config, stated_base
from monitorbench.engines.stored.load import foreign_code_refused, load_config
from monitorbench.engines.stored.model_folder import model_weights_sha256

_Shapes = Mapping[str, tuple[int, ...]]
_log = logging.getLogger(__name__)


def refuse_unfit_adapter(adapter: Path, weights: Path) -> None:
    """Raise `UserError` unless the PEFT folder `adapter` is a whole LoRA for the model folder `weights`.

    Every tensor that its settings ask for has to be there in its shape, and none besides; the base that it
    names has to be this one. An adapter that names none is taken, and the log says so.
    """
    config = adapter_config(adapter)
    if config.get("peft_type") != "LORA":
        raise UserError(f"{adapter / CONFIG}: peft_type={config.get('peft_type')!r}; expected a LoRA adapter")
    found = _found(adapter / WEIGHTS)
    _compare(found, _expected(adapter, config, weights), adapter / WEIGHTS, config.get("r"))
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
    """What PEFT saves of an adapter: what has to be there, and what may be there too."""

    needed: _Shapes
    allowed: _Shapes
    """With the embeddings, which it adds where they were trained as well."""


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
            adapted = get_peft_model(model, LoraConfig.from_peft_type(**settings))
            states = [
                get_peft_model_state_dict(adapted, save_embedding_layers=embeddings)
                for embeddings in (False, True)
            ]
        except (ValueError, TypeError, KeyError, AttributeError, NotImplementedError, ImportError) as error:
            reason = " ".join(str(error).split())[:160]
            raise UserError(f"{adapter / CONFIG}: doesn't fit the model in {weights} ({reason})") from error
    needed, allowed = ({name: tuple(tensor.shape) for name, tensor in one.items()} for one in states)
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
