"""One run of one agent in one environment, with or without a monitor in the loop, and the best of two runs.

Promises: at most `step_budget` actions, undone ones included, and at most `max_interventions`
interventions, none before `min_step` and none once the run is over; an agent or a critic that fails, and an
environment that breaks or does not come back exactly from a rollback, end the run as a failure with a reason;
an interrupt, an outage of an endpoint (`Incomplete`) and a fault that a person has to fix (`UserError`) end
the pilot instead, and the run is not counted.

In the control `best_of_2` nobody intervenes: the critic keeps the run it gives less P(fail). It shows how
much of an intervention's gain a second try alone would bring; its steps and tokens are those of both runs,
and the first is the baseline's own.
"""

import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.pilot import Pilot
from monitorbench.intervention.environments.tasks import Environment, Observation
from monitorbench.intervention.loop.agents import Agent, AgentTurn, Mechanism, Policy, Situation
from monitorbench.intervention.loop.mechanisms import JudgeRun, Moment, Trigger, certain
from monitorbench.intervention.transcripts import Episode, Step, sample_of_run, storable
from monitorbench.records import Sample


class RunLimits(NamedTuple):
    """How many steps and interventions a run may have, and from which step on (2602.03338, section 3)."""

    min_step: int
    step_budget: int
    max_interventions: int
    warning: str


def run_limits(pilot: Pilot) -> RunLimits:
    """The limits that a pilot's settings state."""
    return RunLimits(pilot.min_step, pilot.step_budget, pilot.max_interventions, pilot.warning)


class EpisodeRun(NamedTuple):
    """A run that is to be made."""

    key: str
    """Names the run in the log."""
    condition: str
    seed: int
    attempt: int = 0
    """1 for the second run of best-of-2."""


def episode_key(*what: Any) -> str:
    """Hash what decides a run: 24 hex digits."""
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:24]


def run_episode(
    environment: Environment,
    agent: Agent,
    run: EpisodeRun,
    limits: RunLimits,
    trigger: Trigger | None = None,
    mechanism: Mechanism = "rollback",
) -> Episode:
    """Run `agent` until the task is done or the budget is spent; `trigger` None: nobody intervenes.

    Raises `UserError`, `ConfigError` and `KeyboardInterrupt` only.
    """
    began = time.perf_counter()
    loop = _Loop(environment, agent, run, limits, trigger, mechanism)
    reason = ""
    try:
        loop.play()
    except _BrokenDown as broken:
        reason = str(broken)
    return Episode(
        key=run.key,
        task=environment.task,
        seed=run.seed,
        agent=agent.name,
        condition=run.condition,
        goal=storable(environment.goal),
        opening=loop.opening,
        steps=tuple(loop.steps),
        success=not reason and loop.success,
        interventions=loop.interventions,
        judged_steps=loop.judged_steps,
        tokens=sum(step.tokens for step in loop.steps),
        reason=reason,
        seconds=round(time.perf_counter() - began, 4),
    )


class _BrokenDown(Exception):
    """The run has to end here as a failure; the text is the outcome's reason."""


