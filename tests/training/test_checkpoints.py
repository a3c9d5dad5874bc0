"""Checkpoints that are not as they were written are not trained on from, and a full disk is one line."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from small_runs import distance, fp32, settings

from monitorbench.config.base import UserError
from monitorbench.training import sft
from monitorbench.training.model import last_whole_checkpoint, writing

FULL = Path("/dev/full")
SHORT = fp32(5, "checkpoint_every=2")


@pytest.mark.slow
@pytest.mark.parametrize("change", ["flip", "cut", "unsealed"])
def test_a_damaged_checkpoint_is_not_resumed_from(planted, tiny, monkeypatch, caplog, change):
    """If it failed: a flipped bit in weights or moments would become part of the adapter, unseen."""
    undisturbed = sft.train(settings(planted / "a", tiny, *SHORT))

    def stop_after_a_checkpoint(self, step, loss, measure=sft.LearningCurve.measure):
        if step == 3:
            raise KeyboardInterrupt
        measure(self, step, loss)

    with monkeypatch.context() as patched:
        patched.setattr(sft.LearningCurve, "measure", stop_after_a_checkpoint)
        with pytest.raises(KeyboardInterrupt):
            sft.train(settings(planted / "b", tiny, *SHORT))
    (folder,) = (planted / "b").glob("runs/train/*/checkpoints")
    assert last_whole_checkpoint(folder) == folder / "checkpoint-2"
    _damage(folder / "checkpoint-2", change)
    with caplog.at_level("WARNING"):
        resumed = sft.train(settings(planted / "b", tiny, *SHORT))
    assert "train: a checkpoint is not used: " in caplog.text
    assert distance(resumed, undisturbed) <= 1e-6
    assert not folder.exists()


def _damage(checkpoint: Path, change: str) -> None:
    weights = checkpoint / "adapter_model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-3] ^= 4
    match change:
        case "flip":
            weights.write_bytes(content)
        case "cut":
            (checkpoint / "trainer_state.json").write_text('{"glo')
        case _:
            (checkpoint / "manifest.json").unlink()


@pytest.mark.skipif(not FULL.exists(), reason="needs Linux's /dev/full")
@pytest.mark.parametrize("write", [torch.save, lambda value, path: save_file({"a": value}, path)])
def test_a_full_disk_is_one_line(write, tmp_path: Path):
    """Eighty lines of traceback from a library's C++ do not say that the disk is full."""
    place = FULL if write is torch.save else tmp_path / "missing" / "file"
    with (
        pytest.raises(UserError, match=r"runs: can't be written \(.+\); make room") as caught,
        writing(Path("runs")),
    ):
        write(torch.zeros(100_000), place)
    assert "\n" not in str(caught.value)


def test_other_failures_keep_their_traceback():
    """A bug behind the words of a full disk would never be found."""
    with pytest.raises(RuntimeError, match="shapes"), writing(Path("runs")):
        raise RuntimeError("shapes do not match")
