"""What names an adapter: its tensors and settings, in whichever order PEFT wrote them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from spoil import edit_json, edit_tensors

from monitorbench.config.base import UserError
from monitorbench.engines.stored.adapter import adapter_folder, adapter_sha256, canonical

TRAINING = Path(__file__).resolve().parents[2] / "training" / "small_runs.py"


@pytest.mark.parametrize("name", ["target_modules", "modules_to_save", "exclude_modules"])
def test_the_order_of_module_names_does_not_name_an_adapter(run, name):
    """If it failed: one adapter would be judged twice, under two names."""
    config = run / "adapter" / "adapter_config.json"
    edit_json(config, **{name: ["a", "b", "c"]})
    first = adapter_sha256(run / "adapter")
    edit_json(config, **{name: ["c", "a", "b"]})
    assert adapter_sha256(run / "adapter") == first
    settings = json.loads(config.read_text())
    config.write_text(json.dumps(dict(reversed(settings.items())), indent=7))
    assert adapter_sha256(run / "adapter") == first
    edit_json(config, **{name: ["a", "b"]})
    assert adapter_sha256(run / "adapter") != first


@pytest.mark.parametrize(
    "change", [{"r": 8}, {"lora_alpha": 1}, {"use_rslora": True}, {"fan_in_fan_out": True}]
)
def test_other_settings_are_another_adapter(run, change):
    """If it failed: verdicts of one adapter would pass for another's."""
    first = adapter_sha256(run / "adapter")
    edit_json(run / "adapter" / "adapter_config.json", **change)
    assert adapter_sha256(run / "adapter") != first


def test_other_tensors_are_another_adapter(run):
    """If it failed: verdicts of one adapter would pass for another's."""
    first = adapter_sha256(run / "adapter")
    edit_tensors(run / "adapter", lambda tensors: {name: t + 1e-3 for name, t in tensors.items()})
    assert adapter_sha256(run / "adapter") != first


def test_what_training_writes_is_canonical(run):
    """If it failed: two trainings of one thing would leave two files."""
    text = (run / "adapter" / "adapter_config.json").read_text()
    config = json.loads(text)
    assert text == canonical(config)
    assert config["target_modules"] == sorted(config["target_modules"])


@pytest.mark.parametrize("text", [b"{", b"\xff", b"[]", b"null", b'"text"'])
def test_settings_that_are_none_are_refused_where_they_name_an_adapter(run, text):
    """If it failed: a traceback of a JSON parser would be read."""
    (run / "adapter" / "adapter_config.json").write_bytes(text)
    with pytest.raises(UserError, match=r"adapter_config\.json: no"):
        adapter_sha256(run / "adapter")


def test_a_run_without_an_adapter_yet_says_that_it_did_not_finish(run):
    """If it failed: a person would look for a file that the training has not written yet."""
    edit_json(run / "manifest.json", status="running")
    (run / "adapter").rename(run / "gone")
    with pytest.raises(UserError, match="that training did not finish"):
        adapter_folder(run)


@pytest.mark.slow
def test_two_trainings_of_one_thing_leave_equal_files(tiny, trained, tmp_path):
    """If it failed: the same command on two machines would give two monitors.

    PEFT keeps the names of the layers in a set, whose order changes with PYTHONHASHSEED.
    """
    found = []
    for seed in (1, 2):
        root = tmp_path / str(seed)
        root.mkdir()
        (root / "data").symlink_to(trained.parents[2] / "data")
        steps = ("max_steps=1", "validate_every=1", "dtype=float32", "device=cpu")
        done = subprocess.run(
            [sys.executable, str(TRAINING), str(root), str(tiny), *(f"training.{one}" for one in steps)],
            capture_output=True,
            text=True,
            check=False,
            env={
                **os.environ,
                "PYTHONHASHSEED": str(seed),
                "TELL": "null",
                "PYTHONPATH": os.pathsep.join([str(TRAINING.parents[1]), os.environ.get("PYTHONPATH", "")]),
            },
        )
        assert done.returncode == 0, done.stderr[-2000:]
        folder = Path(done.stdout.split()[-1]) / "adapter"
        found.append(({file.name: file.read_bytes() for file in folder.iterdir()}, adapter_sha256(folder)))
    assert found[0] == found[1]
