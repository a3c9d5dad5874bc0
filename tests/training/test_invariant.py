"""What must not change a training run: how its samples are batched, spread, interrupted or repeated."""

import math
from itertools import count

import numpy as np
import pytest
import torch
from sealed import seal
from small_models import planted_samples
from small_runs import curve, distance, drift, fp32, losses, plant, results, settings

from monitorbench.config.base import UserError
from monitorbench.corpus.store import write_split
from monitorbench.records import Split
from monitorbench.training import mixed, sft, trainer
from monitorbench.training.mixed import Instruction

PINNED = [10.78081, 10.67119, 10.58589, 10.61292]
"""Of the tiny model, four steps of eight samples; written down once (torch 2.13, trl 1.16)."""


@pytest.fixture(scope="module")
def whole(tiny, tmp_path_factory):
    """Four steps of one forward pass each."""
    root = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sft, "ensure", lambda study, splits: plant(root))
        return sft.train(settings(root, tiny, *fp32(4, "micro_batch_size=8", "batching=padded")))


def test_the_loss_trajectory_is_the_one_written_down(whole):
    """If it failed: an upgrade would have changed what training computes, and no result be comparable."""
    assert losses(whole) == pytest.approx(PINNED, abs=1e-3)


@pytest.mark.parametrize(
    "spread",
    [
        ("micro_batch_size=1", "batching=padded"),
        ("micro_batch_size=2", "batching=length_grouped"),
        ("micro_batch_size=4", "batching=packed"),
        ("micro_batch_size=4", "batching=packed", "gradient_checkpointing=true"),
    ],
    ids=" ".join,
)
def test_one_step_is_one_step_however_it_is_batched(planted, tiny, whole, spread):
    """If it failed: what fits into memory would decide what a monitor learns."""
    other = sft.train(settings(planted / "other", tiny, *fp32(4, *spread)))
    assert losses(other) == pytest.approx(losses(whole), rel=1e-5)
    assert drift(other, whole) < 1e-2


def test_a_pairs_margin_is_in_the_loss_however_it_is_batched(planted, tiny, whole):
    """If it failed: `objective=pairwise` would be SFT under another name, or depend on the batch size."""
    pairwise = ("objective=pairwise", "margin=3.0", "pair_weight=0.5", "lora_dropout=0.0")
    one, other = (
        sft.train(settings(planted / b, tiny, *fp32(4, *pairwise, f"micro_batch_size={m}", f"batching={b}")))
        for m, b in ((8, "padded"), (2, "packed"))
    )
    assert losses(one) == pytest.approx(losses(other), rel=1e-5)
    assert results(one)["n_pairs"] == 100
    # The untrained counterparts score nearly alike, so a pair adds about softplus(3).
    assert losses(one)[0] - losses(whole)[0] == pytest.approx(0.5 * np.log1p(np.exp(3.0)), abs=0.05)


def test_instructions_are_mixed_in(planted, tiny, monkeypatch):
    """If it failed: `objective=mixed` would train on labels alone, or on a question of the test split."""
    write_split(planted / "data" / "planted-0", Split.TEST, planted_samples(2, seed=3))
    seal(planted / "data" / "planted-0")
    read = [Instruction(f"Say {word}.", f"{word} {word}") for word in ("box", "shelf", "noon")]
    read.append(Instruction("what  is NEW?", "Nothing."))  # asked in the test split
    read.append(Instruction("End it.", "Now<|im_end|>"))
    monkeypatch.setattr(mixed, "read_instructions", lambda *_: read)
    run = sft.train(settings(planted, tiny, *fp32(2, "objective=mixed")))
    assert results(run)["n_instructions"] == 3
    assert results(run)["n_instructions_left_out"] == 2
    assert np.isfinite(losses(run)).all()


