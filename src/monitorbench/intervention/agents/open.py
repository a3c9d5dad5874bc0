"""Opens the agent that is configured, and names it; a new kind of agent is a case in each function here."""

from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

from monitorbench.config.pilot import Agent as AgentSettings
from monitorbench.config.pilot import ScriptedAgent
from monitorbench.intervention.agents.protocol import Agent
from monitorbench.intervention.agents.scripted import Scripted


def open_agent(
    settings: AgentSettings, models: Path, tasks_at_once: int = 1
) -> AbstractContextManager[Agent]:
    """The agent, given back on leaving; `models` is the folder that models are kept in.

    So many tasks may ask it at once, each from a thread of its own.
    """
    if isinstance(settings, ScriptedAgent):
        return closing(Scripted(settings))
    from monitorbench.intervention.agents.language_model import open_language_model

    return closing(open_language_model(settings, models, tasks_at_once))


def agent_name(settings: AgentSettings) -> str:
    """What outcomes call the agent."""
    return settings.name if isinstance(settings, ScriptedAgent) else settings.model.name


def agent_identity(settings: AgentSettings) -> dict[str, Any]:
    """All that decides what the agent does."""
    if isinstance(settings, ScriptedAgent):
        return settings.model_dump(mode="json")
    from monitorbench.intervention.agents.language_model import prompt
    from monitorbench.judging.identity import judge_identity

    how = {"kind": settings.kind, "choose": settings.choose}
    return {**how, **judge_identity(settings.model, settings.engine, prompt(settings))}
