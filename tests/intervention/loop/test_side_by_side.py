"""Tasks of a pilot side by side, against an endpoint on this machine: the same runs, several at once.

And an outage of that endpoint, of which nothing becomes an outcome.
"""

import hashlib
import json
import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from corridor import ACTIONS, Corridor, FixedActions, open_corridors
from endpoint_server import Answer, EndpointServer, chat, serving

from monitorbench.config.base import Incomplete
from monitorbench.config.study import Study
from monitorbench.engines.endpoint.chat import CostLimit
from monitorbench.engines.endpoint.limits import RateLimit
from monitorbench.intervention.loop import schedule
from monitorbench.intervention.loop.episode import EpisodeRun, RunLimits, run_episode
from monitorbench.intervention.loop.live import LiveRuns, run_live
from monitorbench.intervention.loop.schedule import (
    Abandoned,
    Going,
    Stoppable,
    tasks_at_once,
    work_through,
)
from monitorbench.intervention.outcomes import read_outcomes
from monitorbench.intervention.transcripts import EPISODES, Episode
from monitorbench.runs.keyed_log import read_log

PATIENCE = 20.0
"""Seconds until a test that waits for other threads gives up."""


def drawn(text: str) -> float:
    """A number in [0, 1) that a text decides."""
    return hashlib.sha256(text.encode()).digest()[0] / 256


class Mistaken:
    """An agent and a critic that a prompt alone decides; nobody is answered before `together` have asked."""

    def __init__(self, together: int = 1) -> None:
        self._lock, self._met = threading.Lock(), threading.Barrier(together)
        self.asked, self.refused = Counter[str](), Counter[str]()
        self.fails = ("", 0)
        """Whose request is the first that is refused, "" for anybody's, and its number; 0 for none."""

    def __call__(self, text: str, before: int) -> Answer:
        who = "agent" if "What you may do now" in text else "critic"
        with self._lock:
            self.asked.update(("", who))
            is_early = self.asked[""] <= self._met.parties
            is_refused = 0 < self.fails[1] <= self.asked[self.fails[0]]
            self.refused[who] += is_refused
        if is_early:
            self._met.wait(PATIENCE)
        if is_refused:
            return Answer(b"{}", status=503)
        if who == "critic":
            p = 0.2 + 0.6 * drawn(text)
            return Answer(chat("no", logprobs={"yes": math.log(p), "no": math.log(1 - p)}))
        action = "forward" if drawn(text) < 0.8 else ACTIONS[int(drawn(text) * 1000) % len(ACTIONS)]
        lines = [line for line in text.splitlines() if line[1:3] == ". "]
        line = next((line for line in lines if line.endswith(f". {action}")), lines[-1])
        return Answer(chat(line[0], logprobs={line[0]: -0.1}))


Pilots = Callable[..., Study]


@pytest.fixture(scope="module")
def server() -> Iterator[EndpointServer]:
    """One endpoint for all pilots here, which answers in corridors."""
    with pytest.MonkeyPatch.context() as patch, serving(Mistaken()) as running:
        patch.setenv("NO_PROXY", "127.0.0.1")
        patch.setattr(schedule, "open_tasks", open_corridors)
        yield running


@pytest.fixture(scope="module")
def pilot(
    compose_study: Callable[..., Study], server: EndpointServer, tmp_path_factory: pytest.TempPathFactory
) -> Pilots:
    """The pilot with its runs in a folder of their own."""
    folder = tmp_path_factory.mktemp("pilots")

    def study(runs: str, *overrides: str) -> Study:
        return compose_study(
            "pilot",
            "environment=gsm8k",
            "agent=language_model",
            "engine@agent.engine=openai",
            f"agent.engine.base_url={server.base_url}",
            "agent.engine.max_retries=0",
            "agent.engine.concurrency=4",
            "engine=openai",
            f"engine.base_url={server.base_url}",
            "engine.max_retries=0",
            "engine.concurrency=4",
            "pilot.tasks=5",
            "pilot.validation_tasks=4",
            "pilot.step_budget=7",
            "pilot.seeds=1",
            "pilot.min_step=1",
            "pilot.tau=0.5",
            "pilot.conditions=[rollback,append,random,best_of_2]",
            f"paths.runs={folder / runs}",
            *overrides,
        )

    return study


