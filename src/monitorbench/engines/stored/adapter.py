"""A LoRA adapter on disk: where it is, what names it, and which base it says it was trained on.

PEFT writes sets of module names in an order that changes with every process. Here such lists are sorted, on
writing and in the hash, so that equal adapters are equal.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from monitorbench.config.base import Config, UserError
from monitorbench.runs.files import file_sha256, refuse_changed

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
    raise UserError(f"monitor.adapter={adapter}: no {WEIGHTS} there; expected a run of train/sft.py")


def adapter_sha256(folder: Path) -> str:
    """Hash of an adapter's weights and settings; the order of module names does not matter.

    Raises `UserError` for settings that are no JSON object.
    """
    settings = canonical(adapter_config(folder)).encode("utf-8", "surrogatepass")
    parts = hashlib.sha256(settings).digest() + bytes.fromhex(file_sha256(folder / WEIGHTS))
    return hashlib.sha256(parts).hexdigest()


def adapter_config(folder: Path) -> dict[str, Any]:
    """The settings of an adapter, as PEFT wrote them; `UserError` where they are no JSON object."""
    try:
        found = json.loads((folder / CONFIG).read_bytes())
    except ValueError as error:  # no UTF-8, no JSON
        raise UserError(f"{folder / CONFIG}: not JSON; expected an adapter as PEFT writes it") from error
    if not isinstance(found, dict):
        raise UserError(f"{folder / CONFIG}: no JSON object; expected an adapter as PEFT writes it")
    return found


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
        return Base.model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise UserError(f"{file}: not what train/sft.py writes; get the adapter again") from error


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
    try:
        manifest = json.loads(file.read_bytes())
    except ValueError as error:
        raise UserError(f"{file}: not JSON; expected the manifest that train/sft.py wrote") from error
    if not isinstance(manifest, dict):
        return  # somebody else's
    if manifest.get("status", "done") != "done":
        raise UserError(
            f"monitor.adapter={folder}: that training did not finish; run its command again, it resumes there"
        )
    files = manifest.get("files")
    for name in (CONFIG, WEIGHTS, BASE):
        recorded = files.get(f"{folder.name}/{name}") if isinstance(files, dict) else None
        if recorded is not None:
            refuse_changed(folder / name, recorded, "get the run again, or train again")
