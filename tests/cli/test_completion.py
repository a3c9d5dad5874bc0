"""Completion: the words a shell is offered, and a real bash that asks for them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import ROOT, monitorbench

from monitorbench.cli.help import words
from monitorbench.cli.main import commands

WORDINGS = ["act", "few_shot", "response_first", "swapped"]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("monitorbench ev", ["evaluate "]),
        ("monitorbench nothing prom", []),
        ("monitorbench evaluate prompt=direct_", [f"prompt=direct_{name}" for name in WORDINGS]),
        ("monitorbench evaluate seed=1 training.lear", ["training.learning_rate="]),
    ],
)
def test_what_is_offered(line: str, offered: list[str]):
    """Otherwise: a tab gives nothing, or what is no setting."""
    assert words(line, commands()) == offered


def test_bash_completes_a_command_and_an_option(tmp_path: Path):
    """Otherwise: the printed lines are no bash, or bash replaces `prompt=` by the option."""
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    command = tmp_path / "monitorbench"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m monitorbench.cli "$@"\n')
    command.chmod(0o755)
    script = (
        'eval "$(monitorbench completion bash)"\n'
        'COMP_LINE="monitorbench evaluate prompt=evidence_f"; COMP_POINT=${#COMP_LINE}; _monitorbench\n'
        'echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", script],
        env={
            **os.environ,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "src"),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    expected = ["evidence_few_shot", "evidence_first", "evidence_first_few_shot"]
    assert done.stdout.split() == expected, done.stderr


def test_another_shell_is_one_line(tmp_path: Path):
    """Otherwise: nothing says which shells there are."""
    ran = monitorbench("completion", "tcsh", folder=tmp_path)
    assert ran.returncode == 2
    assert "expected bash, zsh or fish" in ran.stderr