def planned_curve(monkeypatch, aurocs, interrupt_at=None):
    """Let the validation find what a test wants; the adapter of every step is kept beside it."""
    kept = {}
    waiting = [interrupt_at]

    def measure(self, step, loss, real=sft.LearningCurve.measure):
        real(self, step, loss)
        self.points[-1]["auroc"] = aurocs[step]
        kept[step] = {n: p.detach().clone() for n, p in self.model.named_parameters() if p.requires_grad}
        if step == waiting[0]:
            waiting[0] = None
            raise KeyboardInterrupt

    monkeypatch.setattr(sft.LearningCurve, "measure", measure)
    return kept


def test_training_stops_early_and_keeps_the_best(planted, tiny, monkeypatch):
    """If it failed: hours would be spent on getting worse, or the worse adapter be deployed."""
    saved = []

    def save(model, folder, hub_id, real=sft.save_adapter):
        if folder.name == "adapter":
            saved.append({n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad})
        real(model, folder, hub_id)

    monkeypatch.setattr(sft, "save_adapter", save)
    # The untrained model's .95 is no candidate, and an equal value no improvement.
    with monkeypatch.context() as patched:
        kept = planned_curve(patched, [0.95, 0.6, 0.8, 0.8, 0.7, 0.9, 0.9])
        run = sft.train(settings(planted, tiny, *fp32(6, "early_stopping_patience=2")))
    assert [point["step"] for point in curve(run)] == [0, 1, 2, 3, 4]
    assert (results(run)["steps"], results(run)["kept_step"]) == (4, 2)
    assert all(tensor.equal(kept[2][name]) for name, tensor in saved[0].items())
    assert not all(tensor.equal(kept[4][name]) for name, tensor in saved[0].items())
    assert sorted(path.name for path in run.iterdir() if path.is_dir()) == ["adapter"]


@pytest.mark.parametrize("at", [3, 5])
def test_an_interrupted_run_stops_at_the_same_step_with_the_same_adapter(planted, tiny, monkeypatch, at):
    """If it failed: a preempted job would forget what was best, or go on beyond where it had stopped."""
    aurocs = [0.5, 0.6, 0.7, 0.9, 0.8, 0.8, 0.95]
    short = fp32(6, "early_stopping_patience=2", "checkpoint_every=2")
    with monkeypatch.context() as patched:
        planned_curve(patched, aurocs)
        undisturbed = sft.train(settings(planted / "a", tiny, *short))
    planned_curve(monkeypatch, aurocs, interrupt_at=at)
    with pytest.raises(KeyboardInterrupt):
        sft.train(settings(planted / "b", tiny, *short))
    resumed = sft.train(settings(planted / "b", tiny, *short))
    assert results(resumed)["kept_step"] == results(undisturbed)["kept_step"] == 3
    assert distance(resumed, undisturbed) <= 1e-6


def test_early_stopping_on_one_label_is_refused(planted, tiny):
    """If it failed: an AUROC that isn't there would never improve, and every run stop at once."""
    only = [s for s in planted_samples(4, seed=2) if s.label == "benign"]
    write_split(planted / "data" / "planted-0", Split.VALIDATION, only)
    seal(planted / "data" / "planted-0")
    with pytest.raises(UserError, match=r"has no AUROC \(it holds one label"):
        sft.train(settings(planted, tiny, *fp32(2, "early_stopping_patience=1")))


def test_a_loss_that_is_no_number_ends_the_training(planted, tiny, monkeypatch):
    """On an H200 it was shown as 0.000 to the end, 180 steps long, and a traceback followed."""
    real, calls = trainer.label_loss, count(1)
    monkeypatch.setattr(
        trainer, "label_loss", lambda *given: real(*given) * (math.nan if next(calls) == 2 else 1)
    )
    with pytest.raises(UserError, match=r"^train: the loss of step 2 is nan, .* training\.learning_rate"):
        sft.train(settings(planted, tiny, *fp32(4, "batch_size=2", "micro_batch_size=2")))
    assert not torch.backends.cuda.cudnn_sdp_enabled()
