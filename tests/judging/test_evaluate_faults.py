"""`eval/evaluate.py` as processes that are killed, starved and misled: no verdict lost, doubled or made up.

One process imports what the script needs and forks for every run, so that a run costs its own work and
not ten seconds of imports. The endpoint is real HTTP on this machine.
"""

import contextlib
import json
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "engines"))

from endpoint_server import Answer, EndpointServer, chat, serving
from small_models import tiny_model

from monitorbench.records import Label, UnscoredReason, Verdict
from monitorbench.runs.verdict_log import read_verdicts

ROOT = Path(__file__).resolve().parents[2]
FORKS = """
import importlib, json, os, resource, runpy, signal, sys, traceback
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
from monitorbench.engines import endpoint_limits
endpoint_limits.FIRST_BACKOFF_SECONDS = 0.005
for line in sys.stdin:
    asked = json.loads(line)
    if "wait" in asked:
        print(os.waitstatus_to_exitcode(os.waitpid(asked["wait"], 0)[1]), flush=True)
        continue
    if pid := os.fork():
        print(pid, flush=True)
        continue
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(asked[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    if asked["bytes"]:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (asked["bytes"], asked["bytes"]))
    if asked["dies_at_the_limit"]:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python would get an error instead
    sys.argv, code = ["eval/evaluate.py", *asked["overrides"]], 0
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as error:
        code = error.code or 0
    except BaseException:
        traceback.print_exc()
        code = 70
    sys.stdout.flush()
    os._exit(code)
"""


class Fork:
    """One run of `eval/evaluate.py` in a process of its own."""

    def __init__(self, forks: "Forks", pid: int, out: Path, err: Path) -> None:
        self._forks, self.pid, self._out, self._err = forks, pid, out, err

    def kill(self) -> None:
        """SIGKILL; only before `ends`."""
        os.kill(self.pid, signal.SIGKILL)

    def ends(self) -> int:
        """Wait for it: its exit code, negative for a signal."""
        code = int(self._forks.tell(wait=self.pid))
        self._forks.alive.remove(self.pid)
        return code

    @property
    def said(self) -> str:
        """Its stderr."""
        return self._err.read_text()

    @property
    def run(self) -> Path:
        """The run directory that it printed."""
        return Path(self._out.read_text().splitlines()[-1])


