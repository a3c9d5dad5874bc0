"""The numbers of a pilot as the page's tables and sentences have them.

Promises: what is undefined is said to be so, and why; a run that broke down is counted once.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from monitorbench.intervention.outcomes import BASELINE, Outcome
from monitorbench.intervention.statistics.decision_file import ConditionResult, PilotDecision
from monitorbench.intervention.statistics.wording import WORDS, points
from monitorbench.metrics.written import DASH, counted, interval, p_value, rate, signed, signed_interval
from monitorbench.report.pilot.flips import PilotRun

_MOST_REASONS = 100
_MOST_COUNTS = 8
"""Different numbers of interventions a run that are listed one by one."""


class OutcomeCell(NamedTuple):
    """One of A, B, C, D, or a sum without a letter; with its share of all pairs."""

    letter: str
    number: str


class Square(NamedTuple):
    """The 2×2 of one agent under one condition."""

    name: str
    decision: str
    rows: list[tuple[str, list[OutcomeCell]]]
    """Failed without, succeeded without, all: failed with, succeeded with, all."""
    words: list[str]


class PilotNumber(NamedTuple):
    """A number with its interval; a dash where it is undefined."""

    value: str
    interval: str = ""


class ConditionRow(NamedTuple):
    """The rates and the effect of one agent under one condition."""

    name: str
    numbers: list[PilotNumber]
    p_holm: str
    decision: str


class Reason(NamedTuple):
    """Reason for which runs of one agent and condition broke down."""

    name: str
    reason: str
    n: int


class Broken(NamedTuple):
    """Runs that broke down, and why."""

    sentence: str
    reasons: list[Reason]
    n_more: int
    """Runs whose reason is not listed."""


def names(decision: PilotDecision) -> dict[tuple[str, str], str]:
    """Name each agent and condition; the agent is left out where there is only one."""
    several = len({result.agent for result in decision.conditions}) > 1
    return {
        (result.agent, result.condition): (
            f"{result.agent}: {result.condition}" if several else result.condition
        )
        + (" (control)" if result.control else "")
        for result in decision.conditions
    }


def what_was_run(decision: PilotDecision) -> str:
    """Say in a sentence which agents, conditions and tasks were run."""
    agents = list(dict.fromkeys(result.agent for result in decision.conditions))
    tried = sum(not result.control for result in decision.conditions)
    controls = len(decision.conditions) - tried
    runs = f"{decision.n_tasks:,} tasks" + (
        f" with {decision.n_runs:,} pairs of runs" if decision.n_runs != decision.n_tasks else ""
    )
    return (
        f"Agent{'s' if len(agents) > 1 else ''}: {', '.join(agents)}. {counted(tried, 'condition')} tried"
        + (f" and {counted(controls, 'control')}" if controls else "")
        + f"; of {decision.condition} there are {runs}, each run without intervention and with it."
    )


def square(one: ConditionResult, name: str) -> Square:
    """The counts with their marginals."""
    a, b, c, d = one.counts.A, one.counts.B, one.counts.C, one.counts.D

    def cells(letters: str, *numbers: int) -> list[OutcomeCell]:
        shares = [f" ({n / one.n_runs:.0%})" if one.n_runs else "" for n in numbers]
        return [
            OutcomeCell(letter.strip(), f"{n:,}{share}")
            for letter, n, share in zip(letters, numbers, shares, strict=True)
        ]

    return Square(
        name=name,
        decision=WORDS[one.decision],
        rows=[
            ("failed without", cells("AC ", a, c, a + c)),
            ("succeeded without", cells("BD ", b, d, b + d)),
            ("all", cells("   ", a + b, c + d, a + b + c + d)),
        ],
        words=[
            f"Of {a + c:,} that failed without it, {c:,} recovered{_share(one.r, 'r')}.",
            f"Of {b + d:,} that succeeded without it, {b:,} {'was' if b == 1 else 'were'} disrupted"
            f"{_share(one.d, 'd')}.",
        ],
    )


def _share(value: float | None, name: str) -> str:
    return f"; {name} is undefined" if value is None else f" ({name}\u00a0=\u00a0{value:.0%})"


def row(one: ConditionResult, name: str) -> ConditionRow:
    """A line of the table of rates and effects."""
    delta = PilotNumber(DASH)
    if one.delta_success is not None and one.delta_success_ci is not None:
        low, high = one.delta_success_ci
        delta = PilotNumber(points(one.delta_success), f"[{points(low)}, {points(high)}]")
    return ConditionRow(
        name=name,
        numbers=[
            delta,
            PilotNumber(rate(one.p), interval(one.p_ci)),
            PilotNumber(rate(one.p_star), interval(one.p_star_ci)),
            PilotNumber(signed(one.p_minus_p_star), signed_interval(one.p_minus_p_star_ci)),
            PilotNumber(rate(one.r), interval(one.r_ci)),
            PilotNumber(rate(one.d), interval(one.d_ci)),
        ],
        p_holm=DASH if one.swap_p_holm is None else p_value(one.swap_p_holm).removeprefix("p ").lstrip("= "),
        decision=WORDS[one.decision],
    )


def undefined(one: ConditionResult, name: str) -> Iterator[str]:
    """Say why something of a condition is not in the figures."""
    if not one.n_runs:
        yield f"{name}: nothing can be drawn, no run has a baseline run of the same task and seed."
        return
    if one.p_star is None:
        cells = one.counts
        if cells.A + cells.C == 0:
            why = "the baseline never failed, so there is no recovery rate"
        elif cells.B + cells.D == 0:
            why = "the baseline never succeeded, so there is no disruption rate"
        else:
            why = "no run changed its outcome"
        yield f"{name}: p* is undefined: {why}."


def broken(outcomes: Sequence[Outcome]) -> Broken:
    """All runs that broke down, the baseline's too, by condition and reason."""
    breakdowns = Counter((entry.agent, entry.condition, entry.reason) for entry in outcomes if entry.reason)
    n = breakdowns.total()
    if not n:
        return Broken(f"None of {len(outcomes):,} runs broke down.", [], 0)
    several = len({entry.agent for entry in outcomes}) > 1
    listed = sorted(breakdowns.items(), key=lambda item: (-item[1], item[0]))
    reasons = [
        Reason(
            (f"{agent}: " if several else "")
            + ("without intervention" if condition == BASELINE else condition),
            reason,
            count,
        )
        for (agent, condition, reason), count in listed[:_MOST_REASONS]
    ]
    counted = f"{n:,} of {len(outcomes):,} runs broke down; they count as failures"
    return Broken(f"{counted}.", reasons, n - sum(entry.n for entry in reasons))


