"""The page of a pilot, one HTML file that needs nothing beside it, and the report stage that writes it.

Promises: nothing is loaded and no script runs; tasks, names, and all that agents and worlds said are
escaped, unseen characters in them named; the same run gives the same bytes. What is undefined is said to be
so, and why; a run that broke down is counted once.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from monitorbench.config.base import UserError
from monitorbench.config.terminal import opened
from monitorbench.intervention.outcomes import BASELINE, Outcome
from monitorbench.intervention.statistics.decision_file import (
    DECISION,
    WORDS,
    ConditionResult,
    PilotDecision,
    percent,
    points,
    remarks_on,
    remarks_on_all,
)
from monitorbench.intervention.transcripts import EPISODES
from monitorbench.metrics.written import DASH, counted, interval, p_value, rate, signed, signed_interval
from monitorbench.report.pilot import figures
from monitorbench.report.pilot.flips import PilotRun, flips, read_pilot
from monitorbench.report.pilot.printed import LOCALISATION, print_decision
from monitorbench.report.samples.marked import MOST_CHARACTERS
from monitorbench.report.sections.section import PageNumber
from monitorbench.report.template import facts, policy, templates
from monitorbench.runs.directory import read_finished, record_files
from monitorbench.runs.files import write_atomically

_MOST_REASONS = 100
_MOST_COUNTS = 8
"""Different numbers of interventions a run that are listed one by one."""


class _Square(NamedTuple):
    """The 2×2 of one agent under one condition."""

    name: str
    decision: str
    rows: list[tuple[str, list[tuple[str, str]]]]
    """Failed without, succeeded without, all: failed with, succeeded with, all; each one of A, B, C, D, or a
    sum without a letter, with its share of all pairs."""
    words: list[str]


class _ConditionRow(NamedTuple):
    """The rates and the effect of one agent under one condition."""

    name: str
    numbers: list[PageNumber]
    p_holm: str
    decision: str


class _Broken(NamedTuple):
    """Runs that broke down, and why."""

    sentence: str
    reasons: list[tuple[str, str, int]]
    """Agent and condition, the reason, and how many runs broke down for it."""
    n_more: int
    """Runs whose reason is not listed."""


def condition_names(decision: PilotDecision) -> dict[tuple[str, str], str]:
    """Name each agent and condition; the agent is left out where there is only one."""
    several = len({result.agent for result in decision.conditions}) > 1
    return {
        (result.agent, result.condition): (
            f"{result.agent}: {result.condition}" if several else result.condition
        )
        + (" (control)" if result.control else "")
        for result in decision.conditions
    }


_DOES = {
    "rollback": "Its intervention undoes an action that the critic suspects, and tells the agent so.",
    "append": "Its intervention warns the agent of an action that the critic suspects; the action stands.",
}


def _what_was_run(decision: PilotDecision, *, is_live: bool) -> str:
    """Say which tasks were run how often, what the intervention does, and what else was tried."""
    agents = list(dict.fromkeys(result.agent for result in decision.conditions))
    tried = sum(not result.control for result in decision.conditions)
    controls = len(decision.conditions) - tried
    pairs = f" ({decision.n_runs:,} pairs of runs)" if decision.n_runs != decision.n_tasks else ""
    name = decision.condition
    unknown = f"What {name} did in them is not kept: of each run, only its end is known."
    sentences = [
        f"{counted(decision.n_tasks, 'task')}{pairs}: each was run without intervention and with {name}.",
        _DOES.get(name.partition("_")[0], unknown) if is_live else unknown,
    ]
    if len(decision.conditions) > 1:
        beside = f" and {counted(controls, 'control')}" if controls else ""
        of = f" over the agents {', '.join(agents)}" if len(agents) > 1 else ""
        sentences.append(f"In all, {counted(tried, 'condition')}{beside} were tried{of}.")
    return " ".join(sentences)


def _square(one: ConditionResult, name: str) -> _Square:
    """The counts with their marginals."""
    a, b, c, d = one.counts.A, one.counts.B, one.counts.C, one.counts.D

    def cells(letters: str, *numbers: int) -> list[tuple[str, str]]:
        shares = [f" ({n / one.n_runs:.0%})" if one.n_runs else "" for n in numbers]
        texts = [f"{n:,}{share}" for n, share in zip(numbers, shares, strict=True)]
        return [(letter.strip(), text) for letter, text in zip(letters, texts, strict=True)]

    return _Square(
        name=name,
        decision=WORDS[one.decision],
        rows=[
            ("failed without intervention", cells("AC ", a, c, a + c)),
            ("succeeded without intervention", cells("BD ", b, d, b + d)),
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


def _row(one: ConditionResult, name: str) -> _ConditionRow:
    """A line of the table of rates and effects."""
    delta = PageNumber(DASH, "")
    if one.delta_success is not None and one.delta_success_ci is not None:
        low, high = one.delta_success_ci
        delta = PageNumber(points(one.delta_success), f"[{points(low)}, {points(high)}]")
    return _ConditionRow(
        name=name,
        numbers=[
            delta,
            PageNumber(rate(one.p), interval(one.p_ci)),
            PageNumber(rate(one.p_star), interval(one.p_star_ci)),
            PageNumber(signed(one.p_minus_p_star), signed_interval(one.p_minus_p_star_ci)),
            PageNumber(rate(one.r), interval(one.r_ci)),
            PageNumber(rate(one.d), interval(one.d_ci)),
        ],
        p_holm=DASH if one.swap_p_holm is None else p_value(one.swap_p_holm).removeprefix("p ").lstrip("= "),
        decision=WORDS[one.decision],
    )


def _undefined(one: ConditionResult, name: str) -> Iterator[str]:
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


def _broken(outcomes: Sequence[Outcome]) -> _Broken:
    """All runs that broke down, the baseline's too, by condition and reason."""
    breakdowns = Counter((entry.agent, entry.condition, entry.reason) for entry in outcomes if entry.reason)
    n = breakdowns.total()
    if not n and not _is_counted(outcomes):
        return _Broken("Whether any run broke down is not known: the file has how each ended alone.", [], 0)
    if not n:
        return _Broken(f"None of {len(outcomes):,} runs broke down.", [], 0)
    several = len({entry.agent for entry in outcomes}) > 1
    listed = sorted(breakdowns.items(), key=lambda item: (-item[1], item[0]))
    reasons = [
        (
            (f"{agent}: " if several else "")
            + ("without intervention" if condition == BASELINE else condition),
            reason,
            count,
        )
        for (agent, condition, reason), count in listed[:_MOST_REASONS]
    ]
    counted = f"{n:,} of {len(outcomes):,} runs broke down; they count as failures"
    return _Broken(f"{counted}.", reasons, n - sum(count for *_, count in reasons))


