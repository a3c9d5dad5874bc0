"""Single flipped bits in every kind of file that a stage reads back, and what its reader makes of them.

There is a file of each kind below a copy of what `shared` made, with the function that the next stage reads
it by. `undisturbed`: the function gives what the file as written gives. `refused`: a `UserError`, or
`ConfigError`, of one line. `silent`: other content is accepted, any other exception leaves the reader, or the
process dies of it.
"""

import dataclasses
import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pydantic import BaseModel

from benchmarks.faults import Ending, Outcome
from benchmarks.faults.stages import JUDGED, LOCAL, PILOT, Shared, shared_below
from benchmarks.judged import composed
from monitorbench.config.base import ConfigError, UserError
from monitorbench.corpus.columns import read_columns
from monitorbench.corpus.elicited import Elicited
from monitorbench.corpus.store import read_split
from monitorbench.intervention.critic import read_critic_data
from monitorbench.intervention.loop.live import run_live
from monitorbench.judging.evaluate import planned_evaluation, training_facts
from monitorbench.prompts.wording import published_prompt
from monitorbench.records import Split
from monitorbench.report.pilot.flips import read_pilot
from monitorbench.report.write import report
from monitorbench.runs.directory import read_finished
from monitorbench.runs.keyed_log import open_log, read_log
from monitorbench.runs.verdict_log import open_verdict_log, read_verdicts
from monitorbench.scoring.baselines import baselines_of
from monitorbench.scoring.calibrate import read_operating_point
from monitorbench.scoring.evaluations import read_evaluation
from monitorbench.training.publish import model_card

_ENDS_BYTES = 4096
"""A file's head and foot, where formats keep what everything else hangs on, get half of the flips."""
_SECONDS = 30
_CLOCK_NS = 10**9


class Kind(NamedTuple):
    """A kind of file: one of it, and the reader of the next stage."""

    name: str
    file: Path
    read: Callable[[], Any]


class Flip(NamedTuple):
    """A bit of a file."""

    byte: int
    bit: int


def flipped(kind: Kind, seed: int, numbers: Sequence[int]) -> Iterator[Outcome]:
    """Flip a bit for each number, read, and put the file back; in children, which a reader may take down."""
    content = kind.file.read_bytes()
    left = list(numbers)
    try:
        while left:
            found = list(_in_child(kind, content, seed, left))
            yield from found
            left = left[len(found) :]
            if left:  # what the child died of
                yield _outcome(kind, content, seed, left.pop(0), "silent", "the process that read it died")
    finally:
        _write(kind.file, content, 0)


def flip_of(content: bytes, seed: int, name: str, number: int) -> Flip:
    """The bit that is flipped: in the head or foot of the file as often as anywhere."""
    draw = random.Random(f"{seed} flip {name} {number}")
    size = len(content)
    anywhere = draw.randrange(size)
    near = draw.randrange(min(size, _ENDS_BYTES))
    return Flip(draw.choice((anywhere, anywhere, near, size - 1 - near)), draw.randrange(8))


def _in_child(kind: Kind, content: bytes, seed: int, numbers: Sequence[int]) -> Iterator[Outcome]:
    """The outcomes of as many flips as a forked child survives."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        with os.fdopen(writing, "w", encoding="utf-8") as pipe:
            _silence()
            expected = plain(kind.read())
            for number in numbers:
                signal.alarm(_SECONDS)
                result, reason = _read_flipped(
                    kind, content, flip_of(content, seed, kind.name, number), expected
                )
                pipe.write(f"{number}\t{result}\t{' '.join(reason.split())[:200]}\n")
                pipe.flush()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        for line in pipe:
            name, ending, why = line.rstrip("\n").split("\t")
            yield _outcome(kind, content, seed, int(name), ending, why)
    os.waitpid(pid, 0)


def _silence() -> None:
    """Send a reader's own output nowhere: it is no part of a table."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nowhere, number)


def _outcome(kind: Kind, content: bytes, seed: int, number: int, ending: Any, why: str) -> Outcome:
    where = flip_of(content, seed, kind.name, number)
    return Outcome(
        f"flip {kind.name}", f"{kind.name}:{number}", ending, f"{why} (byte {where.byte}, bit {where.bit})"
    )


def _read_flipped(kind: Kind, content: bytes, flip: Flip, expected: Any) -> tuple[Ending, str]:
    changed = bytearray(content)
    changed[flip.byte] ^= 1 << flip.bit
    _write(kind.file, bytes(changed), flip.byte * 8 + flip.bit + 1)
    try:
        found = plain(kind.read())
    except (UserError, ConfigError) as error:
        return ("silent", f"more than one line: {error}") if "\n" in str(error) else ("refused", str(error))
    except Exception as error:  # whatever else it is, a person would get a traceback
        return "silent", f"a traceback: {type(error).__name__}: {error}"
    return ("undisturbed", "") if found == expected else ("silent", "other content is accepted")


def _write(file: Path, content: bytes, tick: int) -> None:
    """Replace a file, with a time of its own: whoever remembers it by its time has to see that it changed."""
    part = file.with_name(f".{file.name}.flipped")
    part.write_bytes(content)
    stamp = file.stat().st_mtime_ns + _CLOCK_NS + tick
    os.utime(part, ns=(stamp, stamp))
    part.replace(file)