class Forks:
    """The process that forks."""

    def __init__(self, folder: Path, *modules: str) -> None:
        self._folder, self._number = folder, 0
        self.alive: list[int] = []
        command = [sys.executable, "-c", FORKS, json.dumps(modules)]
        # Without a commit no file of a run is as long as the logs here.
        environment = {**os.environ, "GIT_DIR": os.devnull, "NO_PROXY": "127.0.0.1", "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def tell(self, **what: Any) -> str:
        """Send one request; its answer."""
        assert self.process.stdin
        assert self.process.stdout
        print(json.dumps(what), file=self.process.stdin, flush=True)
        return self.process.stdout.readline()

    def start(self, *overrides: str, bytes: int = 0, dies_at_the_limit: bool = False) -> Fork:
        """Begin a run; no file of it may exceed `bytes`, where given."""
        self._number += 1
        out, err = (self._folder / f"{self._number}.{name}" for name in ("out", "err"))
        what = {"overrides": overrides, "bytes": bytes, "dies_at_the_limit": dies_at_the_limit}
        self.alive.append(int(self.tell(out=str(out), err=str(err), **what)))
        return Fork(self, self.alive[-1], out, err)


@contextmanager
def forking(folder: Path, *modules: str) -> Iterator[Forks]:
    forks = Forks(folder, *modules)
    try:
        yield forks
    finally:
        for pid in forks.alive:  # of a test that failed
            os.kill(pid, signal.SIGKILL)
        assert forks.process.stdin
        forks.process.stdin.close()
        forks.process.wait()


PAIRS = 14
N = 2 * PAIRS
WIDTH = 6000
"""Blanks behind an answer, so that a log outgrows a run's other files."""
WASTE = " \n" * 10_000
EVIDENCE = '{"misbehavior": "no", "category": "none", "severity": "none", "quotes": ["made up"]%s'


def direct(word: str, top: dict[str, float] | None = None) -> Answer:
    logprobs = {"yes": math.log(0.6), "no": math.log(0.3)} if top is None else top
    usage = {"prompt_tokens": 100, "completion_tokens": 1, "total_tokens": 101}
    return Answer(chat(word + " " * WIDTH, logprobs=[(word, logprobs)], usage=usage))


@dataclass(frozen=True)
class Case:
    """What the endpoint says of a sample, and what the verdict has to be."""

    answer: Answer
    label: Label | None = None
    unscored: UnscoredReason | None = None
    first: Answer | None = None
    """What it says when it is asked for the first time: a fault that passes."""


BAD, GOOD = Label.MISBEHAVIOR, Label.BENIGN
LATER = {"Retry-After": "0"}
CASES = (
    Case(direct("yes"), BAD),
    Case(direct("no"), GOOD, first=Answer(status=429)),
    Case(direct("yes"), BAD, first=Answer(status=429, headers=LATER)),
    Case(direct("no"), GOOD, first=Answer(status=500)),
    Case(direct("yes"), BAD, first=Answer(how="cut")),
    Case(direct("no"), GOOD, first=Answer(chat("yes"), how="half")),
    Case(direct("no", {"yes": math.nan, "no": -1.0}), GOOD),
    Case(Answer(chat(WASTE, finish="length")), None, UnscoredReason.EMPTY),
    Case(Answer(chat("hm " * 10_000, finish="length")), None, UnscoredReason.NO_LABEL),
    Case(Answer(chat("no_" * 10_000, finish="length")), None, UnscoredReason.NO_LABEL),
    Case(Answer(chat(None, refusal="I can't.")), None, UnscoredReason.REFUSED),
    Case(Answer(chat("I can't help with that.")), None, UnscoredReason.NO_LABEL),
    Case(Answer(b"<html>no</html>", content_type="text/html"), None, UnscoredReason.BAD_RESPONSE),
    Case(Answer(b'{"choices": [], "id": "x"}'), None, UnscoredReason.BAD_RESPONSE),
)
OF_EVIDENCE = (
    Case(Answer(chat(EVIDENCE % "}")), GOOD),
    Case(Answer(chat(EVIDENCE % WASTE, finish="length")), None, UnscoredReason.TRUNCATED),
    Case(Answer(chat("{" + WASTE, finish="length")), None, UnscoredReason.TRUNCATED),
    Case(
        Answer(chat('{"misbehavior": "no", "severity": ' + "1" * 9000 + "}")), None, UnscoredReason.NO_LABEL
    ),
    Case(Answer(chat("I can't help with that.")), None, UnscoredReason.NO_LABEL),
    Case(Answer(chat(WASTE, finish="length")), None, UnscoredReason.EMPTY),
    Case(Answer(chat(EVIDENCE % "}", finish="content_filter")), None, UnscoredReason.REFUSED),
)


def number_of(text: str) -> int:
    """A sample's, in a text that shows it."""
    return int(text.rpartition("statement ")[2].partition(" ")[0])


class Endpoint:
    """The server's script: a sample's case by its number, and what is to happen at the nth request."""

    def __init__(self, cases: tuple[Case, ...]) -> None:
        self.cases = cases
        self.restarts()

    def restarts(self, at: int = 0, then: Callable[[], None] = lambda: None) -> None:
        """Forget what was asked; at request number `at`, from 1, call `then` before the answer."""
        self.asked: list[int] = []
        self._times: Counter[int] = Counter()
        self._at, self._then, self._lock = at, then, threading.Lock()

    def __call__(self, text: str, before: int) -> Answer:
        with self._lock:
            number = number_of(text)
            self.asked.append(number)
            self._times[number] += 1
            is_first, is_the_one = self._times[number] == 1, len(self.asked) == self._at
        if is_the_one:
            self._then()
        time.sleep(0.002)
        case = self.cases[number % len(self.cases)]
        return case.first if case.first and is_first else case.answer


@dataclass
class World:
    """The endpoint, the data, and the process that forks."""

    forks: Forks
    server: EndpointServer
    data: Path
    folder: Path

    def start(self, runs: str, *overrides: str, **limits: Any) -> Fork:
        """Begin `eval/evaluate.py` on data and runs of its own."""
        return self.forks.start(
            "dataset=jsonl",
            f"dataset.path={self.data}",
            f"paths.data={self.folder / runs / 'data'}",
            f"paths.runs={self.folder / runs}",
            "engine=openai",
            f"engine.base_url={self.server.base_url}",
            "engine.concurrency=5",
            "engine.timeout_seconds=20",
            "engine.prices={prompt: 1.0, cached_prompt: null, completion: 2.0}",
            *overrides,
            **limits,
        )

    def log(self, runs: str) -> Path:
        """The verdict log of the only run there, which need not be there yet."""
        return next((self.folder / runs / "evaluate").glob("*/verdicts.jsonl"), self.folder / "none")

    def judged(self, runs: str) -> int:
        """How many verdicts there are."""
        log = self.log(runs)
        return len(read_verdicts(log)) if log.is_file() else 0


def write_data(path: Path) -> Path:
    """`PAIRS` pairs whose text has the sample's number."""
    rows = [
        {
            "request": f"Question {pair}?",
            "response": f"This is statement {2 * pair + side} of many.",
            "label": label,
            "category": "safety_permission",
            "task": "qa",
            "pair_id": f"pair {pair}",
            "split": "test",
        }
        for pair in range(PAIRS)
        for side, label in enumerate(("benign", "misbehavior"))
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("faults")
    modules = ("monitorbench.judging.evaluate", "monitorbench.engines.openai_engine")
    with serving(Endpoint(CASES)) as server, forking(folder, *modules) as forks:
        yield World(forks, server, write_data(folder / "data.jsonl"), folder)


@pytest.fixture
def endpoint(world: World) -> Endpoint:
    """The script, as if nothing had been asked."""
    script = world.server.script = Endpoint(CASES)
    return script


def outcome(run: Path, n: int = N) -> tuple[dict[str, Verdict], dict[str, Any]]:
    """Verdicts by sample and the manifest's results: all but what a clock says. No sample has two."""
    found = read_verdicts(run / "verdicts.jsonl")
    verdicts = {one.sample_id: one.model_copy(update={"seconds": 0.0}) for one in found}
    assert len(found) == len(verdicts) == n
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["status"] == "done"
    results = manifest["results"]
    return verdicts, results | {"cost": round(results.get("cost", 0), 9)}


@pytest.fixture(scope="module")
def undisturbed(world: World) -> tuple[dict[str, Verdict], dict[str, Any]]:
    """What comes of a run that nothing happens to."""
    world.server.script = Endpoint(CASES)
    calm = world.start("undisturbed")
    assert calm.ends() == 0, calm.said
    assert "Traceback" not in calm.said
    return outcome(calm.run)


def test_what_is_no_answer_is_unscored_with_its_reason(
    undisturbed: tuple[dict[str, Verdict], dict[str, Any]],
):
    """A refusal, or ten thousand tokens of nothing, that counts as benign is a false all-clear."""
    verdicts, results = undisturbed
    cases = [case for case in CASES for _ in range(N // len(CASES))]
    found = Counter((one.label, one.unscored) for one in verdicts.values())
    assert found == Counter((case.label, case.unscored) for case in cases)
    assert (results["n"], results["n_unscored"]) == (N, sum(case.label is None for case in cases))
    assert sum(one.score is None for one in verdicts.values() if one.label) == N // len(CASES), "NaN's"
    assert results["cost"] == pytest.approx(sum(one.cost for one in verdicts.values()))


def test_no_evidence_is_unscored_with_its_reason(world: World):
    """The same for answers in JSON, where the label stands long before the text breaks off."""
    world.server.script = Endpoint(OF_EVIDENCE)
    judging = world.start("evidence", "prompt=evidence")
    assert judging.ends() == 0, judging.said
    verdicts, _ = outcome(judging.run)
    found = Counter((one.label, one.unscored) for one in verdicts.values())
    assert found == Counter((case.label, case.unscored) for case in OF_EVIDENCE * (N // len(OF_EVIDENCE)))
    assert sum(len(one.evidence) for one in verdicts.values()) == found[GOOD, None], "made up, and counted"


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_again_and_again_it_ends_as_if_nothing_had_been(
    world: World, endpoint: Endpoint, undisturbed: tuple[dict[str, Verdict], dict[str, Any]], seed: int
):
    """A night's run on a shared machine is killed; a lost or doubled verdict shifts every rate."""
    draw, runs = random.Random(seed), f"killed-{seed}"

    def kill() -> None:
        time.sleep(draw.uniform(0, 0.02))
        with contextlib.suppress(ProcessLookupError):
            killed.kill()

    # While it reads its settings, builds the data, or asks; a fast machine is through with that in a second.
    endpoint.restarts(N // 2, kill)
    killed = world.start(runs)
    time.sleep(draw.uniform(0.3, 2.0))
    with contextlib.suppress(ProcessLookupError):
        killed.kill()
    assert killed.ends() == -signal.SIGKILL

    # At a request, while others are answered and appended.

    for _ in range(2):
        endpoint.restarts(draw.randint(1, max(1, (N - world.judged(runs)) // 2)), kill)
        killed = world.start(runs)
        assert killed.ends() == -signal.SIGKILL, killed.said

    # In the middle of a line, where the kernel ends the process after it wrote the first part.
    endpoint.restarts()
    held = world.log(runs).stat().st_size if world.judged(runs) else 0
    limit = max(held, 60_000) + draw.randint(100, WIDTH)
    torn = world.start(runs, bytes=limit, dies_at_the_limit=True)
    assert torn.ends() == -signal.SIGXFSZ, torn.said
    assert world.log(runs).stat().st_size == limit
    assert not world.log(runs).read_bytes().endswith(b"\n")

    judged = world.judged(runs)
    assert 0 < judged < N
    endpoint.restarts()
    last = world.start(runs)
    assert last.ends() == 0, last.said
    assert len(set(endpoint.asked)) == N - judged, "exactly what is owed"
    assert outcome(last.run) == undisturbed


def test_a_full_disk_stops_it_in_one_line_and_it_goes_on(
    world: World, endpoint: Endpoint, undisturbed: tuple[dict[str, Verdict], dict[str, Any]]
):
    """Disks fill up at night: what was paid for has to be there in the morning, and whole."""
    full = world.start("full", bytes=60_000)
    assert full.ends() == 1
    *_, line = full.said.splitlines()
    assert line.startswith("error: ")
    assert "Traceback" not in full.said
    assert f"{world.log('full')}: can't be written (File too large)" in line
    assert "run the same command again" in line
    assert world.log("full").read_bytes().endswith(b"\n")
    judged = world.judged("full")
    assert 0 < judged < N
    endpoint.restarts()
    rest = world.start("full")
    assert rest.ends() == 0, rest.said
    assert len(set(endpoint.asked)) == N - judged
    assert outcome(rest.run) == undisturbed


def test_two_at_once_pay_once_and_a_foreign_line_is_named(
    world: World, endpoint: Endpoint, undisturbed: tuple[dict[str, Verdict], dict[str, Any]]
):
    """The same command typed twice would pay twice; a log that something wrote into is not believed."""
    asked, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        asked.set()
        go_on.wait(60)

    endpoint.restarts(N // 2, hold)
    first = world.start("two")
    assert asked.wait(60)
    second = world.start("two")
    assert second.ends() == 1
    assert "another process is writing to it" in second.said.splitlines()[-1]
    times = {number: 2 if CASES[number % len(CASES)].first else 1 for number in endpoint.asked}
    assert all(n <= times[number] for number, n in Counter(endpoint.asked).items())
    first.kill()
    go_on.set()
    assert first.ends() == -signal.SIGKILL

    log = world.log("two")
    whole = log.read_bytes()
    number = whole.count(b"\n") + 1
    assert whole.endswith(b"\n")
    log.write_bytes(whole + b" 50%\r 51%\n")
    endpoint.restarts()
    misled = world.start("two")
    assert misled.ends() == 1
    assert (
        f"{log}:{number}: no Verdict as it was written, edited or damaged; remove the line"
        in misled.said.splitlines()[-1]
    )
    assert endpoint.asked == []
    log.write_bytes(whole)
    last = world.start("two")
    assert last.ends() == 0, last.said
    assert outcome(last.run) == undisturbed


def test_a_few_shot_prompt_without_examples_is_refused_in_one_line(world: World, endpoint: Endpoint):
    """Data without a training split can show no examples; nothing may be paid before that is said."""
    refused = world.start("few", "prompt=direct_few_shot")
    assert refused.ends() == 1
    assert refused.said.splitlines()[-1].startswith("error: dataset.train")
    assert "Traceback" not in refused.said
    assert endpoint.asked == []


@pytest.mark.slow
def test_a_model_in_process_is_killed_and_goes_on(tmp_path: Path):
    """The same without an endpoint: what a local model said before a kill stands, the rest is asked."""
    model = tiny_model(tmp_path / "model")
    data = write_data(tmp_path / "data.jsonl")
    modules = ("monitorbench.judging.evaluate", "monitorbench.engines.transformers_engine")

    with forking(tmp_path, *modules) as forks:

        def start(runs: str) -> Fork:
            return forks.start(
                "dataset=jsonl",
                f"dataset.path={data}",
                f"paths.data={tmp_path / 'data'}",
                f"paths.runs={tmp_path / runs}",
                f"monitor.path={model}",
                "dataset.test.pairs_per_cell=5",
                "prompt=evidence",
                "prompt.max_new_tokens=12",
                "engine=transformers",
                "engine.dtype=float32",
                "engine.device=cpu",
                "engine.batch_size=1",  # else the batches differ, and with them the last digits
            )

        calm = start("calm")
        assert calm.ends() == 0, calm.said
        for lines in (1, 5):
            killed = start("killed")
            while sum(log.read_bytes().count(b"\n") for log in tmp_path.glob("killed/*/*/*.jsonl")) < lines:
                time.sleep(0.001)
            killed.kill()
            assert killed.ends() == -signal.SIGKILL
        last = start("killed")
        assert last.ends() == 0, last.said
        assert outcome(last.run, 10) == outcome(calm.run, 10)
