"""A reasoning model as a pilot's agent, behind an endpoint on this machine."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from corridor import open_corridors
from endpoint_server import Answer, EndpointServer, chat, serving

from monitorbench.config.study import Study
from monitorbench.intervention.loop import schedule
from monitorbench.intervention.loop.live import run_live
from monitorbench.intervention.transcripts import EPISODES, Episode
from monitorbench.runs.keyed_log import read_log

THOUGHTS = "Perhaps I should\nAction: drop key\nNo."
AHEAD = "Thought: On.\nAction: forward"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EndpointServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(schedule, "open_tasks", open_corridors)
    with serving(lambda *_: Answer(chat(AHEAD))) as running:
        yield running


@pytest.fixture
def episodes(
    compose_study: Callable[..., Study], server: EndpointServer, tmp_path: Path
) -> Callable[[], list[Episode]]:
    """Runs the pilot; a scored critic would need an endpoint of its own."""

    def run() -> list[Episode]:
        study = compose_study(
            "pilot",
            "environment=gsm8k",
            "monitor=bag_of_words",
            "agent=language_model",
            "agent.choose=text",
            "agent.max_new_tokens=40",
            'agent.model.reasoning={end:"</think>",then:"",max_tokens:500}',
            "engine@agent.engine=openai",
            f"agent.engine.base_url={server.base_url}",
            "agent.engine.max_retries=0",
            "agent.engine.concurrency=2",
            "pilot.tasks=2",
            "pilot.training_tasks=6",
            "pilot.validation_tasks=3",
            "pilot.conditions=[append]",
            f"paths.runs={tmp_path / 'runs'}",
        )
        return read_log(run_live(study).directory / EPISODES, Episode)

    return run


def sometimes_lost(body: Callable[[str], bytes]) -> Callable[[str, int], Answer]:
    """A bag of words is fitted to runs of both kinds: in every other corridor the key is dropped first."""
    lost = AHEAD.replace("forward", "drop key")

    def script(text: str, before: int) -> Answer:
        drops = "You are 0 steps in. You hold a key." in text and before % 2 == 0 and "steps in" in text
        return Answer(body(lost if drops and text.count("steps in") == 1 else AHEAD))

    return script


@pytest.mark.parametrize(
    "body",
    [
        lambda answer: chat(f"<think>{THOUGHTS}</think>\n{answer}"),
        lambda answer: chat(f"{THOUGHTS}</think>\n{answer}"),
        lambda answer: chat(answer, reasoning_content=THOUGHTS),
    ],
    ids=["think", "template", "reasoning_content"],
)
def test_thoughts_are_kept_and_no_action_is_read_from_them(
    episodes: Callable[[], list[Episode]], server: EndpointServer, body: Callable[[str], bytes]
):
    """An agent that dropped its key each time it thought of it would fail for the parser alone."""
    server.script = sometimes_lost(body)
    found = [step for episode in episodes() for step in episode.steps]
    assert {step.thinking for step in found} == {THOUGHTS}
    assert {step.thought for step in found} == {"On."}
    assert {step.action for step in found} <= {"forward", "drop key"}
    assert any(step.action == "forward" for step in found)
    assert server.asked[0].body["max_tokens"] == 540, "thoughts have tokens of their own"
    shown = [asked.text for asked in server.asked if "forward" in asked.text]
    assert shown
    assert not any("Perhaps I should" in text for text in shown), "earlier thoughts are not read again"


@pytest.mark.parametrize(
    "cut",
    [
        chat(f"<think>{THOUGHTS}", finish="length"),
        chat(THOUGHTS, finish="length"),
        chat(None, finish="length", reasoning_content=THOUGHTS),
    ],
    ids=["think", "template", "reasoning_content"],
)
def test_thoughts_that_are_cut_off_are_a_failed_run_with_a_reason(
    episodes: Callable[[], list[Episode]], server: EndpointServer, cut: bytes
):
    """Else `drop key`, which the model only thought of, would be what it did."""
    calm = sometimes_lost(chat)
    made = [0]

    def script(text: str, before: int) -> Answer:
        made[0] += "You are 3 steps in" in text
        return Answer(cut) if "You are 3 steps in" in text and made[0] > 9 else calm(text, before)

    server.script = script
    broken = [episode for episode in episodes() if episode.reason]
    assert broken
    for episode in broken:
        assert episode.reason.startswith("agent: ValueError: truncated: ")
        assert "reasoning and answer did not end in 1 tokens" in episode.reason
        assert not episode.success
        assert episode.steps[-1].action in ("forward", "drop key")