def plain(value: Any) -> Any:
    """A value as lists, mappings and bytes, to be compared with `==` whatever it is made of."""
    match value:
        case BaseModel():
            return value.model_dump_json()
        case Mapping():
            return {key: plain(one) for key, one in value.items()}
        case np.ndarray():
            return value.dtype.str, value.shape, value.tobytes()
        case pa.Array() | pa.ChunkedArray():
            return value.to_pylist()
        case list() | tuple():
            return [plain(one) for one in value]
        case float():
            return repr(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [plain(getattr(value, field.name)) for field in dataclasses.fields(value)]
    return value


def copied(shared: Shared, root: Path) -> Shared:
    """A copy of all that was made, in a folder of its own."""
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(shared.root, root)
    return shared_below(root, shared.evaluation.name)


def kinds(shared: Shared) -> list[Kind]:
    """All kinds, each with the reader of the stage that reads it next."""
    runs, data = shared.runs, _only(shared.data, "starter-*")
    base = _only(runs / "evaluate", f"{shared.evaluation.name}")
    trained = _only(runs / "train", "*")
    pilot, episodes = _only(runs / "pilot", "*"), _only(runs / "episodes", "*")
    benchmark, calibration = _only(shared.data, "automonitor_bench-*"), _only(runs / "calibrate", "*")
    baselines = _only(runs / "baselines", "*")
    paths = [f"paths.data={shared.data}", f"paths.runs={runs}", f"monitor.path={shared.weights}"]
    paths += ["tracking=none", *JUDGED]
    judging = composed("evaluate", [*paths, *LOCAL, f"monitor.adapter={trained}"])
    untuned = composed("evaluate", [*paths, *LOCAL])
    reporting, scoring = (composed(stage, [*paths, f"run={base}"]) for stage in ("report", "score"))
    piloting = composed("pilot", [*paths[:2], *PILOT])
    answers = _answers(shared.root / "answers" / "answers.jsonl")

    def page() -> bytes:
        report(reporting)
        return (base / "report.html").read_bytes()

    def stopped() -> Any:
        with open_verdict_log(shared.evaluation / "verdicts.jsonl") as log:
            return log.entries

    named = planned_evaluation(untuned, data).run.path.name

    def weights() -> str:
        found = planned_evaluation(untuned, data).run.path.name
        if found != named:  # nothing of the first one's is used: its verdicts, or adapters trained on it
            raise UserError("another model by its hash")
        return found

    def card() -> Any:
        return [
            training_facts(judging.monitor, judging.engine),
            model_card(trained, merged=False, evaluations=()),
        ]

    def adapter() -> Any:
        return planned_evaluation(judging, data).run.path.name

    def decision() -> Any:
        return read_pilot(pilot, read_finished(pilot), runs)

    return [
        Kind(
            "split (Parquet)",
            data / "test" / "part-00000.parquet",
            lambda: [read_split(data, Split.TEST), read_columns(data, Split.TEST)],
        ),
        Kind("data manifest", data / "manifest.json", lambda: read_finished(data)),
        Kind(
            "published prompt",
            benchmark / "prompts" / "direct.txt",
            lambda: published_prompt(benchmark, judging.prompt),
        ),
        Kind(
            "verdicts",
            base / "verdicts.jsonl",
            lambda: [read_evaluation(shared.data, base), read_verdicts(base / "verdicts.jsonl")],
        ),
        Kind("verdicts of a stopped run", shared.evaluation / "verdicts.jsonl", _pending(stopped)),
        Kind("evaluation manifest", base / "manifest.json", lambda: read_evaluation(shared.data, base)),
        Kind("metrics", base / "metrics.json", page),
        Kind("baselines", baselines / "metrics.json", lambda: baselines_of(scoring, data)),
        Kind(
            "operating point", calibration / "operating_point.json", lambda: read_operating_point(calibration)
        ),
        Kind("answers", answers, _pending(lambda: {one.key: one for one in read_log(answers, Elicited)})),
        Kind("pilot's episodes", episodes / "episodes.jsonl", lambda: run_live(piloting).outcomes),
        Kind("pilot's outcomes", pilot / "outcomes.jsonl", decision),
        Kind("pilot's decision", pilot / "decision.json", decision),
        Kind(
            "critic data",
            episodes / "critic_data.jsonl",
            lambda: read_critic_data(episodes / "critic_data.jsonl"),
        ),
        Kind("adapter's weights", trained / "adapter" / "adapter_model.safetensors", adapter),
        Kind("adapter's settings", trained / "adapter" / "adapter_config.json", adapter),
        Kind("adapter's base", trained / "adapter" / "base.json", adapter),
        Kind("training manifest", trained / "manifest.json", card),
        Kind("training settings", trained / "config.json", card),
        Kind("learning curve", trained / "learning_curve.json", card),
        Kind("model's weights", shared.weights / "model.safetensors", weights),
    ]


def _pending(entries: Callable[[], Any]) -> Callable[[], Any]:
    """Read a log that a run continues: a line that is gone is asked again, and so is no silent loss."""
    n = len(entries())

    def read() -> Any:
        found = entries()
        if len(found) < n:
            raise UserError(f"{n - len(found)} lines are pending again")
        return found

    return read


def _answers(file: Path) -> Path:
    with open_log(file, Elicited) as log:
        for number in range(50):
            log.append(
                Elicited(
                    key=f"{number:024x}",
                    request=f"{number:016x}",
                    text=f"The answer is {number}.",
                    finish_reason="stop",
                    prompt_tokens=20,
                    completion_tokens=6,
                    seconds=0.25,
                )
            )
    return file


def _only(folder: Path, pattern: str) -> Path:
    """The one path of that pattern."""
    (found,) = folder.glob(pattern)
    return found
