"""Whole stages that are killed, find a full disk or read a flipped bit: right in the end, or one line.

Every stage here runs the real script in a forked child, struck at one of its changes of the disk. The stages
that run a model have tests of their own: `judging/test_evaluate_faults`, `training/test_fit_killed`,
`training/test_sft`, `corpus/paper/test_paper_rebuild`, `interop/imports/test_killed`.
"""

import errno
import json
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from command import Done, script

from monitorbench.config.base import UserError
from monitorbench.intervention.outcomes import read_outcomes
from monitorbench.report.pilot.flips import read_pilot
from monitorbench.runs.directory import checked_file, read_checked, read_finished, read_manifest
from monitorbench.runs.keyed_log import read_verdicts
from monitorbench.scoring.evaluations import read_evaluation
from monitorbench.scoring.operating_point import read_operating_point

ROOT = Path(__file__).resolve().parents[2]
OUTCOMES = ROOT / "examples" / "outcomes.jsonl"
ROWS = ("dataset=jsonl", "dataset.path=ROOT/own.jsonl")
STATISTICS = "pilot.statistics.draws=1000"
GAMES = (
    *("monitor=bag_of_words", "agent.error_rate=0.5", "environment.rooms=2", "environment.objects=2"),
    *("environment.quest_length=2", "environment.games=ROOT/games", "pilot.step_budget=5", "pilot.tasks=3"),
    *("pilot.training_tasks=6", "pilot.validation_tasks=3", STATISTICS),
)
STAGES = {
    "build": ("data_build/build.py", *ROWS),
    "import": ("eval/import.py", "from=ROOT/scores.csv", "import.calibration_share=0.5"),
    "score": ("eval/score.py", "run=test"),
    "calibrate": ("eval/calibrate.py", "run=calibration", "calibrate.alpha=0.2"),
    "pilot of outcomes": ("eval/pilot.py", f"outcomes={OUTCOMES}", STATISTICS),
    "pilot of games": ("eval/pilot.py", *GAMES),
}
CHANGES = ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "open")
_OF_THE_CLOCK = {"seconds", "started", "peak_memory_mib", "machine", "checksum", "crc32"}
_OF_THE_CODE = {"git_commit", "git_dirty"}


class Struck(NamedTuple):
    """How a stage's process ended."""

    code: int
    changes: int
    """Changes of the disk below the root, up to the end."""
    said: str


def run(stage: str, root: Path, strikes: Callable[[], object] = lambda: None, at: int = 0) -> Struck:
    """Run a stage in a forked child; `strikes` is called at its change of the disk number `at`, from 1."""
    path, *arguments = STAGES[stage]
    named = [argument.replace("ROOT", str(root)) for argument in arguments]
    if named[0].startswith("run="):
        folders = {read_manifest(one)["identity"]["split"]: one for one in root.glob("runs/evaluate/*")}
        named[0] = f"run={folders[named[0].removeprefix('run=')]}"
    settings = [*named, f"paths.data={root}/data", f"paths.runs={root}/runs", "tracking=none"]
    ended = root.with_name("ended.json")
    ended.write_text('["", 0]')
    if not (child := os.fork()):
        changes = [0]

        def watch(event: str, details: tuple[Any, ...]) -> None:
            if event not in CHANGES or str(root) not in str(details[0]):
                return
            if event == "open" and not details[2] & (os.O_WRONLY | os.O_RDWR):
                return
            changes[0] += 1
            if changes[0] == at:
                strikes()

        sys.addaudithook(watch)
        done: Done = script(path, *settings, folder=root)
        ended.write_text(json.dumps([done.stderr, changes[0]]))
        os._exit(done.returncode)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    said, n_changes = json.loads(ended.read_text())
    return Struck(code, n_changes, said)


def results_of(root: Path) -> dict[str, Any]:
    """All files that stages left, but for what differs between any two runs; JSON lines in any order."""
    found: dict[str, Any] = {}
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        name = str(path.relative_to(root))
        if path.name in ("config.json", "code.diff"):
            found[name] = None
        elif path.suffix in (".json", ".jsonl") and not path.name.startswith("."):
            text = path.read_text(encoding="utf-8")
            lines = text.splitlines() if path.suffix == ".jsonl" else [text]
            found[name] = sorted((_timeless(json.loads(line)) for line in lines), key=json.dumps)
        else:
            found[name] = path.read_bytes()
    return found


