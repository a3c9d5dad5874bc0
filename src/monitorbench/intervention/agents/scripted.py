"""`agent=scripted`: the environment's own solution with mistakes at stated rates.

A decision is a *mistake* (an admissible action other than the solution's next one, each as likely) with
chance `error_rate`. After a mistake the next decision is one as well with chance `persistence`, without a
fresh draw: the agent is on a wrong track, as models that go round in circles are.

How it takes an intervention, whichever it is: it leaves the wrong track and draws afresh, and what it was
told leaves it in doubt, so that this one decision is a mistake at the larger of `doubt` and `error_rate`.
An agent that is mostly on a wrong track gains by that; one that seldom is loses. ROLLBACK besides costs the
undone action's step, and takes back what it did, good or bad; it may choose the undone action again.

Where the solution is unknown or out of reach every admissible action is as likely. A world that lists no
actions can only be followed without mistakes; any other rate is refused.
"""

import random
from collections.abc import Sequence

from monitorbench.config.base import ConfigError
from monitorbench.config.pilot import ScriptedAgent
from monitorbench.intervention.agents.protocol import ChosenAction, Policy, Situation


class Scripted:
    """An `Agent`. Random numbers: three a decision, from task, seed, attempt and the decision's number."""

    def __init__(self, settings: ScriptedAgent) -> None:
        self.name = settings.name
        self._settings = settings

    def begin(self, task: str, seed: int, attempt: int = 0) -> Policy:
        """See `Agent.begin`."""
        settings = self._settings
        astray = False

        def act(situation: Situation) -> ChosenAction:
            nonlocal astray
            draw = random.Random(f"scripted/{task}/{seed}/{attempt}/{situation.decision}")
            error, persists, which = draw.random(), draw.random(), draw.random()
            rate = settings.error_rate
            if situation.intervened:
                astray, rate = False, max(rate, settings.doubt)
            plan = situation.plan()
            right = plan[:1]
            others = [action for action in situation.admissible if action not in right]
            if right and not situation.admissible and rate > 0:
                raise ConfigError(
                    "agent=scripted: this world lists no actions, so there is no mistake to draw; expected "
                    "agent.error_rate=0 agent.doubt=0, or a world of games"
                )
            astray = (astray and persists < settings.persistence) or error < rate
            if right and not (astray and others):
                return ChosenAction(right[0])
            if not others:
                raise RuntimeError("no solution is known from here, and there is nothing to choose from")
            return ChosenAction(_pick(others, which))

        return act

    def close(self) -> None:
        """Nothing to give back."""


def _pick(actions: Sequence[str], number: float) -> str:
    # By name, so that the choice does not hang on the order in which an engine lists them.
    return sorted(actions)[int(number * len(actions))]
