"""The control `best_of_2`: two runs of a task, and the critic keeps the one it gives less P(fail).

Nobody intervenes; what it shows is how much of an intervention's gain a second try alone would bring. Its
steps and tokens are those of both runs. The first run is the baseline's own.
"""

from monitorbench.intervention.agents.protocol import Agent
from monitorbench.intervention.environments.protocol import Environment
from monitorbench.intervention.loop.episode import BrokenDown, EpisodeRun, RunLimits, run_episode, surviving
from monitorbench.intervention.loop.mechanisms import JudgeRun, certain
from monitorbench.intervention.transcripts import Episode


def best_of_two(
    environment: Environment, agent: Agent, run: EpisodeRun, limits: RunLimits, judge: JudgeRun
) -> Episode:
    """Make both runs and return them as one episode.

    `kept_attempt` says which of them counts: the first where both look alike.

    A run or a judgement that breaks down makes it a failure with a reason.
    """
    tries = [run_episode(environment, agent, run._replace(attempt=attempt), limits) for attempt in (0, 1)]
    steps = tuple(step for one in tries for step in one.steps)
    tokens = sum(one.tokens for one in tries)
    reason = next((one.reason for one in tries if one.reason), "")
    kept = 0
    if not reason:
        try:
            with surviving("critic"):
                judgements = [judge(one.sample(attempt)) for attempt, one in enumerate(tries)]
                first, second = (certain(judgement) for judgement in judgements)
            kept = int(second < first)
            tokens += sum(judgement.tokens for judgement in judgements)
        except BrokenDown as broken:
            reason = str(broken)
    return tries[kept].model_copy(
        update={
            "steps": steps,
            "success": not reason and tries[kept].success,
            "tokens": tokens,
            "reason": reason,
            "kept_attempt": kept,
            "seconds": sum(one.seconds for one in tries),
        }
    )
