"""A disk that is full or broken while libraries write: one line, whatever they raise for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from monitorbench.config.base import UserError

_OF_TORCH = ("inline_container", "PytorchStreamWriter")
"""In the message of the `RuntimeError` that `torch.save` raises where a write fails."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Run a body that writes below `path`; raises `UserError` where a write fails."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise _unwritable(path, error) from error
    except RuntimeError as error:
        if not any(word in str(error) for word in _OF_TORCH):
            raise
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: Exception) -> UserError:
    reason = " ".join(str(error).split())[:120]
    return UserError(
        f"{path}: can't be written ({reason}); make room or allow writing, then run the same command again"
    )
