"""Effects of changes on a monitor, as rows and in words: for a terminal of 80 columns and for the page."""

from collections import Counter
from typing import NamedTuple

from monitorbench.config.terminal import Console
from monitorbench.metrics.robustness.compare import MEASURES, ChangeEffects, Measure, Moved
from monitorbench.metrics.robustness.facts import StressFacts
from monitorbench.metrics.robustness.words import answer, worst_lines
from monitorbench.metrics.written import count, signed, signed_interval, signed_with_interval
from monitorbench.records import reasons_in_words
from monitorbench.report.tables.terminal import print_rows, say

WIDTH = 80
COLUMNS = (
    ("change", 26),
    ("n", 4),
    ("dMR", 6),
    ("dFAR", 7),
    ("dAUROC", 19),
    ("lost", 5),
)
"""Columns of the table, with their widths in a terminal."""
SHOWN = "*"
"""Mark behind a number that is worse at 5 % after Holm's correction."""


class StressRow(NamedTuple):
    """One change on the page."""

    change: str
    n: str
    numbers: list[str]
    """Differences in `MEASURES`, each with its interval."""
    lost: str
    """Answers that the change turned into none."""
    is_worse: bool


def show_stress(facts: StressFacts) -> None:
    """Print the answer, and a row for each change, to stdout at the terminal's width or 80 columns."""
    console = Console()
    print_stress(console if console.is_terminal else Console(width=WIDTH), facts)


def print_stress(console: Console, facts: StressFacts) -> None:
    """The answer first; then the table, harmful changes in bold; then what did not apply."""
    say(console, "")
    say(console, f"{facts['monitor']}, {facts['prompt']} prompt: {answer(facts['robustness'])}", "bold")
    for line in worst_lines(facts["robustness"]):
        say(console, f"worst {line}")
    say(console, "")
    print_rows(console, COLUMNS, [[name for name, _ in COLUMNS]], "dim")
    for name, change in facts["changes"].items():
        if change["n"]:
            print_rows(console, COLUMNS, [_short(name, change)], "bold" if change["worse"] else "")
    for line in notes(facts):
        say(console, line, "dim")


def notes(facts: StressFacts) -> list[str]:
    """Say what the numbers are of, what could not have been shown, and which changes did not apply."""
    of = facts["robustness"]
    read = f"read at {facts['operating_point']}" if facts["operating_point"] else "own answers"
    changes = facts["changes"].values()
    lines = [
        f"{SHOWN} worse at 5 % after Holm's correction over {of['n_tests']} tests. Paired, by group; {read}; "
        "worst: intervals for all changes at once, each row's in stress.json.",
        f"For the first rate to be shown worse about {of['fewest_changed']} groups have to change, none the "
        f"other way; {of['most_groups']} with misbehavior were answered both times, at most.",
    ]
    if any(change["n"] and set(MEASURES) - set(change["counted"]) for change in changes):
        lines.append(
            "(In parentheses) not counted: there the response itself speaks to its judge, and to flag that "
            "may be right."
        )
    if none := [name for name, change in facts["changes"].items() if not change["n"]]:
        lines.append(f"Applied to no sample: {', '.join(none)}.")
    reasons: Counter[str] = Counter()
    for change in changes:
        reasons.update(change["unscored"])
    if reasons:
        n_lost = sum(change["n_newly_unscored"] for change in changes)
        lines.append(
            f"Unscored under a change, in no error rate: {reasons_in_words(reasons)}; lost: the {n_lost} of "
            "them that were answered without it."
        )
    return lines


def rows(facts: StressFacts) -> list[StressRow]:
    """A row for each change that applied to a sample, with all intervals."""
    return [
        StressRow(
            name,
            count(change["n"]),
            [
                _with_mark(signed_with_interval(*_of(change[measure])), measure, change)
                for measure in MEASURES
            ],
            count(change["n_newly_unscored"]),
            bool(change["worse"]),
        )
        for name, change in facts["changes"].items()
        if change["n"]
    ]


def _short(name: str, change: ChangeEffects) -> list[str]:
    rates = [_with_mark(signed(change[measure]["difference"]), measure, change) for measure in MEASURES]
    bounds = signed_interval(change["auroc"]["difference_ci"])
    differences = [*rates[:2], f"{rates[2]} {bounds}".rstrip()]
    lost = _with_mark(count(change["n_newly_unscored"]), "unscored_rate", change)
    return [name, count(change["n"]), *differences, lost]


def _with_mark(text: str, measure: Measure, change: ChangeEffects) -> str:
    value, _, bounds = text.partition(" ")
    if measure not in change["counted"] and change[measure]["difference"] is not None:
        value = f"({value})"
    return f"{value}{SHOWN if measure in change['worse'] else ''} {bounds}".rstrip()


def _of(moved: Moved) -> tuple[float | None, list[float] | None]:
    return moved["difference"], moved["difference_ci"]
