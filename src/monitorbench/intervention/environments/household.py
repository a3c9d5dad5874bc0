"""A household game in a process of its own, so that what happens to the planner's library happens there.

Fast Downward is native code that has to be kept apart. It searches without an end that could be set, it ends
its process where memory runs out, and it is made to be loaded once: each copy that TextWorld loads
registers itself in one table of the process, and that table still points into a copy after it was unloaded
(`fast_downward.close_lib`), which is a segmentation fault at the third game or at exit.

Promises: whatever ends that process raises `HouseholdEnded` here, which says how; a plan gets a stated CPU
time, so that a busy machine changes no outcome; no such process outlives its owner for longer than a plan.
"""

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from monitorbench.intervention.environments.protocol import Observation

_CHILD = "monitorbench.intervention.environments.household_engine"


class HouseholdEnded(RuntimeError):
    """The game's process is gone; a new `Household` begins anew."""


class Household:
    """One game, compiled; see `HouseholdEngine` for what each method does.

    All of them raise `HouseholdEnded` where the process has ended, and `RuntimeError` with what the engine
    raised.
    """

    def __init__(self, game: str) -> None:
        """Start the process and compile the game, given as the JSON text of its file."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="ascii",
            # A terminal's interrupt is ours to handle.
            start_new_session=True,
        )
        try:
            self.names: dict[str, str] = self._ask("open", game)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return self._process.poll() is not None

    def begin(self) -> Observation:
        """Go to the start."""
        return _observation(self._ask("begin"))

    def step(self, action: str) -> Observation:
        """Take an action."""
        return _observation(self._ask("step", action))

    def mark(self) -> int:
        """A number for the current state, for `return_to`."""
        return int(self._ask("mark"))

    def return_to(self, mark: int) -> None:
        """Go back to a state."""
        self._ask("return_to", mark)

    def fingerprint(self) -> str:
        """A hash of what is true."""
        return str(self._ask("fingerprint"))

    def plan(self, seconds: float, known: Sequence[str] = ()) -> tuple[str, ...]:
        """Commands to the goal from here, () where there are none; the process ends where it takes more."""
        return tuple(self._ask("plan", seconds, list(known)))

    def close(self) -> None:
        """End the process; may be called twice."""
        self._process.kill()
        with contextlib.suppress(BrokenPipeError, ValueError):  # the pipes may be broken, or closed already
            self._process.communicate()

    def _ask(self, *question: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = ""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        if not line.endswith("\n"):
            raise HouseholdEnded(_how(self._process.wait(), *question))
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"the game's engine: {answer['error']}")
        return answer["value"]


def _how(code: int, name: str, *arguments: Any) -> str:
    if name == "plan" and code == -signal.SIGPROF:
        return f"the planner found nothing within {arguments[0]:g} s"
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return f"the planner's process ended ({how})"


def _observation(answer: list[Any]) -> Observation:
    text, admissible, won = answer
    return Observation(text, tuple(admissible), done=won, success=won)
