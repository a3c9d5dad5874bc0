"""Who&When's marked mistakes: which message is meant, who wrote it, and what a critic is not told."""

import json

import pytest

from monitorbench.config.base import UserError
from monitorbench.intervention.recorded import marked_runs

GENERATED = [
    {"content": "Plan.", "role": "assistant", "name": "Planner"},
    {"content": "It ran.", "role": "user", "name": "Computer_terminal"},
]
HAND = [
    {"content": "Where?", "role": "human"},
    {"content": "Ask the web.", "role": "Orchestrator (-> WebSurfer)"},
    {"content": "", "role": "WebSurfer"},
]


def _log(history, step, agent, question="q1"):
    return {
        "is_correct": False,
        "question": "Where?",
        "question_ID": question,
        "ground_truth": "The secret answer",
        "history": history,
        "mistake_agent": agent,
        "mistake_step": step,
        "mistake_reason": "Because of the secret answer",
    }


@pytest.fixture
def loaded(archived):
    def load(*members):
        named = [(f"Who&When/{place}.json", log) for place, log in members]
        return marked_runs.marked_runs(archived("who_and_when", ("LICENSE", b"MIT"), *named))

    return load


def test_logs_of_both_kinds_are_read_in_order(loaded):
    """The marked step would point at another message, or its agent never match."""
    hand, second, tenth = loaded(
        ("Generated/10", _log(GENERATED, "0", "Planner")),
        ("Hand-Crafted/1", _log(HAND, "1", "Orchestrator")),
        ("Generated/2", _log(GENERATED, "1", "Computer_terminal", "q2")),
    )[::-1]
    assert [run.task for run in (tenth, second, hand)] == ["Generated/2", "Generated/10", "Hand-Crafted/1"]
    assert [step.agent for step in hand.steps] == ["human", "Orchestrator", "WebSurfer"]
    assert hand.steps[hand.mistake_step].agent == hand.mistake_agent == "Orchestrator"
    assert (hand.group, hand.subset, tenth.group) == ("q1", "Hand-Crafted", "q2")


def test_a_critic_is_not_told_the_answer(loaded):
    """A critic would score well because it has read what went wrong."""
    (run,) = loaded(("Generated/1", _log(GENERATED, "0", "Planner")))
    assert "secret" not in json.dumps(run)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"mistake_step": "2"}, "step 2 is marked, of 2"),
        ({"mistake_step": 1}, "'mistake_step' is no number"),
        ({"mistake_step": "-1"}, "'mistake_step' is no number"),
        ({"mistake_step": "²"}, "'mistake_step' is no number"),
        ({"history": "text"}, "'history' is no list"),
        ({"history": [{"name": "Planner", "content": None}]}, "message 0: .*'content' is no text"),
        ({"history": ["text"]}, "message 0: not an object"),
        ({"mistake_agent": None}, "'mistake_agent' is no text"),
        ({"question_ID": " "}, "'question_ID' is no text, or empty"),
    ],
)
def test_a_log_that_can_not_be_used_is_one_clear_line(loaded, change, what):
    """Gold would be missing, or point past the run's end."""
    with pytest.raises(UserError, match=rf"Who&When/Generated/7\.json.*{what}"):
        loaded(("Generated/7", _log(GENERATED, "0", "Planner") | change))


def test_an_archive_without_logs_is_refused(loaded):
    """A table over no runs would be printed."""
    with pytest.raises(UserError, match="holds no log"):
        loaded()