@pytest.fixture(scope="module")
def alone(pilot: Pilots, server: EndpointServer) -> LiveRuns:
    """The pilot whose tasks go one after the other, undisturbed."""
    made = run_live(pilot("alone", "pilot.concurrency=1"))
    assert server.most_in_flight == 1
    return made


def episodes_of(found: LiveRuns) -> dict[str, Episode]:
    """The transcripts by key, without how long a run took."""
    logged = read_log(found.directory / EPISODES, Episode)
    return {episode.key: episode.model_copy(update={"seconds": 0.0}) for episode in logged}


def test_side_by_side_they_are_the_same_runs(pilot: Pilots, alone: LiveRuns, server: EndpointServer):
    """A pilot that is made faster must decide as the slow one does, in the same order of tasks."""
    server.script = Mistaken(together=4)
    found = run_live(pilot("together"))
    assert 2 <= server.most_in_flight <= 4
    assert found.outcomes == alone.outcomes
    assert read_outcomes(found.directory / "outcomes.jsonl") == alone.outcomes
    assert episodes_of(found) == episodes_of(alone)
    assert len({outcome.success for outcome in alone.outcomes}) == 2
    assert any(outcome.interventions for outcome in alone.outcomes)
    assert found.directory.name == alone.directory.name, "how many go at once decides no run"
    asked = len(server.asked)
    assert run_live(pilot("together")).outcomes == alone.outcomes
    assert len(server.asked) == asked


@pytest.mark.parametrize(
    "fails",
    [
        ("", 40),
        ("critic", 1),
        *(
            pytest.param(fails, marks=pytest.mark.slow)
            for fails in (("", 5), ("", 120), ("agent", 3), ("agent", 14), ("critic", 5))
        ),
    ],
    ids=lambda fails: f"{fails[0]}{fails[1]}",
)
def test_an_outage_ends_the_pilot_and_the_same_command_makes_the_rest(
    pilot: Pilots, alone: LiveRuns, server: EndpointServer, fails: tuple[str, int]
):
    """An HTTP 503 would count as a task that the agent failed, or runs that were at hand be made again."""
    server.script = broken = Mistaken()
    broken.fails = fails
    study = pilot(f"broken-{fails[0]}-{fails[1]}")
    who = fails[0] or "(agent|critic)"
    with pytest.raises(Incomplete, match=rf"^the {who} got no answer \(http_error: HTTP 503.*same command"):
        run_live(study)
    (directory,) = (study.paths.runs / "episodes").iterdir()
    assert json.loads((directory / "manifest.json").read_text())["status"] == "incomplete"
    kept = {
        log: read_log(directory / log, Episode)
        for log in ("runs_alone.jsonl", EPISODES)
        if (directory / log).exists()
    }
    assert not any(episode.reason for episodes in kept.values() for episode in episodes)
    server.script = mended = Mistaken()
    found = run_live(study)
    assert found.outcomes == alone.outcomes
    assert episodes_of(found) == episodes_of(alone)
    judged = (found.directory / "verdicts.jsonl").read_text().count("\n")
    answered = broken.asked["critic"] - broken.refused["critic"] + mended.asked["critic"]
    assert answered <= judged + 8, "verdicts are kept, but those in flight"
    for log, before in kept.items():
        assert read_log(found.directory / log, Episode)[: len(before)] == before, "nothing is made again"


