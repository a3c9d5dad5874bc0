"""Checkpoints: one that is not as it was written is not trained on from."""

from pathlib import Path

import pytest
from small_runs import distance, fp32, settings

from monitorbench.training import sft
from monitorbench.training.checkpoints import last_whole_checkpoint

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
