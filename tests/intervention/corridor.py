"""A tiny world for the tests of runs: a corridor with a door at its end and one way to lose.

Deterministic, with a known solution, and an action (`drop key`) after which there is none.
"""

from collections.abc import Callable, Iterator

from monitorbench.config.pilot import Environments, ScriptedAgent
from monitorbench.intervention.environments.tasks import Environment, Observation
from monitorbench.intervention.loop.agents import ChosenAction, Policy, Situation

ACTIONS = ("back", "drop key", "forward", "wait")


class Corridor(Environment):
    """`length` steps forward to the door; success is to be there with the key."""

    def __init__(self, number: int = 0, length: int = 5) -> None:
        super().__init__(f"corridor/{number}", "Reach the door with the key.")
        self._length = length
        self._place, self._has_key = 0, True

    def _begin(self) -> Observation:
        self._place, self._has_key = 0, True
        return self._observed()

    def _take(self, action: str) -> Observation:
        if action == "forward":
            self._place += 1
        elif action == "back":
            self._place = max(0, self._place - 1)
        elif action == "drop key":
            self._has_key = False
        return self._observed()

    def state(self) -> str:
        return f"{self._place} {self._has_key}"

    def solution(self) -> tuple[str, ...]:
        return ("forward",) * (self._length - self._place) if self._has_key else ()

    def _observed(self) -> Observation:
        text = f"You are {self._place} steps in. " + (
            "You hold a key." if self._has_key else "Your hands are empty."
        )
        done = self._place == self._length
        return Observation(text, () if done else ACTIONS, done, done and self._has_key)


def open_corridors(
    settings: Environments, n_tasks: int, seed: int, split: str
) -> Iterator[Callable[[], Corridor]]:
    """In place of `environments.tasks.open_tasks`."""
    first = {"train": 0, "validation": 1000, "pilot": 2000}[split] + 10_000 * seed
    for number in range(first, first + n_tasks):
        yield lambda number=number: Corridor(number, 4 + number % 3)


def scripted(error_rate: float, persistence: float = 0.5, doubt: float = 0.3) -> ScriptedAgent:
    """Settings of a scripted agent."""
    return ScriptedAgent(
        kind="scripted", name="scripted", error_rate=error_rate, persistence=persistence, doubt=doubt
    )


class FixedActions:
    """An agent that takes the given actions, then goes forward; it keeps the situations it was in."""

    name = "fixed"

    def __init__(self, *actions: str, tokens: int = 7) -> None:
        self._actions, self._tokens = actions, tokens
        self.situations: list[Situation] = []

    def begin(self, task: str, seed: int, attempt: int = 0) -> Policy:
        self.situations = []

        def act(situation: Situation) -> ChosenAction:
            self.situations.append(situation)
            number = situation.decision
            return ChosenAction(
                self._actions[number] if number < len(self._actions) else "forward", "hm", self._tokens
            )

        return act

    def close(self) -> None:
        """Nothing to give back."""
