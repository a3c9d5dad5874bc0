"""The stages under attack: the real scripts in a forked child, and their results to compare.

The parent has imported what the scripts import, so that a child that runs one starts in milliseconds; what
runs in it is the script itself, with its own arguments and exit code.
"""

import json
import math
import os
import runpy
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from benchmarks.measuring import ROOT

_TIMES = frozenset(("seconds", "started", "peak_memory_mib", "machine", "checksum", "crc32"))
_CODE = frozenset(("git_commit", "git_dirty", "code.diff"))
"""Keys of a JSON file that differ from run to run: times, checksums over them, the code as it is now."""


class Stage(NamedTuple):
    """A command, what it leaves, and how much of a campaign is spent on it."""

    name: str
    script: str
    arguments: Callable[[Path], list[str]]
    """Arguments, given the folder that the command writes into."""
    share: float
    """The stage's share of the kills."""
    before: Callable[[Path], object] = lambda _: None
    """Puts into the folder what the command reads there."""


class Shared(NamedTuple):
    """Inputs of the stages, made once below `root`, by the stages themselves (`shared.make_shared`)."""

    root: Path
    evaluation: Path
    """A finished evaluation run that was not scored."""
    data: Path
    runs: Path
    weights: Path
    """A tiny model."""
    own_file: Path
    """Labelled samples, for `dataset=jsonl`."""
    outcomes: Path
    """A pilot's outcomes."""


def shared_below(root: Path, evaluation: str) -> Shared:
    """Name the files and folders below a root; `evaluation` is the name of the run that was not scored."""
    folders = (root / name for name in ("data", "runs", "weights", "own.jsonl", "outcomes.jsonl"))
    return Shared(root, root / "unscored" / evaluation, *folders)


STARTER = ("dataset.generated_pairs=8", "tracking=none")
JUDGED = (*STARTER, "dataset.test.pairs_per_cell=2", "dataset.calibration.pairs_per_cell=4")
LOCAL = ("monitor.context_tokens=2048", "engine.dtype=float32", "engine.device=cpu", "engine.batch_size=4")
TRAINED = (
    *("training.max_steps=3", "training.validate_every=1", "training.dtype=float32", "training.device=cpu"),
    *("training.learning_rate=1e-2", "training.max_tokens=512", "monitor.context_tokens=2048"),
    "dataset.validation.pairs_per_cell=1",
)
_GAME = ("environment.rooms=2", "environment.objects=2", "environment.quest_length=2")
PILOT = (
    *("tracking=none", "monitor=bag_of_words", "agent.error_rate=0.5", *_GAME, "pilot.step_budget=5"),
    *("pilot.tasks=3", "pilot.training_tasks=6", "pilot.validation_tasks=3", "pilot.statistics.draws=1000"),
)
"""Settings of the stages, small enough for seconds."""


def asked_at(base_url: str) -> list[str]:
    """Settings of an evaluation that asks an endpoint."""
    return ["engine=openai_api", f"engine.base_url='{base_url}'", "engine.model=m", "engine.concurrency=2"]


def stages(shared: Shared, base_url: str) -> dict[str, Stage]:
    """All stages that are killed, by name; at `base_url` an endpoint answers that behaves."""
    data, model = f"paths.data={shared.data}", f"monitor.path={shared.weights}"
    run = Path("evaluate") / shared.evaluation.name

    def build(*more: str) -> Callable[[Path], list[str]]:
        return lambda root: [f"paths.data={root}", "tracking=none", *more]

    def with_runs(*more: str) -> Callable[[Path], list[str]]:
        return lambda root: [f"paths.runs={root}", *more]

    own = build("dataset=jsonl", f"dataset.path={shared.own_file}")
    endpoint = with_runs(data, *JUDGED, *asked_at(base_url), "engine.api_key_env=null")
    score = lambda root: [f"paths.runs={root}", data, *JUDGED, f"run={root / run}"]  # noqa: E731
    games = lambda root: [f"paths.runs={root}", f"environment.games={root / 'games'}", *PILOT]  # noqa: E731
    outcomes = (f"outcomes={shared.outcomes}", "pilot.statistics.draws=1000", "tracking=none")
    rows = [
        Stage("build starter", "data_build/build.py", build("dataset.generated_pairs=8"), 0.06),
        Stage("build jsonl", "data_build/build.py", own, 0.18),
        Stage("evaluate local", "eval/evaluate.py", with_runs(data, model, *JUDGED, *LOCAL), 0.2),
        Stage("evaluate endpoint", "eval/evaluate.py", endpoint, 0.18),
        Stage(
            "score", "eval/score.py", score, 0.08, lambda root: shutil.copytree(shared.evaluation, root / run)
        ),
        Stage("train", "train/sft.py", with_runs(data, model, *STARTER, *TRAINED), 0.18),
        Stage("pilot live", "eval/pilot.py", games, 0.06),
        Stage("pilot outcomes", "eval/pilot.py", with_runs(*outcomes), 0.06),
    ]
    return {row.name: row for row in rows}


