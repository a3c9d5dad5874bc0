"""Scores that are bounds, contradict their label or are mostly equal: who has any, as rows and as lines."""

from typing import NamedTuple

from monitorbench.metrics import reading
from monitorbench.metrics.results import Results
from monitorbench.metrics.score_facts import ScoreFacts, doubts


class DoubtedScores(NamedTuple):
    """A monitor under a prompt, some of whose scores are bounds or contradict its labels."""

    monitor: str
    prompt: str
    facts: ScoreFacts


def doubted_scores(results: Results) -> list[DoubtedScores]:
    """List every monitor and prompt with doubtful scores."""
    by_monitor = results.get("scores", {})
    return [
        DoubtedScores(monitor, prompt, facts)
        for monitor in reading.monitors(results)
        for prompt, facts in by_monitor.get(monitor, {}).items()
        if doubts(facts)
    ]


def doubt_lines(results: Results) -> list[str]:
    """Return a line for the terminal for each kind of doubtful scores."""
    names = reading.short_names(results)
    return [
        f"{names[row.monitor]} · {row.prompt} prompt: {doubt}"
        for row in doubted_scores(results)
        for doubt in doubts(row.facts)
    ]
