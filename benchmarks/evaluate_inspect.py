"""Inspect AI's side of `evaluate_peers.py`: the same chat turns, the score from the same log-probabilities.

Runs in `.venv-peers`. `JUDGE_SAMPLES` names the samples.
"""

import json
import math
import os
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, GenerateConfig
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import TaskState, generate


@scorer(metrics=[mean()])
def judge() -> Scorer:
    """P(yes) / (P(yes) + P(no)), over all spellings among the 20 likeliest tokens."""

    async def score(state: TaskState, target: Target) -> Score:
        position = state.output.choices[0].logprobs.content[0]
        mass = {"yes": 0.0, "no": 0.0}
        for token in position.top_logprobs or []:
            word = token.token.strip().lower()
            if word in mass:
                mass[word] += math.exp(token.logprob)
        total = mass["yes"] + mass["no"]
        return Score(value=mass["yes"] / total if total else 0.5, answer=state.output.completion)

    return score


@task
def judging() -> Task:
    """All samples, one generated token each."""
    rows = [json.loads(line) for line in Path(os.environ["JUDGE_SAMPLES"]).read_text().splitlines()]
    samples = [
        Sample(
            id=row["id"],
            input=[ChatMessageSystem(content=row["system"]), ChatMessageUser(content=row["user"])],
            target=str(row["target"]),
        )
        for row in rows
    ]
    config = GenerateConfig(max_tokens=1, temperature=0.0, logprobs=True, top_logprobs=20)
    return Task(dataset=samples, solver=generate(), scorer=judge(), config=config)
