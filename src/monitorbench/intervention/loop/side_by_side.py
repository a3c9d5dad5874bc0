"""Several tasks of a pilot at once, each in a thread of its own, or one after the other in this one.

How many: as many as the engine of the agent (of the critic, where the agent has none) takes requests at
once, `pilot.concurrency` at most, and one where the environment does not declare that its tasks may run side
by side. Promises: the first task that fails ends the rest, whose runs at hand are finished and kept, and its
error is raised; after an interrupt the runs at hand end at their next decision, and none is kept.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from monitorbench.config.engine import Engine
from monitorbench.config.monitor import Monitor
from monitorbench.config.pilot import ScriptedAgent
from monitorbench.config.study import Study
from monitorbench.intervention.agents.protocol import Agent, ChosenAction, Policy, Situation


def tasks_at_once(study: Study) -> int:
    """How many tasks of the study's pilot run side by side: at least 1."""
    if not study.environment.side_by_side:
        return 1
    agent, most = study.agent, study.pilot.concurrency
    requests = (
        critic_requests(study.engine, study.monitor)
        if isinstance(agent, ScriptedAgent)
        else agent.engine.concurrency
    )
    return requests if most is None else min(requests, most)


def critic_requests(engine: Engine, monitor: Monitor) -> int:
    """How many runs the study's critic may be asked about at once; 1 where it works in this process."""
    return engine.concurrency if monitor.kind == "language_model" else 1


class Abandoned(BaseException):
    """The pilot was interrupted: this run ends here and is not counted."""


class Going:
    """Whether tasks that run side by side are to go on."""

    def __init__(self) -> None:
        self.ending = threading.Event()
        """No further run is to be begun."""
        self._abandoned = threading.Event()
        self._keeping = threading.Lock()

    def abandon(self) -> None:
        """End the runs at hand, too, at their next decision."""
        self.ending.set()
        self._abandoned.set()

    def check(self) -> None:
        """Raise `Abandoned` where the run at hand is to end."""
        if self._abandoned.is_set():
            raise Abandoned

    def keep(self, keep: Callable[[], None]) -> None:
        """Keep a finished run, one at a time; raises `Abandoned` where it came too late."""
        with self._keeping:
            self.check()
            keep()


class Stoppable:
    """An `Agent` that decides no more once the pilot is abandoned."""

    def __init__(self, agent: Agent, going: Going) -> None:
        self._agent, self._going = agent, going

    @property
    def name(self) -> str:
        """See `Agent.name`."""
        return self._agent.name

    def begin(self, task: str, seed: int, attempt: int = 0) -> Policy:
        """See `Agent.begin`."""
        policy = self._agent.begin(task, seed, attempt)

        def decide(situation: Situation) -> ChosenAction:
            self._going.check()
            return policy(situation)

        return decide

    def close(self) -> None:
        """See `Agent.close`."""
        self._agent.close()


def work_through(
    tasks: Sequence[Callable[[Going], None]],
    at_once: int,
    advance: Callable[[], None],
    interrupt: Callable[[], None],
) -> None:
    """Do the tasks, at most so many at once; `advance` is called in this thread after each.

    `interrupt` cancels what the runs wait for. Raises what the first task to fail raised.
    """
    going = Going()
    if at_once == 1:
        for task in tasks:
            task(going)
            advance()
        return

    def one(task: Callable[[Going], None]) -> None:
        if going.ending.is_set():
            return
        try:
            task(going)
        except BaseException:
            going.ending.set()
            raise

    failed: BaseException | None = None
    pool = ThreadPoolExecutor(at_once, thread_name_prefix="pilot task")
    try:
        for done in as_completed([pool.submit(one, task) for task in tasks]):
            failed = failed or done.exception()
            if failed is None:
                advance()
    except BaseException:
        going.abandon()
        interrupt()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    if failed is not None:
        raise failed
