"""The wheel in an empty environment: from `pip install` to a page, without torch, from any folder."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command import ROOT

pytestmark = pytest.mark.slow


def run(*command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """In an environment without this one's packages."""
    kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(list(map(str, command)), cwd=folder, env=kept, capture_output=True, text=True)


@pytest.fixture
def installed(made_once: Callable[..., Path]) -> Path:
    """The `bin` of an environment with the wheel, what it asks for, and what draws figures."""
    return made_once("wheel", install) / "env" / "bin"


def install(folder: Path) -> None:
    """Make an environment below `folder` with the wheel of this checkout's last commit."""
    tree = folder / "tree"  # building writes beside the sources
    git = run("git", "clone", "--quiet", ROOT, tree, folder=folder)
    assert git.returncode == 0, git.stderr
    built = run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder, tree, folder=folder)
    assert built.returncode == 0, built.stderr
    made = run(sys.executable, "-m", "venv", folder / "env", folder=folder)
    assert made.returncode == 0, made.stderr
    pip = folder / "env" / "bin" / "pip"
    done = run(pip, "install", "--quiet", f"{next(folder.glob('*.whl'))}[report]", folder=folder)
    assert done.returncode == 0, done.stderr


def test_choose_on_recorded_monitors_ends_in_a_page(installed: Path, tmp_path: Path):
    """Otherwise: nothing of it can be installed, or the first page takes a deep-learning framework."""
    absent = run(installed / "python", "-c", "import torch", folder=tmp_path)
    assert "No module named 'torch'" in absent.stderr
    files = [ROOT / "examples" / f"verdicts-{name}.jsonl" for name in ("smollm2_135m", "qwen2_5_coder_0_5b")]
    ran = run(
        installed / "monitorbench",
        "choose",
        f"monitors=[{','.join(map(str, files))}]",
        "dataset=jsonl",
        f"dataset.path={ROOT / 'examples' / 'dataset.jsonl'}",
        "calibrate.alpha=0.1",
        folder=tmp_path,
    )
    assert ran.returncode == 0, ran.stderr
    page = tmp_path / ran.stdout.splitlines()[-1] / "report.html"
    assert "Deploy none of these" in page.read_text(encoding="utf-8")
    scored = run(
        installed / "monitorbench",
        "score",
        "run=@smollm2_135m-recorded/test",
        folder=tmp_path,
    )
    assert scored.returncode == 0, scored.stderr
    assert (tmp_path / scored.stdout.splitlines()[-1] / "table.csv").is_file()


def test_a_pilots_decision_needs_nothing_else(installed: Path, tmp_path: Path):
    """Otherwise: the second question, whether intervening helps, takes a checkout."""
    ran = run(
        installed / "monitorbench",
        "pilot",
        f"outcomes={ROOT / 'examples' / 'outcomes.jsonl'}",
        folder=tmp_path,
    )
    assert ran.returncode == 0, ran.stderr
    decision = json.loads((tmp_path / ran.stdout.splitlines()[-1] / "decision.json").read_text())
    assert decision


def test_a_model_without_its_extra_is_one_line(installed: Path, tmp_path: Path):
    """Otherwise: a traceback for somebody who has not installed the heavy part."""
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "config.json").write_text("{}")
    (tmp_path / "weights" / "model.safetensors").write_bytes(b"")
    ran = run(
        installed / "monitorbench",
        "evaluate",
        "dataset=jsonl",
        f"dataset.path={ROOT / 'examples' / 'dataset.jsonl'}",
        "monitor=smollm2_135m",
        "monitor.package=null",
        "monitor.path=weights",
        "tracking=none",
        folder=tmp_path,
    )
    assert ran.returncode == 1
    assert "expected pip install 'monitorbench[cpu]'" in ran.stderr.splitlines()[-1]
