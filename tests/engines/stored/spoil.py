"""Changes to an adapter's files, as a broken copy or a careless hand makes them."""

import json
from collections.abc import Callable
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor

Tensors = dict[str, Tensor]


def edit_json(file: Path, **changes: object) -> None:
    """Set keys of a JSON file."""
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def edit_tensors(folder: Path, change: Callable[[Tensors], Tensors]) -> None:
    """Write an adapter's tensors anew, as `change` makes them of the old ones."""
    file = folder / "adapter_model.safetensors"
    save_file(change(load_file(file)), file)
