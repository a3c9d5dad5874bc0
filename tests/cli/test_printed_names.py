"""Names out of files give a terminal no orders, whichever command prints them."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from command import monitorbench, process
from sealed import seal

from monitorbench.runs.directory import read_manifest

ORDERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
EVIL = "\x1b[31m\r\u202e"
QUICK = ("tracking=none", "score.resamples=100", "recommend.redraws=100")
ROLES = ("sample", "label", "score", "monitor", "group", "category")
NAMED = tuple(f"import.columns.{role}='{role[:3]}{EVIL}'" for role in ROLES)


def lines(file: Path, *rows: dict[str, object]) -> str:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return f"'{file.name}'"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files with hostile names, columns and cells; the runs of two monitors; a run that was edited."""
    folder = tmp_path_factory.mktemp("shared")
    rng = np.random.default_rng(0)
    (folder / "scores").mkdir()
    with (folder / "scores" / f"all{EVIL}.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(f"{role[:3]}{EVIL}" for role in ROLES)
        for i in range(240):
            for judge, good in (("strong", 0.5), ("weak", 0.05)):
                score = round(i % 2 * good + (1 - good) * rng.random(), 3)
                cell = f"kind{EVIL}{i % 4 // 2}"
                writer.writerow((f"s{EVIL}{i}", i % 2, score, judge + EVIL, f"q{EVIL}{i // 2}", cell))
    traffic = [{"sample_id": f"s{EVIL}{i}", "score": i / 300, "threshold": 0.5} for i in range(300)]
    texts = {"request": f"q{EVIL}", "response": "r", "group": f"g{EVIL}"}
    lines(folder / f"traffic{EVIL}.jsonl", *({**row, **texts} for row in traffic))
    outcome = {"seed": 0, "agent": f"a{EVIL}", "steps": 3, "tokens": 9}
    conditions = (("none", 0), (f"roll{EVIL}", 1))
    lines(
        folder / f"outcomes{EVIL}.jsonl",
        *(
            {"task": f"t{EVIL}{i}", "condition": c, "success": (i + j) % 3 > 0, "interventions": j, **outcome}
            for i in range(40)
            for c, j in conditions
        ),
    )
    own = {"request": "q", "category": "safety", "task": "qa", "split": "test", "subcategory": f"s{EVIL}"}
    both = [{**own, "id": f"x{EVIL}{i}", "response": f"r{i}", "label": i % 2 > 0} for i in range(4)]
    lines(folder / "own.jsonl", *({**row, "label": "benign"} for row in both))
    (folder / f"back{EVIL}.csv").write_text(f"item,batch,label\nx,batch-first,bad{EVIL}\n")
    lines(folder / "bad.jsonl", {**own, "response": "r", "label": f"x{EVIL}"})
    lines(folder / "verdicts.jsonl", {"sample_id": f"x{EVIL}", "label": f"bad{EVIL}"})
    done = monitorbench("import", "from=scores", *NAMED, "import.calibration_share=0.5", folder=folder)
    assert done.returncode == 0, done.stderr
    assert not ORDERS.search(done.stderr + done.stdout)
    assert "sample='sam\\x1b[31m\\r\\u202e" in done.stderr
    sent = monitorbench(
        "annotate", "dataset=jsonl", "dataset.name=own", "dataset.path=own.jsonl", folder=folder
    )
    assert (sent.returncode, ORDERS.search(sent.stderr + sent.stdout)) == (0, None), ascii(sent.stderr)
    calibrated = monitorbench("calibrate", f"run={run_of(folder, 'strong', 'calibration')}", folder=folder)
    assert calibrated.returncode == 0, calibrated.stderr
    frozen = ("gate", f"run={run_of(folder, 'strong', 'test')}", "operating_point=latest")
    done = monitorbench(*frozen, f"gate.traffic='traffic{EVIL}.jsonl'", folder=folder)
    assert done.returncode == 0, done.stderr
    edited = folder / "runs" / "evaluate" / f"shared{EVIL}-0123456789ab"
    edited.mkdir()
    content = dict(read_manifest(run_of(folder, "weak", "test")))
    judge = {**content["results"]["judge"], "name": f"judge{EVIL}", "prompt": f"direct{EVIL}"}
    seal(edited, {**content, "results": {**content["results"], "judge": judge, "data": f"data{EVIL}"}})
    return folder


def run_of(folder: Path, monitor: str, split: str) -> Path:
    (run,) = (folder / "runs" / "evaluate").glob(f"{monitor}_*-{split}-*")
    return run


COMMANDS: dict[str, tuple[str, int, str]] = {
    "choose": ("choose from=scores NAMED QUICK", 0, "strong"),
    "import, a column that is not there": ("import from=scores", 1, "there are 'sam"),
    "import, a row that is refused": ("import from=scores NAMED import.scale=[0,0.1]", 1, "line 8: sco"),
    "score": ("score run=STRONG QUICK", 0, "kind"),
    "report": ("report run=STRONG operating_point=latest QUICK", 0, "kind"),
    "recommend": ("recommend recommend.runs=[STRONG,WEAK,CALIBRATION,OTHER] QUICK", 0, "more benign"),
    "control": ("control control.test=[STRONG] control.calibration=[CALIBRATION] QUICK", 0, "strong"),
    "combine": (
        "combine combine.calibration=[CALIBRATION,OTHER] combine.test=[STRONG,WEAK] QUICK",
        0,
        "strong",
    ),
    "label": ("label label.scores=[TRAFFIC] label.budget=50", 0, "label these 50"),
    "label, its plan": ("label label.scores=[TRAFFIC] plan=true", 0, "of 300 samples"),
    "queue": ("queue label.scores=[TRAFFIC]", 0, "label these"),
    "annotate": ("annotate annotation.action=import run=SENT annotation.returned=[BACK]", 1, "\\x1b[31m"),
    "gate": ("gate gate.file=FROZEN gate.traffic=TRAFFIC", None, "traffic"),
    "pilot": ("pilot outcomes=OUTCOMES", 0, "inconclusive"),
    "pilot, a bad file": ("pilot outcomes=TRAFFIC", 1, "line 1"),
    "build": ("build DATA dataset.path=bad.jsonl", 1, "\\x1b[31m"),
    "evaluate": ("evaluate DATA monitor=recorded monitor.verdicts=verdicts.jsonl", 1, "\\x1b[31m"),
    "export": ("export DATA", 0, "chat"),
    "runs list": ("runs list", 0, "judge\\x1b[31m"),
    "runs show": ("runs show EDITED", 0, "data\\x1b[31m"),
    "runs compare": ("runs compare STRONG WEAK", 0, "strong"),
    "runs rm": ("runs rm EDITED --yes", 0, "removed"),
    "verify": ("verify", None, ""),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_sends_what_a_file_says_to_the_terminal(command: str, folder: Path):
    """If it failed: a file that somebody sent could colour, hide or rewrite lines of a terminal."""
    typed, code, said = COMMANDS[command]
    words = {
        "NAMED": NAMED,
        "DATA": ("dataset=jsonl", "dataset.name=own", "dataset.path=own.jsonl"),
        "QUICK": QUICK,
        "STRONG": run_of(folder, "strong", "test"),
        "WEAK": run_of(folder, "weak", "test"),
        "CALIBRATION": run_of(folder, "strong", "calibration"),
        "OTHER": run_of(folder, "weak", "calibration"),
        "FROZEN": next((folder / "runs" / "gate").glob("*/gate.json")),
        "EDITED": folder / "runs" / "evaluate" / f"shared{EVIL}-0123456789ab",
        "TRAFFIC": f"'traffic{EVIL}.jsonl'",
        "SENT": next((folder / "data").glob("annotation_*")),
        "BACK": f"'back{EVIL}.csv'",
        "OUTCOMES": f"'outcomes{EVIL}.jsonl'",
    }
    arguments: list[str] = []
    for word in typed.split():
        if isinstance(several := words.get(word), tuple):
            arguments += several
        else:
            arguments.append(re.sub("[A-Z]{4,}", lambda key: str(words.get(key[0], key[0])), word))
    done = monitorbench(*arguments, folder=folder)
    assert not ORDERS.search(done.stdout + done.stderr), ascii(done.stdout + done.stderr)
    assert "Traceback" not in done.stderr
    assert code in (None, done.returncode), ascii(done.stderr)
    assert said in done.stdout + done.stderr


@pytest.mark.parametrize("typed", ["runs list", f"pilot outcomes='outcomes{EVIL}.jsonl'"])
def test_tables_fit_a_terminal_that_knows_ascii_alone(typed: str, folder: Path):
    """If it failed: a dash in a table would end `runs list` with a traceback."""
    done = process(*typed.split(" "), folder=folder, environment={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert (done.stdout + done.stderr).isascii()
    assert not ORDERS.search(done.stdout + done.stderr)
    assert "Traceback" not in done.stderr