def per_run(run: PilotRun, called: dict[tuple[str, str], str]) -> list[str]:
    """Say how many interventions the runs of each condition had: all that is known without transcripts."""
    sentences = []
    for condition in run.compared:
        counts = Counter(pair.treated.interventions for pair in condition.matched.pairs)
        listed = sorted(counts.items())
        name = called[condition.result.agent, condition.result.condition]
        if not listed:
            continue
        words = [f"{number:,} in {counted(n, 'run')}" for number, n in listed[:_MOST_COUNTS]]
        if tail := listed[_MOST_COUNTS:]:
            more = sum(n for _, n in tail)
            words.append(f"{tail[0][0]:,} to {tail[-1][0]:,} in {counted(more, 'run')}")
        sentences.append(f"{name}: {', '.join(words)}.")
    return sentences


def steps_intervened_at(run: PilotRun) -> dict[tuple[str, str], Counter[int]]:
    """Count the interventions at each step, by agent and condition, from the transcripts.

    Only runs in pairs are counted; conditions without an intervention are left out.
    """
    by_condition: dict[tuple[str, str], Counter[int]] = {}
    for condition in run.compared:
        episodes = [run.transcripts.of(pair.treated) for pair in condition.matched.pairs]
        count = Counter(
            step.step for episode in episodes if episode for step in episode.steps if step.intervention
        )
        if count:
            by_condition[condition.result.agent, condition.result.condition] = count
    return by_condition