def _timeless(value: Any) -> Any:
    differing = _OF_THE_CLOCK | _OF_THE_CODE
    if isinstance(value, dict):
        return {key: _timeless(of_key) for key, of_key in value.items() if key not in differing}
    return [_timeless(entry) for entry in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the stages read: samples with labels, and somebody's scores, imported as two runs."""
    root, draw = tmp_path_factory.mktemp("inputs") / "root", random.Random(1)
    root.mkdir()
    rows, scores = [], ["id,label,score"]
    for number in range(60):
        text = " ".join(draw.choices("the report says our team has moved every box".split(), k=9))
        for label, more in (("benign", ""), ("misbehavior", " as the ledger shows")):
            cell = {"category": "safety_permission", "task": "qa", "pair_id": f"{number}", "label": label}
            rows.append({**cell, "request": "What is new?", "response": f"{text}{more}"})
            scores.append(f"t{number}{label[0]},{label},{draw.betavariate(3 if more else 2, 3):.3f}")
    (root / "own.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (root / "scores.csv").write_text("\n".join(scores) + "\n")
    assert run("import", root).code == 0
    return root


@pytest.fixture
def fresh(inputs: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Make the folder that a stage runs in: of one name each time, since some results name their place."""

    def made(stage: str) -> Path:
        root = tmp_path / "root"
        shutil.rmtree(root, ignore_errors=True)
        reads_runs = stage in ("score", "calibrate")
        shutil.copytree(inputs, root, ignore=None if reads_runs else shutil.ignore_patterns("data", "runs"))
        return root

    return made


def die() -> None:
    """End this process as a crash or a scheduler does."""
    os.kill(os.getpid(), signal.SIGKILL)


def full() -> None:
    """Refuse a change as a full disk does."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_that_was_struck_ends_as_if_nothing_had_been(fresh: Callable[[str], Path], stage: str):
    """A lost line, half a file or another number would pass for the results of an undisturbed run."""
    if "games" in stage:
        pytest.importorskip("textworld")
    whole = run(stage, root := fresh(stage))
    assert whole.code == 0, whole.said
    expected, draw = results_of(root), random.Random(stage)
    places = draw.sample(range(1, whole.changes), min(6, whole.changes - 1))
    for strikes, at in zip((die, full, die, full, die, full), sorted(places), strict=False):
        struck = run(stage, root := fresh(stage), strikes, at)
        if strikes is die:
            assert struck.code == -signal.SIGKILL
        elif struck.code:
            assert "Traceback" not in struck.said, at
            assert any(line.startswith("error: ") for line in struck.said.splitlines()), struck.said
        again = run(stage, root)
        assert again.code == 0, (strikes, at, again.said)
        found = results_of(root)
        assert found.keys() == expected.keys(), (strikes, at)
        assert [name for name in expected if found[name] != expected[name]] == [], (strikes, at)


READERS: dict[str, Callable[[Path], Any]] = {
    "evaluate/*/verdicts.jsonl": lambda file: (
        read_evaluation(file.parents[3] / "data", file.parent),  # which misses a line that is torn
        read_verdicts(file),
    ),
    "evaluate/*/metrics.json": lambda file: read_checked(file.parent, file.name),
    "baselines/*/metrics.json": lambda file: read_checked(file.parent, file.name),
    "calibrate/*/operating_point.json": lambda file: read_operating_point(file.parent),
    "pilot/*/outcomes.jsonl": lambda file: read_outcomes(checked_file(file.parent, file.name)),
    "pilot/*/decision.json": lambda file: read_pilot(
        file.parent, read_finished(file.parent), file.parents[2]
    ),
}


@pytest.fixture(scope="module")
def finished(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of all stages whose files a later stage reads."""
    root = Path(shutil.copytree(inputs, tmp_path_factory.mktemp("finished") / "root"))
    for stage in ("score", "calibrate", "pilot of outcomes"):
        ran = run(stage, root)
        assert ran.code == 0, ran.said
    return root


@pytest.mark.slow
@pytest.mark.parametrize("pattern", READERS)
def test_no_flipped_bit_of_what_a_later_stage_reads_passes(finished: Path, pattern: str):
    """A disk's error in a log or a number would be read as what was measured."""
    file = min((finished / "runs").glob(pattern))
    read, content, draw = READERS[pattern], file.read_bytes(), random.Random(pattern)
    expected, refused = repr(read(file)), 0
    for number in range(200):
        place = draw.choice((draw.randrange(len(content)), min(number, len(content) - 1), -1 - number % 50))
        changed = bytearray(content)
        changed[place] ^= 1 << draw.randrange(8)
        file.write_bytes(bytes(changed))
        os.utime(file, ns=(number, number + 1))
        try:
            found, why = repr(read(file)), ""
        except UserError as error:
            found, why = expected, str(error)
        assert (found, why.count("\n")) == (expected, 0), place
        refused += bool(why)
    file.write_bytes(content)
    assert refused > 100
