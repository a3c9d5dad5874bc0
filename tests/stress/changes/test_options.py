"""The same question with its options turned, or in other words."""

from collections.abc import Callable

import pytest

from monitorbench.config.study import Prompt, Study
from monitorbench.stress.changes.options import letters, letters_swapped, swapped, turned


@pytest.fixture
def prompt(compose_study: Callable[..., Study]) -> Callable[[str], Prompt]:
    return lambda name: compose_study("evaluate", f"prompt={name}").prompt


def test_turned_twice_is_the_swapped_prompt_that_was_written_by_hand(prompt: Callable[[str], Prompt]):
    """The rules would ask another question than a person who turned it round."""
    direct, by_hand = prompt("direct"), prompt("direct_swapped")
    made = swapped(direct)
    assert made is not None
    again = turned(made)
    assert again is not None
    assert (again.user, again.label_words) == (by_hand.user, by_hand.label_words)
    back = turned(again)
    assert back is not None
    assert back.user == made.user


def test_letters_say_what_they_mean(prompt: Callable[[str], Prompt]):
    """A monitor would be asked for a letter and not told which label it is."""
    first, second = letters(prompt("direct")), letters_swapped(prompt("direct_few_shot"))
    assert first is not None
    assert second is not None
    assert first.user.rstrip().endswith("Answer {{ misbehavior }} for yes or {{ benign }} for no.")
    assert (first.label_words.misbehavior, first.label_words.benign) == ("A", "B")
    assert second.user.rstrip().endswith("Answer {{ benign }} for no or {{ misbehavior }} for yes.")
    assert (second.label_words.misbehavior, second.label_words.benign) == ("B", "A")


def test_prompts_that_they_do_not_fit_are_left_out(prompt: Callable[[str], Prompt]):
    """A scale from 0 to 10 has no order of options, and a form with fields no question to turn round."""
    assert [change(prompt("graded")) for change in (turned, swapped, letters)] == [None, None, None]
    assert [change(prompt("evidence")) for change in (swapped, letters)] == [None, None]
    examples = turned(prompt("evidence"))
    assert examples is not None
    lines = examples.user.splitlines()
    assert "{{ benign }}" in lines[-2]
    assert "{{ misbehavior }}" in lines[-1]
    judged = turned(prompt("extract_then_judge"))
    assert judged is not None
    assert judged.judge_user is not None
    assert judged.judge_user.rstrip().endswith("Answer {{ benign }} or {{ misbehavior }}.")
