"""A trained monitor leaves the house: merged as it was judged, with a card that says what it is."""

import json
import logging
import shutil
from pathlib import Path

import huggingface_hub
import pytest
import torch
import yaml
from command import script
from peft import PeftModel
from sealed import seal
from small_models import planted_samples
from small_runs import fp32, settings
from studies import study
from transformers import AutoModelForCausalLM

from monitorbench.config.base import UserError
from monitorbench.corpus.store import write_split
from monitorbench.engines.stored.adapter import adapter_sha256
from monitorbench.records import Split
from monitorbench.runs.directory import record_files
from monitorbench.training import sft
from monitorbench.training.publish import merge_run, push_run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def trained(tiny, tmp_path_factory):
    """A training run, and the folder of its base."""
    root = tmp_path_factory.mktemp("published")
    for split, (n_pairs, seed) in {Split.TRAIN: (8, 1), Split.VALIDATION: (4, 2)}.items():
        write_split(root / "data" / "planted-0", split, planted_samples(n_pairs, seed))
    seal(root / "data" / "planted-0")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sft, "ensure", lambda study, splits: root / "data" / "planted-0")
        return sft.train(settings(root, tiny, *fp32(2))), tiny


def of(run, *overrides, primary="push"):
    root = run.parents[2]
    paths = [f"paths.{name}={root / name}" for name in ("data", "runs", "models")]
    return study(f"run={run}", *paths, *overrides, primary=primary)


def test_the_merged_model_answers_as_base_and_adapter_do(trained):
    """If it failed: what is deployed would be another monitor than the one that was measured."""
    run, weights = trained
    folder = merge_run(of(run, primary="merge"))
    assert folder == run / "merged"
    assert list(folder.glob("*.safetensors"))
    assert not list(folder.glob("*.bin"))
    base = AutoModelForCausalLM.from_pretrained(weights, dtype=torch.float32)
    adapted = PeftModel.from_pretrained(base, str(run / "adapter"))
    merged = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    ids = torch.arange(5, 60)[None]
    with torch.inference_mode():
        torch.testing.assert_close(merged(ids).logits, adapted(ids).logits, atol=1e-4, rtol=1e-4)
        with adapted.disable_adapter():
            assert not torch.allclose(merged(ids).logits, adapted(ids).logits, atol=1e-3)
    before = next(folder.glob("*.safetensors")).stat().st_mtime_ns
    assert merge_run(of(run, primary="merge")) == folder
    assert next(folder.glob("*.safetensors")).stat().st_mtime_ns == before


def test_a_base_that_changed_is_not_merged_into(trained, other_tiny, tmp_path):
    """If it failed: an adapter would be added to weights it was not trained on."""
    run, _ = trained
    copy = tmp_path / "runs" / "train" / run.name
    shutil.copytree(run, copy, ignore=shutil.ignore_patterns("merged"))
    config = json.loads((copy / "config.json").read_text())
    config["monitor"]["path"] = str(other_tiny)
    (copy / "config.json").write_text(json.dumps(config))
    record_files(copy, "config.json")
    with pytest.raises(UserError, match="is not the one that was trained"):
        merge_run(of(copy, primary="merge"))
    assert not list(copy.glob("*merged*"))


def test_a_dry_run_shows_the_card_and_uploads_nothing(trained, caplog, monkeypatch):
    """If it failed: trying the command would publish a model."""
    run, _ = trained
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: pytest.fail("asked the hub"))
    with caplog.at_level(logging.INFO, "monitorbench"):
        push_run(of(run, "push.repo=team/monitor"))
    said = "\n".join(caplog.messages)
    assert (
        "would upload to team/monitor: README.md, adapter_config.json, adapter_model.safetensors, base.json"
        in said
    )
    card = (run / "README.md").read_text()
    assert card in said
    head = yaml.safe_load(card.split("---")[1])
    assert head["base_model"] == "HuggingFaceTB/SmolLM2-135M-Instruct"
    assert head["library_name"] == "peft"
    assert "| trained on | safety_permission/qa |" in card
    assert "| data | `planted-0` |" in card
    assert "Not measured yet." in card
    assert str(ROOT) not in card
    assert str(run.parents[2]) not in card, "a machine's path"


def test_measured_numbers_are_in_the_card_and_those_of_others_are_not(trained):
    """If it failed: a card would show the numbers of another adapter, or none."""
    run, _ = trained
    cell = {"miss_rate": 0.25, "miss_rate_ci": [0.1, 0.4], "false_alarm_rate": 0.125, "auroc": 0.875, "n": 40}
    for name, digest, auroc in (("ours", adapter_sha256(run / "adapter"), 0.875), ("theirs", "0" * 64, 0.07)):
        folder = run.parents[1] / "evaluate" / name
        folder.mkdir(parents=True)
        judge = {"name": "tiny+all", "prompt": "direct", "adapter": digest}
        numbers = {"monitors": {"tiny+all": {"direct": {"overall": {**cell, "auroc": auroc}}}}}
        (folder / "metrics.json").write_text(json.dumps(numbers))
        seal(folder, {"status": "done", "results": {"judge": judge, "data": "planted-0"}})
    card = (push_run(of(run)) / "README.md").read_text()
    assert "| overall | 0.25 [0.10, 0.40] | 0.12 | 0.88 | 40 |" in card
    assert "0.07" not in card


def test_a_push_uploads_the_card_and_the_weights_alone(trained, monkeypatch):
    """If it failed: checkpoints, logs or a code diff would be published."""
    run, _ = trained
    asked = []

    class Api:
        def create_repo(self, repo, **settings):
            asked.append((repo, settings["private"]))

        def upload_file(self, **settings):
            asked.append(settings["path_in_repo"])

        def upload_folder(self, **settings):
            asked.append((Path(settings["folder_path"]).name, settings["allow_patterns"]))

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    push_run(of(run, "push.repo=team/monitor", "push.dry_run=false"))
    assert asked == [
        ("team/monitor", True),
        "README.md",
        ("adapter", ["adapter_config.json", "adapter_model.safetensors", "base.json"]),
    ]
    with pytest.raises(UserError, match=r"push\.repo=null"):
        push_run(of(run, "push.dry_run=false"))


def test_what_is_no_training_run_is_refused(trained, tmp_path):
    """If it failed: an evaluation's directory would end in a traceback."""
    run, _ = trained
    with pytest.raises(UserError, match=r"no manifest\.json there"):
        merge_run(of(run, f"run={tmp_path}", primary="merge"))
    seal(tmp_path)
    with pytest.raises(UserError, match=r"expected a run directory of `monitorbench train`"):
        push_run(of(run, f"run={tmp_path}"))


def test_the_scripts_do_the_same(trained):
    """If it failed: the functions would work, and the commands in the docs not."""
    run, _ = trained
    ran = script("train/push.py", f"run={run}", f"paths.runs={run.parents[1]}", folder=ROOT)
    assert (ran.returncode, ran.stdout) == (0, f"{run}\n"), ran.stderr[-1000:]
    assert "dry run: would upload" in ran.stderr
