"""The tutorial from a log without labels to a gate: its own commands, on the example's scores."""

import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from command import ROOT, monitorbench
from traffic import return_batches

pytestmark = pytest.mark.slow
PAGE = ROOT / "docs" / "tutorial" / "few-labels.md"


def log(folder: Path, name: str, threshold: float, seed: int) -> dict[str, bool]:
    """A guardrail's log of the example's kind of traffic; returns which responses are misbehavior."""
    rng = np.random.default_rng(seed)
    is_bad = rng.random(1_500) < 0.05
    scores = 1 / (1 + np.exp(-(rng.normal(size=1_500) + 3.5 * is_bad - 1)))
    lines = [
        {
            "sample_id": f"{seed}-{i}",
            "score": score,
            "threshold": threshold,
            "request": "q",
            "response": f"r{i}",
        }
        for i, score in enumerate(scores.round(3).tolist())
    ]
    (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return {f"r{i}": bool(bad) for i, bad in enumerate(is_bad)}


def test_the_tutorials_commands_lead_from_a_log_to_a_gate(tmp_path: Path):
    """Otherwise: a team stands in the middle of the way with a run that the next command refuses."""
    shutil.copy(ROOT / "examples" / "judges.csv", tmp_path)
    named = ("import.columns.score=rating.haiku", "import.monitor=haiku")
    run = ("import", "from=judges.csv", *named, "import.scale=[10,1]", "import.calibration_share=0.5")
    for command in (run, ("calibrate", "run=@haiku-imported/calibration", "calibrate.alpha=0.1")):
        done = monitorbench(*command, folder=tmp_path)
        assert done.returncode == 0, done.stderr
    point = json.loads((tmp_path / done.stdout.split()[-1] / "operating_point.json").read_text())
    is_bad = log(tmp_path, "decisions.jsonl", point["thresholds"][0]["threshold"], 1)
    log(tmp_path, "today.jsonl", point["thresholds"][0]["threshold"], 2)
    blocks = re.findall(r"^```\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    said = {}
    for line in "".join(blocks).splitlines():
        _, *arguments = shlex.split(line)
        if "annotation.returned" in line:
            run = max((tmp_path / "runs/label").iterdir(), key=lambda path: path.stat().st_mtime)
            return_batches(run, tmp_path, lambda _, of: "misbehavior" if is_bad[of] else "benign")
        done = monitorbench(*arguments, folder=tmp_path)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        said[line] = " ".join((done.stdout + done.stderr).split())
        if arguments[0] == "gate" and not any("gate.file" in argument for argument in arguments):
            shutil.copytree(tmp_path / done.stdout.split()[-1], tmp_path / "gate")
    answers = "\n".join(said.values())
    for words in (
        "label these 100 next",
        "deploy decisions: miss rate",
        "false alarms on ≤ 10 % of benign samples",
        "frozen:",
        "PASS",
        "NO_DRIFT",
    ):
        assert words in answers
