"""The benchmark `faults`: that it runs, and that it is able to fail."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.faults import endpoints
from benchmarks.faults.endpoint_server import Endpoint
from benchmarks.faults.flips import Kind, flipped
from benchmarks.faults.stages import Ran, difference, results_of
from monitorbench.config.base import UserError
from monitorbench.corpus.elicited import Elicited
from monitorbench.runs.keyed_log import open_log, read_log

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs Debian's strace (make system-deps)")
def test_kills_and_endpoints_of_a_small_campaign(tmp_path: Path):
    """A harness that nobody runs finds nothing: this one kills real stages and asks a real endpoint."""
    command = [sys.executable, str(ROOT / "benchmarks" / "run.py"), "faults", "--work", str(tmp_path)]
    command += ["--only", "kills,endpoint", "--stages", "score,pilot outcomes"]
    command += ["--kills", "20", "--disks", "8", "--modes", "2"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "seed 0" in ran.stdout, ran.stderr
    outcomes = json.loads((tmp_path / "outcomes.json").read_text())["outcomes"]
    kinds = [one["kind"] for one in outcomes]
    assert {"kill score", "kill pilot outcomes", "disk score", "endpoint status"} <= set(kinds)
    assert kinds.count("endpoint status") == 2
    assert [one for one in outcomes if one["ending"] == "silent" and "pilot" in one["kind"]] == []
    assert ran.returncode == any(one["ending"] == "silent" for one in outcomes)
    counted = json.loads((tmp_path / "ratios.json").read_text())["measured"]
    assert counted["all"]["tried"] == len(outcomes)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of a few answers."""
    path = tmp_path / "answers.jsonl"
    with open_log(path, Elicited) as answers:
        for key in "abc":
            answers.append(
                Elicited(
                    key=key,
                    request=key,
                    text="Because the sky is blue.",
                    finish_reason="stop",
                    prompt_tokens=1,
                    completion_tokens=1,
                    seconds=0,
                )
            )
    return path


def test_a_reader_that_ignores_checksums_is_silent(log: Path):
    """Whoever drops a check has to see it in the table; the file is as it was afterwards."""
    before = log.read_bytes()

    def careless() -> Any:
        return [json.loads(line).get("text") for line in log.read_text().splitlines()]

    endings = [one.ending for one in flipped(Kind("careless", log, careless), 0, range(60))]
    assert len(endings) == 60
    assert endings.count("silent") > 5
    assert log.read_bytes() == before


def test_a_reader_that_compares_checksums_is_not(log: Path):
    """The harness may not cry wolf either."""

    def careful() -> Any:
        if len(found := read_log(log, Elicited)) < 3:
            raise UserError("a line is pending again")
        return found

    outcomes = list(flipped(Kind("careful", log, careful), 0, range(60)))
    assert [one for one in outcomes if one.ending == "silent"] == []
    assert "refused" in {one.ending for one in outcomes}


def test_a_reader_that_dies_is_silent(log: Path):
    """A flipped bit that ends the process leaves no message; the flips after it are tried all the same."""
    content = log.read_bytes()

    def fragile() -> Any:
        if log.read_bytes() != content:
            import os

            os._exit(9)

    outcomes = list(flipped(Kind("fragile", log, fragile), 0, range(3)))
    assert [one.ending for one in outcomes] == ["silent"] * 3
    assert log.read_bytes() == content


def test_what_a_killed_stage_leaves_behind_or_changes_is_seen(tmp_path: Path):
    """Else half a file, a lost line or another number would pass for the undisturbed results."""
    (tmp_path / "verdicts.jsonl").write_text('{"key": "a", "seconds": 1}\n{"key": "b", "seconds": 2}\n')
    expected = results_of(tmp_path)
    (tmp_path / "verdicts.jsonl").write_text('{"key": "b", "seconds": 3}\n{"key": "a", "seconds": 4}\n')
    assert difference(results_of(tmp_path), expected) == ""
    (tmp_path / ".manifest.json.part-7").write_text("{")
    assert "left behind" in difference(results_of(tmp_path), expected)
    (tmp_path / ".manifest.json.part-7").unlink()
    (tmp_path / "verdicts.jsonl").write_text('{"key": "a", "seconds": 1}\n')
    assert "differs" in difference(results_of(tmp_path), expected)


@pytest.mark.parametrize(
    ("change", "ending"),
    [
        ({}, "undisturbed"),
        ({"label": "benign"}, "silent"),
        ({"score": 0.4}, "silent"),
        ({"score": None}, "refused"),
        ({"label": None, "unscored": "refused", "score": None}, "refused"),
        ({"label": None, "unscored": "http_error", "score": None}, "silent"),
        ({"cost": 3e6}, "silent"),
    ],
)
def test_what_an_endpoint_did_to_a_verdict_is_seen(tmp_path: Path, change: dict[str, Any], ending: str):
    """A wrong label, another score, an outage with exit code 0: each would pass for a judge's answer."""
    verdict = {
        "label": "misbehavior",
        "unscored": None,
        "score": 0.9,
        "cost": 0.0,
        "detail": "",
        "answer": "",
    }
    scene = endpoints.Scene(Endpoint(""), tmp_path, tmp_path, {"sample": verdict}, 0)
    ran = Ran(0, "", 0)
    assert endpoints._judged(scene, "mode", ran, {"sample": verdict | change}, False)[0] == ending
    assert endpoints._judged(scene, "mode", ran, {}, False)[0] == "silent"
    traceback = Ran(1, "Traceback (most recent call last)\n", 0)
    assert endpoints._judged(scene, "mode", traceback, {}, False)[0] == "silent"
