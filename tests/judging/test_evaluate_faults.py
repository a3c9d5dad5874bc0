"""`eval/evaluate.py` as processes that are killed, starved and misled: no verdict lost, doubled or made up.

One process imports what the script needs and forks for every run, so that a run costs its own work and
not ten seconds of imports. The endpoint is real HTTP on this machine.
"""

import contextlib
import json
import math
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from endpoint_server import Answer, chat, serving
from forked_evaluate import Fork, World, forking, number_of, write_data
from small_models import tiny_model

from monitorbench.records import TRANSPORT_FAILURES, Label, UnscoredReason, Verdict
from monitorbench.runs.keyed_log import FAILURES, VERDICTS, Failure, read_log, read_run, read_verdicts

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
    Case(direct("no", {"yes": math.nan, "no": -1.0}), None, UnscoredReason.BAD_RESPONSE),
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


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("faults")
    modules = ("monitorbench.judging.evaluate", "monitorbench.engines.endpoint.chat")
    with serving(Endpoint(CASES)) as server, forking(folder, *modules) as forks:
        yield World(forks, server, write_data(folder / "data.jsonl", PAIRS), folder, "engine.max_failed=0.3")


@pytest.fixture
def endpoint(world: World) -> Endpoint:
    """The script, as if nothing had been asked."""
    script = world.server.script = Endpoint(CASES)
    return script


def outcome(run: Path, n: int = N) -> tuple[dict[str, Verdict], dict[str, Any]]:
    """What each sample came to and the manifest's results: all but what a clock says. No sample has two.

    An empty answer that was asked for again was paid for again: what the earlier ones cost is taken off.
    """
    found, failed = read_verdicts(run / VERDICTS), read_log(run / FAILURES, Failure)
    of_samples = read_run(run)
    assert len({one.sample_id for one in found}) == len(found)
    assert len(of_samples) == n
    assert not {one.unscored for one in found} & TRANSPORT_FAILURES, "it would never be asked again"
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["status"] == "done"
    by_clock = {"forecast", "measured"}
    results = {name: value for name, value in manifest["results"].items() if name not in by_clock}
    last = {one.verdict.key: one for one in failed}
    again = sum(one.verdict.cost for one in failed) - sum(one.verdict.cost for one in last.values())
    verdicts = {name: one.model_copy(update={"seconds": 0.0}) for name, one in of_samples.items()}
    return verdicts, results | {"cost": round(results.get("cost", 0) - again, 9)}


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
    assert sum(one.score is None for one in verdicts.values() if one.label) == 0
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
    full = world.start("full", bytes=75_000)
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
    assert "its train split is empty: every row of its files names its split" in refused.said.splitlines()[-1]
    assert "Traceback" not in refused.said
    assert endpoint.asked == []


@pytest.mark.slow
def test_a_model_in_process_is_killed_and_goes_on(tmp_path: Path):
    """The same without an endpoint: what a local model said before a kill stands, the rest is asked."""
    model = tiny_model(tmp_path / "model")
    data = write_data(tmp_path / "data.jsonl", PAIRS)
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