def _is_counted(outcomes: Sequence[Outcome]) -> bool:
    """Whether it is known what the runs took; a table of successes leaves all counts at 0."""
    return any(run.steps or run.tokens or run.interventions for run in outcomes)


def _per_run(run: PilotRun, called: dict[tuple[str, str], str]) -> list[str]:
    """Say how many interventions the runs of each condition had: all that is known without transcripts."""
    sentences: list[str] = []
    for condition in run.compared if _is_counted(run.outcomes) else ():
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


def render_pilot(run: PilotRun, manifest: Mapping[str, object]) -> str:
    """The page for a pilot and the manifest of its run."""
    decision, names = run.decision, condition_names(run.decision)
    results = [(condition, names[condition.agent, condition.condition]) for condition in decision.conditions]
    counts = steps_intervened_at(run)
    steps = (step.step for episode in run.transcripts.by_run.values() for step in episode.steps)
    flipped = [
        (names[condition.result.agent, condition.result.condition], flips(condition, run.transcripts))
        for condition in run.compared
    ]
    return (
        templates()
        .get_template("pilot.html.j2")
        .render(
            policy=policy(),
            most_characters=MOST_CHARACTERS,
            name=run.name,
            decision=decision,
            what_was_run=_what_was_run(decision, is_live=not run.transcripts.missing),
            remarks=[*remarks_on(decision), *remarks_on_all(decision)],
            other_remarks=[
                remark
                for condition in decision.conditions
                if (condition.agent, condition.condition) != (decision.agent, decision.condition)
                for remark in remarks_on(condition)
            ],
            confidence=percent(decision.settings.interval_confidence),
            squares=[_square(condition, name) for condition, name in results],
            broken=_broken(run.outcomes),
            rows=[_row(condition, name) for condition, name in results],
            undefined=[remark for condition, name in results for remark in _undefined(condition, name)],
            rates=figures.rates(decision, names),
            effects=figures.effects(decision, names),
            when=figures.when(counts, names, max(steps, default=0)),
            none_made=[names[key] for key in names if key not in counts],
            per_run=_per_run(run, names),
            without_transcripts=run.transcripts.missing,
            flipped=flipped,
            n_disruptions=sum(len(condition.disruptions) for _, condition in flipped),
            n_recoveries=sum(len(condition.recoveries) for _, condition in flipped),
            made=[("run", run.name), *facts(manifest)],
        )
    )


def is_of_a_pilot(directory: Path) -> bool:
    """Whether `eval/pilot.py` wrote this run directory."""
    return any((directory / name).is_file() for name in (DECISION, EPISODES, LOCALISATION))


def report_pilot(directory: Path, runs: Path) -> Path:
    """Write `report.html` beside the decision of a pilot, and print it as `eval/pilot.py` does.

    Raises `UserError` where the run has no report, or its files can't be read or don't belong together.
    """
    manifest = read_finished(directory)
    if not (directory / DECISION).is_file():
        raise UserError(
            f"{directory}: a localisation has no report; localisation.json has all shares, "
            "`monitorbench pilot` prints them"
            if (directory / LOCALISATION).is_file()
            else f"{directory}: these are the runs of a pilot; expected run=runs/pilot/NAME-HASH, which "
            "`monitorbench pilot` printed"
        )
    run = read_pilot(directory, manifest, runs)
    write_atomically(directory / "report.html", render_pilot(run, manifest))
    record_files(directory, "report.html")
    print_decision(opened(), run.decision)
    return directory