def warm_up() -> None:
    """Import what the scripts import, once for all children."""
    import textworld  # noqa: F401
    import trl  # noqa: F401

    import monitorbench.corpus.own_files
    import monitorbench.corpus.surface
    import monitorbench.engines.endpoint.chat
    import monitorbench.engines.transformers_engine
    import monitorbench.intervention.loop.live
    import monitorbench.intervention.run
    import monitorbench.judging.endpoint
    import monitorbench.judging.evaluate
    import monitorbench.judging.local
    import monitorbench.scoring.score
    import monitorbench.training.sft  # noqa: F401


class Ran(NamedTuple):
    """A command that ended: exit code (less than 0: the signal), what it said, its largest memory in MiB."""

    code: int
    said: str
    mib: float


def run_script(
    script: str,
    arguments: Sequence[str],
    said: Path,
    seconds: float,
    attach: Callable[[int], None] = lambda _: None,
) -> Ran:
    """Run a script in a forked child until it ends, or is aborted after so many seconds.

    What it prints goes to `said`, a file; `attach` gets the child's process id before the script begins.
    """
    said.write_bytes(b"")
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    if not (pid := os.fork()):
        _in_child(script, list(arguments), said, reading)
    os.close(reading)
    attach(pid)
    os.write(writing, b"!")
    os.close(writing)
    deadline = time.monotonic() + seconds
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return Ran(code, said.read_text(errors="replace"), usage.ru_maxrss / 1024)
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGABRT)
            deadline = math.inf
        time.sleep(0.005)


def finish(script: str, arguments: Sequence[str], said: Path) -> str:
    """Run a script to its end; its last line. Raises `RuntimeError` where it fails."""
    ran = run_script(script, arguments, said, 600)
    if ran.code:
        raise RuntimeError(f"{script} {' '.join(arguments)}: {ran.said[-1000:]}")
    return ran.said.strip().splitlines()[-1]


def error_line(said: str) -> str:
    """The line that says why a command was refused; its last line where there is none."""
    lines = said.strip().splitlines()
    return ([line for line in lines if line.startswith("error: ")] or lines or [""])[-1][:200]


def not_one_line(said: str) -> str:
    """Why what a failed command said is not one plain line; empty where it is."""
    if "Traceback (most recent call last)" in said:
        return f"a traceback: {(said.strip().splitlines() or [''])[-1][:200]}"
    if not any(line.startswith("error: ") for line in said.splitlines()):
        return f"no line that says why: {error_line(said)}"
    return ""


def _in_child(script: str, arguments: list[str], said: Path, ready: int) -> NoReturn:
    code: Any = 1
    try:
        stream = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for number in (1, 2):
            os.dup2(stream, number)
        os.close(stream)
        os.read(ready, 1)
        os.chdir(ROOT)
        sys.argv = [script, *arguments]
        runpy.run_path(str(ROOT / script), run_name="__main__")
        code = 0
    except SystemExit as error:
        code = error.code
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def results_of(root: Path) -> dict[str, Any]:
    """Read all that a stage left in a folder, without what differs between any two runs.

    By file: of JSON its value, of JSON lines the rows in any order, of everything else the bytes. A file that
    a finished run does not have is in it as well, so that nothing left behind goes unseen.
    """
    results: dict[str, Any] = {}
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        name, is_hidden = str(path.relative_to(root)), path.name.startswith(".")
        if path.name in ("config.json", "code.diff"):
            results[name] = None
        elif path.suffix not in (".json", ".jsonl") or is_hidden:
            results[name] = path.read_bytes()
        else:
            text = path.read_text(encoding="utf-8")
            lines = text.splitlines() if path.suffix == ".jsonl" else [text]
            results[name] = sorted((_without_times(_parsed(line), root) for line in lines), key=json.dumps)
    return results


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _without_times(value: Any, root: Path) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_times(one, root) for key, one in value.items() if key not in _TIMES | _CODE}
    if isinstance(value, list):
        return [_without_times(one, root) for one in value]
    return value.replace(str(root), "ROOT") if isinstance(value, str) else value


def difference(found: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """The first file that differs, and how; empty where none does."""
    for name in sorted({*found, *expected}):
        if name not in expected:
            return f"{name}: left behind"
        if name not in found:
            return f"{name}: missing"
        if not _alike(found[name], expected[name]):
            return f"{name}: differs"
    return ""


def _alike(found: Any, expected: Any) -> bool:
    """Whether two values are equal; a float to six digits: it moves with the batch that a sample was in."""
    if isinstance(found, float) and isinstance(expected, float):
        return math.isclose(found, expected, rel_tol=1e-6, abs_tol=1e-6)
    if isinstance(found, dict) and isinstance(expected, dict):
        return found.keys() == expected.keys() and all(_alike(found[key], expected[key]) for key in found)
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(_alike, found, expected))
    return bool(found == expected)
