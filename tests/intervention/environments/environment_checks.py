"""What every environment has to keep, whatever it is; the tests of each call these."""

from collections.abc import Sequence

from monitorbench.intervention.environments.tasks import Environment, Observation

STRANGE = (
    "",
    "xyzzy",
    "save",
    "quit",
    "take the moon",
    "look\nsave",
    "open door. quit",
    "é" * 500,
    "search[",
)
"""What a language model may send. None of it may end a game, leave it, or raise."""


def act(environment: Environment, observation: Observation, choice: int) -> Observation:
    """Take the admissible action, or the strange one, that a number stands for."""
    known = (*observation.admissible, *STRANGE)
    return environment.step(known[choice % len(known)])


def walked(
    environment: Environment, observation: Observation, choices: Sequence[int]
) -> list[tuple[Observation, str]]:
    """Every observation with the state behind it, along some choices."""
    seen = []
    for choice in choices:
        observation = act(environment, observation, choice)
        seen.append((observation, environment.state()))
    return seen


def check_restoring(
    environment: Environment, before: Sequence[int], after: Sequence[int], other: Sequence[int]
) -> None:
    """A snapshot taken anywhere leads back to the same state, from which the same actions do the same."""
    start = environment.reset()
    first = environment.state()
    observation = ([(start, first), *walked(environment, start, before)])[-1][0]
    snapshot, state = environment.snapshot(), environment.state()
    went_on = walked(environment, observation, after)
    assert environment.restore(snapshot) == observation
    assert environment.state() == state
    walked(environment, observation, other)
    assert environment.restore(snapshot) == observation
    assert environment.state() == state
    assert environment.snapshot().actions == snapshot.actions
    assert walked(environment, observation, after) == went_on
    assert environment.reset() == start
    assert environment.state() == first


def check_solution(environment: Environment, observation: Observation) -> int:
    """The solution leads from here to success, through actions that are admissible; how many they are."""
    actions = environment.solution()
    for action in actions:
        assert not observation.done
        assert not observation.admissible or action in observation.admissible
        observation = environment.step(action)
    assert observation.done
    assert observation.success
    assert environment.solution() == ()
    return len(actions)
