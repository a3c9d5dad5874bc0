"""Training runs: they learn what can be learned, resume, and never pass the base for an adapter."""

import json

import numpy as np
import pytest
import small_runs
import torch
from safetensors.torch import load_file
from sklearn.metrics import roc_auc_score
from small_models import planted_samples, smollm2_folder
from studies import study
from transformers import AutoTokenizer

from monitorbench.config.base import UserError
from monitorbench.engines.open import open_engine
from monitorbench.engines.protocol import Decoding
from monitorbench.prompts.label_tokens import score
from monitorbench.prompts.render import Renderer
from monitorbench.records import Label
from monitorbench.training import sft


def settings(root, *more, weights=None):
    return small_runs.settings(root, weights or smollm2_folder(), *more)


@pytest.mark.slow
def test_the_trainer_learns_a_planted_signal(planted):
    """If it failed: a null result of the demo would say nothing about the data."""
    run = sft.train(settings(planted, "training.max_steps=25", "training.validate_every=25"))

    samples = planted_samples(20, seed=3)
    weights = smollm2_folder()
    configured = study()
    renderer = Renderer(configured.prompt, AutoTokenizer.from_pretrained(weights))
    engine = open_engine(configured.engine, weights, [run / "adapter"], 8192)
    engine.take(run / "adapter")
    decoding = Decoding(1, (renderer.end_of_turn,), renderer.label_tokens.all)
    answers = dict(engine.complete([renderer.render(item) for item in samples], decoding))
    scores = [score(answers[i].logprobs, renderer.label_tokens).score for i in range(len(samples))]
    assert roc_auc_score([item.label is Label.MISBEHAVIOR for item in samples], scores) > 0.95


def test_an_interrupted_run_ends_as_an_undisturbed_one(planted, tiny, monkeypatch):
    """If it failed: a preempted job would give another adapter than the one reported."""
    short = ("training.max_steps=6", "training.validate_every=3", "training.checkpoint_every=2")
    fp32 = (*short, "training.dtype=float32")
    undisturbed = sft.train(settings(planted / "a", *fp32, weights=tiny))

    def stop_at_step_5(self, step, loss, measure=sft.LearningCurve.measure):
        if step == 3 and stop:
            stop.clear()
            raise KeyboardInterrupt
        measure(self, step, loss)

    stop = [True]
    monkeypatch.setattr(sft.LearningCurve, "measure", stop_at_step_5)
    interrupted = settings(planted / "b", *fp32, weights=tiny)
    with pytest.raises(KeyboardInterrupt):
        sft.train(interrupted)
    resumed = sft.train(interrupted)

    assert not (resumed / "checkpoints").exists()
    ours, theirs = (
        load_file(run / "adapter" / "adapter_model.safetensors") for run in (resumed, undisturbed)
    )
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        torch.testing.assert_close(tensor, theirs[name], atol=1e-6, rtol=0)
    curves = [json.loads((run / "learning_curve.json").read_text()) for run in (resumed, undisturbed)]
    assert [point["step"] for point in curves[0]] == [0, 3, 6]
    for key in ("auroc", "loss"):
        assert np.allclose([p[key] for p in curves[0][1:]], [p[key] for p in curves[1][1:]])


def test_a_finished_run_is_reused_and_another_seed_is_another_run(planted, tiny):
    """If it failed: a second `make demo` would train again, or a seed's result pass for another's."""
    short = ("training.max_steps=2", "training.validate_every=2")
    first = sft.train(settings(planted, *short, weights=tiny))
    written = (first / "adapter" / "adapter_model.safetensors").stat().st_mtime_ns
    again = sft.train(settings(planted, *short, weights=tiny))
    other = sft.train(settings(planted, *short, "seed=1", weights=tiny))

    assert again == first
    assert (first / "adapter" / "adapter_model.safetensors").stat().st_mtime_ns == written
    assert other != first


def test_the_adapter_names_the_hub_and_holds_no_pickle(planted, tiny):
    """If it failed: an adapter handed on would carry a machine's path, or code that runs on loading."""
    run = sft.train(settings(planted, "training.max_steps=1", "training.validate_every=1", weights=tiny))
    config = json.loads((run / "adapter" / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "HuggingFaceTB/SmolLM2-135M-Instruct"
    assert sorted(file.name for file in (run / "adapter").iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
        "base.json",
    ]


def test_training_on_the_evidence_prompt_is_refused(planted):
    """If it failed: a run would supervise half a JSON object."""
    with pytest.raises(UserError, match=r"prompt=evidence: .* expected a direct prompt"):
        sft.train(settings(planted, "prompt=evidence"))


def test_responses_that_the_view_hides_are_not_learnt_from(planted, tiny):
    """If it failed: an adapter that is to read reasoning would learn the labels of empty responses."""
    with pytest.raises(UserError, match="leaves nothing of any response"):
        sft.train(settings(planted, "view=reasoning_only", weights=tiny))


def test_the_log_says_what_happens_after_the_last_step(planted, tiny, caplog):
    """If it failed: minutes of judging, checking and writing would look like a run that hangs."""
    with caplog.at_level("INFO", "monitorbench"):
        run = sft.train(settings(planted, "training.max_steps=1", "training.validate_every=1", weights=tiny))
    said = [record.getMessage() for record in caplog.records if record.name.startswith("monitorbench")]
    auroc = json.loads((run / "learning_curve.json").read_text())[-1]["auroc"]
    change = json.loads((run / "manifest.json").read_text())["results"]["adapter_gate"]
    assert "1/1, loss" in said[-7]
    assert said[-4].startswith("train on all: 1 steps, 0:00:")
    assert f"-> {auroc:.3f}" in said[-4]
    assert said[-6:-4] + said[-3:] == [
        "train: step 1: judging the validation split",
        f"train: step 1: AUROC on the validation split: {auroc:.3f}",
        "train: comparing the adapter's answers with the base's",
        f"train: a label's log-probability changes by up to {change:.2g}",
        f"train: adapter saved in {run / 'adapter'}",
    ]