class _Loop:
    """A run while it is being made; the public fields are what has come of it so far."""

    def __init__(
        self,
        environment: Environment,
        agent: Agent,
        run: EpisodeRun,
        limits: RunLimits,
        trigger: Trigger | None,
        mechanism: Mechanism,
    ) -> None:
        self._environment, self._agent, self._run, self._limits = environment, agent, run, limits
        self._trigger, self._mechanism = trigger, mechanism
        self._turns: list[AgentTurn] = []
        self.steps: list[Step] = []
        self.opening = ""
        self.success = False
        self.interventions = self.judged_steps = 0

    def play(self) -> None:
        """Fill the fields; `_BrokenDown` leaves what there is of them."""
        environment, run = self._environment, self._run
        with _surviving("environment"):
            observation = environment.reset()
        self.opening = storable(observation.text)
        with _surviving("agent"):
            policy = self._agent.begin(environment.task, run.seed, run.attempt)
        if self._trigger is not None:
            with _surviving("critic"):
                self._trigger.begin(environment)
        intervened: Mechanism | None = None
        undone: tuple[str, ...] = ()
        while not observation.done and len(self.steps) < self._limits.step_budget:
            moment = Moment(environment, run.seed, len(self.steps), self._so_far)
            trigger = self._trigger if self._may_intervene(moment.step) else None
            before = observation
            if trigger is not None:
                with _surviving("environment"):
                    snapshot, state = environment.snapshot(), environment.state()
                with _surviving("critic"):
                    trigger.before(moment)
            observation = self._act(policy, observation, intervened, undone)
            intervened = None
            if trigger is not None and not observation.done and self._ask(trigger, moment):
                intervened = self._mechanism
                if intervened == "rollback":
                    undone = (*undone, self._turns.pop().action)
                    with _surviving("environment"):
                        observation = environment.restore(snapshot)
                        as_before = observation == before and environment.state() == state
                    if not as_before:
                        raise _BrokenDown("environment: undoing an action did not bring back what was before")
                else:
                    self._turns[-1] = self._turns[-1]._replace(warning=self._limits.warning)
            if intervened != "rollback":
                undone = ()
        self.success = observation.done and observation.success

    def _may_intervene(self, step: int) -> bool:
        limits = self._limits
        # After the last action there is nothing left to do better.
        return (
            limits.min_step <= step < limits.step_budget - 1 and self.interventions < limits.max_interventions
        )

    def _act(
        self,
        policy: Policy,
        observation: Observation,
        intervened: Mechanism | None,
        undone: tuple[str, ...],
    ) -> Observation:
        situation = Situation(
            goal=self._environment.goal,
            opening=self.opening,
            turns=tuple(self._turns),
            admissible=observation.admissible,
            decision=len(self.steps),
            intervened=intervened,
            undone=undone,
            plan=self._plan,
        )
        with _surviving("agent"):
            action, thought, tokens, thinking = policy(situation)
            if not action.strip():
                raise ValueError("gave no action")
        with _surviving("environment"):
            after = self._environment.step(action)
        turn = AgentTurn(storable(action), storable(thought), storable(after.text))
        self._turns.append(turn)
        self.steps.append(
            Step(
                attempt=self._run.attempt,
                step=len(self.steps),
                action=turn.action,
                thinking=storable(thinking),
                thought=turn.thought,
                observation=turn.result,
                done=after.done,
                tokens=tokens,
            )
        )
        return after

    def _plan(self) -> tuple[str, ...]:
        """The environment's solution; a fault is the environment's, though it is the agent that asks."""
        with _surviving("environment"):
            return self._environment.solution()

    def _ask(self, trigger: Trigger, moment: Moment) -> bool:
        """Ask the trigger whether to intervene; its answer goes into the transcript."""
        self.judged_steps += 1
        with _surviving("critic"):
            decided = trigger.decide(moment)
        self.interventions += decided.fires
        step = self.steps[-1]
        answer = {
            "p_fail": decided.p_fail,
            "calibrated": decided.calibrated,
            "intervention": self._mechanism if decided.fires else None,
            "tokens": step.tokens + decided.tokens,
        }
        self.steps[-1] = step.model_copy(update=answer)
        return decided.fires

    def _so_far(self) -> Sample:
        return sample_of_run(
            self._environment.task,
            self._run.seed,
            self._agent.name,
            storable(self._environment.goal),
            self.opening,
            self._turns,
        )


@contextmanager
def _surviving(who: str) -> Iterator[None]:
    """Let what an agent, a critic or an environment raises end the run, not the pilot."""
    try:
        yield
    except (UserError, ConfigError, _BrokenDown):
        # A person has to fix the first two, and every other run would meet them as well.
        raise
    except Exception as error:
        message = " ".join(str(error).split())[:300]
        raise _BrokenDown(storable(f"{who}: {type(error).__name__}: {message}")) from error


def best_of_two(
    environment: Environment, agent: Agent, run: EpisodeRun, limits: RunLimits, judge: JudgeRun
) -> Episode:
    """Make both runs and return them as one episode.

    `kept_attempt` says which of them counts: the first where both look alike.

    A run or a judgement that breaks down makes it a failure with a reason.
    """
    tries = [run_episode(environment, agent, run._replace(attempt=attempt), limits) for attempt in (0, 1)]
    steps = tuple(step for episode in tries for step in episode.steps)
    tokens = sum(episode.tokens for episode in tries)
    reason = next((episode.reason for episode in tries if episode.reason), "")
    chosen = 0
    if not reason:
        try:
            with _surviving("critic"):
                judgements = [judge(episode.sample(attempt)) for attempt, episode in enumerate(tries)]
                first, second = (certain(judgement) for judgement in judgements)
            chosen = int(second < first)
            tokens += sum(judgement.tokens for judgement in judgements)
        except _BrokenDown as broken:
            reason = str(broken)
    return tries[chosen].model_copy(
        update={
            "steps": steps,
            "success": not reason and tries[chosen].success,
            "tokens": tokens,
            "reason": reason,
            "kept_attempt": chosen,
            "seconds": sum(episode.seconds for episode in tries),
        }
    )
