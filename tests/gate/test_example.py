"""The workflow that a team copies into its repository."""

import re
import shlex
from pathlib import Path

import yaml

import monitorbench
from monitorbench.cli.stages import STAGES
from monitorbench.gate.answer import EXIT_CODES

EXAMPLE = Path(__file__).parents[2] / "examples" / "gate.yml"


def test_the_workflow_runs_a_command_that_there_is():
    """A copied workflow with a mistyped setting fails every night, and is switched off as a nuisance."""
    workflow = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    (job,) = workflow["jobs"].values()
    script = "\n".join(step.get("run", "") for step in job["steps"])
    (line,) = re.findall(r"^monitorbench (.*?) \|", script, re.MULTILINE)
    name, *settings = shlex.split(line)
    study = STAGES[name].study(settings)
    assert name == "gate"
    assert study.gate.file == Path("gate/gate.json")
    assert study.engine.api_key_env in EXAMPLE.read_text(encoding="utf-8")
    assert "set -o pipefail" in script, "a pipe hides the exit code of all but its last command"


def test_the_workflow_installs_the_version_that_froze():
    """If it failed: a new release would read the same answers otherwise, and the monitor be blamed for it."""
    (pin,) = re.findall(r'pip install "monitorbench\[cpu\]==(.+?)"', EXAMPLE.read_text(encoding="utf-8"))
    assert pin == monitorbench.__version__


def test_the_workflow_names_the_exit_codes():
    """A reader of a red job would look up the wrong word."""
    named = dict(re.findall(r"(\d) \((\w+)\)", EXAMPLE.read_text(encoding="utf-8")))
    assert {word: int(code) for code, word in named.items()} == {
        word: code for word, code in EXIT_CODES.items() if code
    }
