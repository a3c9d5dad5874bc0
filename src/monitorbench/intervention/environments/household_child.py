"""The process behind `Household`: one game's engine, and one line of JSON for each question.

Not for people: it is started with `python -m`. A question is `[name, *arguments]`; the answer is
`{"value": …}`, or `{"error": …}` with what Python raised. It ends with its stdin.
"""

import json
import os
import signal
import sys
from typing import Any

from monitorbench.intervention.environments.household_engine import HouseholdEngine, Mark


class _Game:
    """The questions, by name."""

    def __init__(self) -> None:
        self._engine: HouseholdEngine
        self._marks: list[Mark] = []

    def open(self, game: str) -> dict[str, str]:
        """Compile the game; returns the names of its things by their ids."""
        self._engine = HouseholdEngine(json.loads(game))
        return self._engine.names

    def begin(self) -> list[Any]:
        return _observed(self._engine.begin())

    def step(self, action: str) -> list[Any]:
        return _observed(self._engine.step(action)[0])

    def mark(self) -> int:
        """The number of a mark of the current state."""
        self._marks.append(self._engine.mark())
        return len(self._marks) - 1

    def return_to(self, number: int) -> None:
        self._engine.return_to(self._marks[number])

    def fingerprint(self) -> str:
        return self._engine.fingerprint()

    def plan(self, seconds: float, known: list[str]) -> tuple[str, ...]:
        """A plan; this process dies of SIGPROF where that takes more CPU time."""
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            return self._engine.plan(known)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)


def main() -> None:
    """Answer until stdin ends."""
    with os.fdopen(os.dup(1), "w", encoding="ascii") as answers:
        # What the planner prints must not pass for an answer.
        os.dup2(2, 1)
        game = _Game()
        for line in sys.stdin:
            name, *arguments = json.loads(line)
            answer: dict[str, Any]
            try:
                answer = {"value": getattr(game, name)(*arguments)}
            except Exception as error:  # whatever it is: the owner makes it a run's reason
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), file=answers, flush=True)


def _observed(state: Any) -> list[Any]:
    """What was said, what is admissible, whether the game is won."""
    return [state["feedback"].strip(), list(state["admissible_commands"]), bool(state["won"])]


if __name__ == "__main__":
    main()
