"""Checkpoints of a training: sealed when whole, else not used; a full disk is reported in one line.

A training may be killed while it writes a checkpoint, and libraries raise whatever they like for a disk that
is full or broken.
"""

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accelerate import PartialState
from safetensors import SafetensorError
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from monitorbench.config.base import UserError
from monitorbench.runs.directory import checked_file, read_finished, write_manifest
from monitorbench.runs.files import file_sha256

_OF_TORCH = ("inline_container", "PytorchStreamWriter")
"""Words in the message of the `RuntimeError` that `torch.save` raises where a write fails."""


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


_log = logging.getLogger(__name__)


class SealCheckpoints(TrainerCallback):
    """Writes a manifest with checksums on one process, once all have written their part of a checkpoint."""

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Write the manifest after the last file of a checkpoint."""
        PartialState().wait_for_everyone()
        if state.is_world_process_zero:
            folder = Path(str(args.output_dir)) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"
            files = {
                path.relative_to(folder).as_posix(): file_sha256(path)
                for path in sorted(folder.rglob("*"))
                if path.is_file()
            }
            write_manifest(folder, {"status": "done", "results": {"step": state.global_step}, "files": files})


def last_whole_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint that is as it was written; those that are not are removed, which the log says."""
    checkpoints = sorted(folder.glob(f"{PREFIX_CHECKPOINT_DIR}-*"), key=step_of)
    intact = [path for path in checkpoints if _is_whole(path)]
    for path in set(checkpoints) - set(intact):
        shutil.rmtree(path, ignore_errors=True)
    return intact[-1] if intact else None


def step_of(checkpoint: Path) -> int:
    """The optimizer step after which a checkpoint was written."""
    return int(checkpoint.name.rpartition("-")[2])


def _is_whole(checkpoint: Path) -> bool:
    try:
        for name in read_finished(checkpoint)["files"]:
            checked_file(checkpoint, name)
    except UserError as error:
        _log.warning("train: a checkpoint is not used: %s", error)
        return False
    return True
