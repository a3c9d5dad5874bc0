"""`monitorbench` as a process: what a person meets who types it in any folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command import ROOT, monitorbench

from monitorbench.cli.help import help_text
from monitorbench.cli.main import commands, overview
from monitorbench.cli.stages import STAGES
from monitorbench.config.study import Study


def test_the_overview_names_every_command_in_80_columns():
    """Otherwise: a command that nobody finds, or lines that break in an ordinary terminal."""
    text = overview()
    listed = set(re.findall(r"^  (\w+)", text, re.M))
    assert listed == set(commands())
    assert max(map(len, text.splitlines())) <= 80


def test_help_lists_the_settings_of_a_stage_in_80_columns():
    """Otherwise: a person reads 400 keys to find the three that a stage looks at."""
    keys = {field.alias or name for name, field in Study.model_fields.items()}
    for stage in STAGES.values():
        text = help_text(stage)
        assert set(stage.reads.split()) <= keys, stage.name
        assert max(len(line) for line in text.splitlines() if " monitorbench " not in line) <= 80
        assert all(re.search(rf"^  {key}[.=]", text, re.M) for key in stage.reads.split()), stage.name
    assert keys - {"plan"} == {key for stage in STAGES.values() for key in stage.reads.split()}
    assert re.search(
        r"^  calibrate\.alpha=.*  Largest false alarm rate that is promised",
        help_text(STAGES["calibrate"]),
        re.M,
    )


def test_a_closed_pipe_ends_a_command_quietly(tmp_path: Path):
    """Otherwise: `monitorbench evaluate --help | head -1` ends in a traceback."""
    command = [sys.executable, "-m", "monitorbench.cli", "evaluate", "--help"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


def test_every_script_is_the_stage_of_its_name():
    """Otherwise: a script and a command of one name that do different things."""
    scripts = [path for folder in ("data_build", "train", "eval") for path in (ROOT / folder).glob("*.py")]
    named = {re.search(r"STAGES\[\"(\w+)\"\]", path.read_text())[1] for path in scripts}
    assert named == set(STAGES)


def test_a_bare_command_says_what_there_is_and_a_near_miss_is_named(tmp_path: Path):
    """Otherwise: nothing happens without a word, or a traceback for a slip of the finger."""
    bare = monitorbench(folder=tmp_path)
    assert bare.returncode == 2
    assert "choose" in bare.stdout
    wrong = monitorbench("scor", "run=x", folder=tmp_path)
    assert wrong.returncode == 2
    assert wrong.stderr == "error: monitorbench scor: no such command; did you mean score?\n"


@pytest.mark.parametrize("name", sorted(name for name, stage in STAGES.items() if stage.is_live))
def test_a_bare_stage_that_runs_a_model_does_not_begin(tmp_path: Path, name: str):
    """Otherwise: somebody who wants to know what `pilot` does starts one."""
    ran = monitorbench(name, folder=tmp_path)
    assert ran.returncode == 2
    assert ran.stderr.startswith(f"error: {name}: runs a model")
    assert f"monitorbench {name} " in ran.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_missing_extra_is_one_line(tmp_path: Path):
    """Otherwise: a traceback that says `No module named torch` to somebody who installed the wheel."""
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError('No module named torch', name='torch')\n")
    (tmp_path / "transformers.py").write_text(
        "raise ModuleNotFoundError('No module named transformers', name='transformers')\n"
    )
    code = (
        "import sys; sys.argv[1:] = ['evaluate', 'monitor=smollm2_135m', 'tracking=none', "
        "'dataset.test.pairs_per_cell=1']; "
        f"sys.path.insert(0, {str(tmp_path)!r}); from monitorbench.cli.main import main; main()"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 1, ran.stderr
    last = ran.stderr.splitlines()[-1]
    assert re.match(
        r"error: (torch|transformers): not installed.*pip install 'monitorbench\[cpu\]', in a checkout pip "
        r"install -e '\.\[cpu\]'",
        last,
    )
