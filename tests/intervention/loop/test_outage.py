"""A pilot whose agent or critic is behind an endpoint that fails: nothing of an outage becomes an outcome."""

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from corridor import open_corridors
from endpoint_server import Answer, EndpointServer, chat, serving

from monitorbench.config.base import Incomplete
from monitorbench.config.study import Study
from monitorbench.intervention.loop import schedule
from monitorbench.intervention.loop.live import LiveRuns, run_live
from monitorbench.intervention.transcripts import EPISODES, Episode
from monitorbench.runs.keyed_log import read_log


class Endpoint:
    """An agent that goes forward and a critic that is never sure; `fails` says which of their requests do."""

    def __init__(self) -> None:
        self.fails: tuple[str, int] = ("", 0)
        self.asked = {"agent": 0, "critic": 0}

    def __call__(self, text: str, before: int) -> Answer:
        who = "agent" if "What you may do now" in text else "critic"
        self.asked[who] += 1
        if (who, self.asked[who]) == self.fails:
            return Answer(b"{}", status=503)
        if who == "critic":
            return Answer(chat("no", logprobs={"yes": math.log(0.3), "no": math.log(0.6)}))
        line = next(line for line in text.splitlines() if line.endswith(". forward"))
        return Answer(chat(line[0], logprobs={line[0]: -0.1}))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EndpointServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(schedule, "open_tasks", open_corridors)
    with serving(Endpoint()) as running:
        yield running


@pytest.fixture
def pilot(
    compose_study: Callable[..., Study], server: EndpointServer, tmp_path: Path
) -> Callable[[str], Study]:
    """The pilot with its runs in a folder of their own."""

    def study(runs: str) -> Study:
        return compose_study(
            "pilot",
            "agent=language_model",
            "engine@agent.engine=openai",
            f"agent.engine.base_url={server.base_url}",
            "agent.engine.max_retries=0",
            "engine=openai",
            f"engine.base_url={server.base_url}",
            "engine.max_retries=0",
            "pilot.tasks=2",
            "pilot.validation_tasks=2",
            "pilot.seeds=1",
            "pilot.conditions=[append]",
            f"paths.runs={tmp_path / runs}",
        )

    return study


def episodes_of(found: LiveRuns) -> list[Episode]:
    logged = read_log(found.directory / EPISODES, Episode)
    return [episode.model_copy(update={"seconds": 0.0}) for episode in logged]


@pytest.mark.parametrize(("who", "number"), [("agent", 3), ("agent", 14), ("critic", 1), ("critic", 5)])
def test_an_outage_ends_the_pilot_and_the_same_command_makes_the_rest(
    pilot: Callable[[str], Study], server: EndpointServer, who: str, number: int
):
    """An HTTP 503 would count as a task that the agent failed, or as a critic that saw nothing wrong."""
    server.script = calm = Endpoint()
    whole = run_live(pilot("calm"))
    assert all(outcome.success for outcome in whole.outcomes)

    server.script = endpoint = Endpoint()
    endpoint.fails = (who, number)
    study = pilot("broken")
    with pytest.raises(Incomplete, match=rf"^the {who} got no answer \(http_error: HTTP 503") as caught:
        run_live(study)
    assert "the same command" in str(caught.value)
    (directory,) = (study.paths.runs / "episodes").iterdir()
    assert json.loads((directory / "manifest.json").read_text())["status"] == "incomplete"
    for log in directory.glob("*.jsonl"):
        if log.name in (EPISODES, "runs_alone.jsonl"):
            assert not any(episode.reason for episode in read_log(log, Episode))

    found = run_live(study)
    assert found.outcomes == whole.outcomes
    assert episodes_of(found) == episodes_of(whole)
    assert not any(outcome.reason for outcome in found.outcomes)
    assert endpoint.asked["critic"] <= calm.asked["critic"] + 1, "its verdicts are kept"
