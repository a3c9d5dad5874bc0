"""An endpoint that is out of order: what it did not answer stays pending, and no outage is a result."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from endpoint_server import Answer, chat, serving
from forked_evaluate import Fork, World, forking, number_of, write_data

from monitorbench.judging.logged import FAILURES_IN_A_ROW, is_outage
from monitorbench.records import Label
from monitorbench.runs.keyed_log import VERDICTS, read_failures, read_verdicts

N = 100
FAULTS = {
    "500": (Answer(b"{}", status=500), "http_error"),
    "reset": (Answer(how="cut"), "http_error"),
    "html": (Answer(b"<html>busy</html>", content_type="text/html"), "bad_response"),
    "bad_json": (Answer(b'{"choices": ['), "bad_response"),
    "empty": (Answer(chat("")), "empty"),
}


class Endpoint:
    """Answers by the sample's number; `fault` is what the samples in `broken` get."""

    def __init__(self, fault: Answer, broken: Callable[[int], bool]) -> None:
        self.fault, self.broken = fault, broken
        self.asked: list[int] = []

    def __call__(self, text: str, before: int) -> Answer:
        number = number_of(text)
        self.asked.append(number)
        return self.fault if self.broken(number) else Answer(chat("yes" if number % 2 else "no"))

    def recovers(self) -> None:
        """Everything is answered from now on."""
        self.broken = lambda _: False
        self.asked.clear()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("outages")
    modules = ("monitorbench.judging.evaluate", "monitorbench.engines.endpoint.chat")
    with serving(Endpoint(Answer(), bool)) as server, forking(folder, *modules) as forks:
        yield World(forks, server, write_data(folder / "data.jsonl", N // 2), folder)


def manifest_of(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "manifest.json").read_text())
    return found


def last_line(fork: Fork) -> str:
    assert "Traceback" not in fork.said
    return fork.said.splitlines()[-1]


def all_right(run: Path) -> bool:
    """Whether every sample has its own verdict, once."""
    found = read_verdicts(run / VERDICTS)
    labels = [verdict.label for verdict in found]
    return len({verdict.sample_id for verdict in found}) == len(found) == N and (
        labels.count(Label.MISBEHAVIOR) == labels.count(Label.BENIGN) == N // 2
    )


@pytest.mark.parametrize("fault", FAULTS)
def test_an_outage_is_no_result_and_the_same_command_asks_only_the_rest(world: World, fault: str):
    """A night of HTTP 500 would end `done`, be scored as a judge without a word, and never be made good."""
    answer, reason = FAULTS[fault]
    endpoint = world.server.script = Endpoint(answer, lambda number: number % 4 == 0)
    settings = ("engine.max_retries=1", "engine.concurrency=5")
    broken = world.start(fault, *settings)
    assert broken.ends() == 1
    assert f"incomplete, 25 of 100 samples got no answer (25 {reason}" in last_line(broken)
    assert "the same command asks only these again" in last_line(broken)
    run = world.log(fault).parent
    assert manifest_of(run)["status"] == "incomplete"
    assert len(read_verdicts(run / VERDICTS)) == 75
    failed = read_failures(run / "failures.jsonl").values()
    assert {(one.label, one.unscored) for one in failed} == {(None, reason)}

    endpoint.recovers()
    again = world.start(fault, *settings)
    assert again.ends() == 0, again.said
    assert sorted(endpoint.asked) == list(range(0, N, 4))
    assert again.run == run
    assert all_right(run)
    assert manifest_of(run)["status"] == "done"
    assert manifest_of(run)["results"]["n_unscored"] == 0


def test_an_endpoint_that_answers_nothing_is_left_alone(world: World):
    """A hundred thousand requests to a server that is down take a night, and money where they are empty."""
    endpoint = world.server.script = Endpoint(Answer(b"{}", status=503), lambda _: True)
    settings = ("engine.max_retries=0", "engine.concurrency=1")
    broken = world.start("down", *settings)
    assert broken.ends() == 1
    assert len(endpoint.asked) <= FAILURES_IN_A_ROW + 2, "one may be on its way"
    assert f"{FAILURES_IN_A_ROW} requests in a row failed: no more are sent" in broken.said
    assert f"({N - FAILURES_IN_A_ROW} not_asked, {FAILURES_IN_A_ROW} http_error; the last one: HTTP 503" in (
        last_line(broken)
    )
    first = set(endpoint.asked[:FAILURES_IN_A_ROW])
    endpoint.asked.clear()
    still = world.start("down", *settings)
    assert still.ends() == 1
    assert not first & set(endpoint.asked), "those that failed would keep the others from being asked"
    endpoint.recovers()
    last = world.start("down", *settings)
    assert last.ends() == 0, last.said
    assert sorted(endpoint.asked) == list(range(N))
    assert all_right(last.run)


def test_answers_in_other_words_say_which_were_expected(world: World):
    """An endpoint that was asked for yes or no answers "misbehavior": "100 no_label" tells nobody why."""
    world.server.script = lambda text, before: Answer(chat(f"misbehavior\n\x1b[31m\u202e{'x' * 900}"))
    ended = world.start("words", "engine.max_retries=0")
    assert ended.ends() == 0, ended.said
    said = " ".join(ended.said.split())
    assert "100 of 100 unscored: 100 no_label" in said
    expected = (
        "no_label: expected “yes” or “no” (prompt.label_words) where the prompt asks for it; one answer: "
    )
    assert f"{expected}“misbehavior \\x1b[31m\\u202exxxx" in said
    assert said.count("x") < 200, "nobody's screen is full of it"


def test_one_lost_answer_in_a_hundred_is_asked_for_again(world: World):
    """A few lost answers must not cost the night, nor count as benign, nor be lost for good."""
    endpoint = world.server.script = Endpoint(Answer(b"{}", status=500), lambda number: number == 7)
    settings = ("engine.max_retries=0",)
    first = world.start("one", *settings)
    assert first.ends() == 0, first.said
    run, whole = first.run, (first.run / "manifest.json").read_bytes()
    assert "1 of 100 unscored: 1 http_error" in first.said
    assert manifest_of(run)["status"] == "done"
    assert manifest_of(run)["results"]["unscored"] == {"http_error": 1}

    endpoint.asked.clear()
    still = world.start("one", *settings)
    assert still.ends() == 0, still.said
    assert endpoint.asked == [7]
    assert manifest_of(run)["results"] == json.loads(whole)["results"]

    endpoint.fault = Answer(b"{}", status=401)
    locked_out = world.start("one", *settings)
    assert locked_out.ends() == 0, locked_out.said
    assert "the samples without an answer stay so: " in locked_out.said
    assert manifest_of(run)["results"] == json.loads(whole)["results"]

    endpoint.recovers()
    healed = world.start("one", *settings)
    assert healed.ends() == 0, healed.said
    assert endpoint.asked == [7]
    assert all_right(run)
    assert manifest_of(run)["results"]["n_unscored"] == 0
    endpoint.asked.clear()
    assert world.start("one", *settings).ends() == 0
    assert endpoint.asked == [], "nothing is left to ask"


def test_what_would_come_again_is_no_outage():
    """A pilot would stop at the same request for ever."""
    assert is_outage("http_error", "HTTP 503: busy")
    assert is_outage("timed_out", "no answer within 5 s")
    assert is_outage("bad_response", "body: Invalid JSON")
    assert not is_outage("http_error", "shortened by 3 tokens; HTTP 400: context too long")
    assert not is_outage("empty", "no text")
    assert not is_outage("refused", "HTTP 400: content_filter")
    assert not is_outage(None, "")
