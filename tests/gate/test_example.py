"""The workflow that a team copies into its repository."""

import re
import shlex
import shutil
from pathlib import Path

import yaml
from command import monitorbench as command_line

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


def test_a_gate_on_inverted_scores_says_so(tmp_path: Path):
    """A monitor that was read the wrong way round would be frozen, and pass every night."""
    shutil.copy(EXAMPLE.with_name("judges.csv"), tmp_path)
    columns = ("import.columns.score=rating.haiku", "import.monitor=haiku")
    run = ("import", "from=judges.csv", *columns, "import.scale=[1,10]", "import.calibration_share=0.5")
    point = ("calibrate", "run=@haiku-imported/calibration", "calibrate.alpha=0.1")
    frozen = ("gate", "run=@haiku-imported/test", "operating_point=latest")
    for command in (run, point, frozen):  # the last says how it is checked
        done = command_line(*command, folder=tmp_path)
        assert done.returncode == 0, done.stderr
    said = " ".join(done.stderr.split())
    assert "gate: The scores of haiku are inverted" in said
    assert "gate: check it with: monitorbench gate gate.file=" in said
    asked = command_line(
        "gate", "gate.file=" + str(next(tmp_path.glob("runs/gate/*/gate.json"))), folder=tmp_path
    )
    assert asked.returncode == 2
    assert "its anchors were imported without texts" in asked.stderr
    assert not list(tmp_path.glob("runs/gate/*/looks.jsonl")), "no look was taken"
