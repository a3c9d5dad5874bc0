"""How Unsloth is imported and asked. It needs a GPU, so a module of its name records what it is given."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECORDER = """
import json, os, pathlib, sys

seen = {"before": sorted({"transformers", "trl", "peft", "torch"} & set(sys.modules))}


class FastLanguageModel:
    @classmethod
    def from_pretrained(cls, folder, **given):
        compiled = os.environ["UNSLOTH_COMPILE_LOCATION"]
        seen["compiled"] = [compiled, os.path.isdir(compiled)]
        seen["statistics"] = os.environ["UNSLOTH_DISABLE_STATISTICS"]
        seen["given"] = sorted(given)
        pathlib.Path(os.environ["SEEN"]).write_text(json.dumps(seen))
        raise SystemExit(3)
"""


def train(folder: Path, *overrides: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """`train/sft.py` with Unsloth on the starter's smallest view, its files below `folder`."""
    paths = [f"paths.{name}={folder / name}" for name in ("data", "runs", "models")]
    settings = [
        "training.loader=unsloth",
        "dataset.train.pairs_per_cell=1",
        "dataset.splits=[train,validation]",
    ]
    return subprocess.run(
        [sys.executable, "train/sft.py", *settings, *paths, *overrides],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.slow
def test_unsloth_comes_before_what_it_replaces_and_keeps_to_its_own_folder(tmp_path):
    """If it failed: its kernels would not be used, or two runs would compile into one folder."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "unsloth.py").write_text(RECORDER)
    path = os.pathsep.join([str(tmp_path / "modules"), str(ROOT / "src")])
    ran = train(tmp_path, PYTHONPATH=path, SEEN=str(tmp_path / "seen.json"))
    assert ran.returncode == 3, ran.stderr[-2000:]
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert seen["before"] == []
    folder, was_there = seen["compiled"]
    assert was_there
    assert not Path(folder).exists(), "gone with the process"
    assert not (ROOT / "unsloth_compiled_cache").exists()
    assert seen["statistics"] == "1"
    assert {"dtype", "load_in_4bit", "max_seq_length", "trust_remote_code"} <= set(seen["given"])


def test_without_a_gpu_it_says_in_one_line_what_to_do(tmp_path):
    """If it failed: a traceback of a library that can't even be imported."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "unsloth.py").write_text("raise NotImplementedError('Unsloth needs\\na GPU')")
    path = os.pathsep.join([str(tmp_path / "modules"), str(ROOT / "src")])
    ran = train(tmp_path, PYTHONPATH=path)
    assert ran.returncode == 1, ran.stderr[-2000:]
    last = ran.stderr.strip().splitlines()[-1]
    assert "training.loader=unsloth: Unsloth needs a GPU; set training.loader=transformers" in last
    assert "Traceback" not in ran.stderr