def test_a_cost_cap_is_one_for_all_tasks(pilot: Pilots, alone: LiveRuns, server: EndpointServer):
    """A cap that each task had for itself would be paid as often as there are tasks."""
    server.script = Mistaken()
    prices = ("engine.prices={prompt: 1e6, cached_prompt: null, completion: 0}",)  # 10 a reply
    with pytest.raises(CostLimit, match=r"^max_cost=300 is spent"):
        run_live(pilot("capped", *prices, "engine.max_cost=300"))
    in_log = next(pilot("capped").paths.runs.rglob("verdicts.jsonl")).read_text().count("\n")
    assert 30 <= in_log < 30 + 4, "what is in flight when it is spent comes on top"
    assert run_live(pilot("capped", *prices)).outcomes == alone.outcomes


def test_a_window_of_requests_is_one_for_all_threads():
    """Threads that each had a window would send as many times the limit."""
    limit, begun = RateLimit(100, None), []

    def reserve() -> None:
        for _ in range(50):
            if not isinstance(limit.reserve(1, 0.0), float):
                begun.append(1)

    threads = [threading.Thread(target=reserve) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(begun) == 100


MODEL = ("agent=language_model", "engine@agent.engine=openai", "agent.engine.concurrency=4")


@pytest.mark.parametrize(
    ("overrides", "n"),
    [
        (MODEL, 4),
        ((*MODEL, "pilot.concurrency=2"), 2),
        ((*MODEL, "pilot.concurrency=9"), 4),
        ((*MODEL, "environment=alfworld"), 4),
        ((*MODEL, "environment=textworld"), 1),
        (("agent=language_model",), 1),
        (("engine.concurrency=3",), 3),
        (("engine=transformers",), 1),
        (("monitor=bag_of_words",), 1),
    ],
)
def test_as_many_as_engine_and_environment_allow(
    compose_study: Callable[..., Study], overrides: tuple[str, ...], n: int
):
    """TextWorld's interpreters live in this process, and a model of this process does one thing at a time."""
    of = compose_study("pilot", "environment=gsm8k", "engine=openai", *overrides)
    assert tasks_at_once(of.environment, of.agent, of.engine, of.monitor, of.pilot.concurrency) == n


def test_after_a_failure_the_runs_at_hand_are_kept_and_none_is_begun():
    """Seven other tasks' half-made runs were paid for."""
    begun, kept, failed = threading.Barrier(3), [], threading.Event()

    def task(number: int, going: Going) -> None:
        if number < 3:
            begun.wait(PATIENCE)
        if number == 1:
            failed.set()
            raise Incomplete("no answer")
        assert failed.wait(PATIENCE)
        assert going.ending.wait(PATIENCE)
        going.keep(partial(kept.append, number))

    with pytest.raises(Incomplete, match="no answer"):
        work_through([partial(task, number) for number in range(9)], 3, int, int)
    assert sorted(kept) == [0, 2]


def test_an_interrupt_ends_the_runs_at_hand():
    """Ctrl-C must not wait for eight runs to end, nor write into a log that is closed by then."""
    waiting, cancelled, kept = threading.Event(), threading.Event(), []
    limits = RunLimits(min_step=2, step_budget=10, max_interventions=1, warning="Look out.")

    class Waits(FixedActions):
        def begin(self, task: str, seed: int, attempt: int = 0):
            policy = super().begin(task, seed, attempt)

            def decide(situation):
                waiting.set()
                assert cancelled.wait(PATIENCE)
                return policy(situation)

            return decide

    ended: list[type[BaseException]] = []

    def plays(going: Going) -> None:
        try:
            episode = run_episode(Corridor(), Stoppable(Waits(), going), EpisodeRun("k", "none", 0), limits)
            going.keep(partial(kept.append, episode))
        except BaseException as error:
            ended.append(type(error))
            raise

    def interrupted() -> None:
        assert waiting.wait(PATIENCE)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work_through([lambda going: None, plays], 2, interrupted, cancelled.set)
    assert ended == [Abandoned]
    assert kept == []
