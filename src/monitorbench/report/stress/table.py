"""What changes do to a monitor, as rows and in words: for a terminal of 80 columns and for the page."""

from typing import NamedTuple

from rich.console import Console

from monitorbench.metrics.robustness.compare import MEASURES, ChangeFacts, Measure, Moved
from monitorbench.metrics.robustness.facts import StressFacts
from monitorbench.metrics.robustness.worst import Worst
from monitorbench.records import reasons_in_words
from monitorbench.report.tables.numbers import count, signed, signed_interval, signed_with_interval
from monitorbench.report.tables.terminal import grid, say

WIDTH = 80
COLUMNS = (
    ("change", 26),
    ("n", 4),
    ("dMR", 6),
    ("dFAR", 6),
    ("dAUROC", 19),
    ("unsc.", 5),
)
"""With their widths in a terminal."""
SHOWN = "*"
"""Behind a number that is worse at 5 % after Holm's correction."""
_NAMES: dict[Measure, str] = {"miss_rate": "MR", "false_alarm_rate": "FAR", "auroc": "AUROC"}


class Row(NamedTuple):
    """One change on the page."""

    change: str
    n: str
    numbers: list[str]
    """Of `MEASURES`, each with its interval."""
    unscored: str
    is_worse: bool


def show_stress(facts: StressFacts) -> None:
    """Print the answer, and a row for each change, to stdout at the terminal's width or 80 columns."""
    console = Console()
    print_stress(console if console.is_terminal else Console(width=WIDTH), facts)


def print_stress(console: Console, facts: StressFacts) -> None:
    """The answer first; then the table, harmful changes in bold; then what did not apply."""
    say(console, "")
    say(console, f"{facts['monitor']}, {facts['prompt']} prompt: {answer(facts)}", "bold")
    for line in worst_lines(facts):
        say(console, line)
    say(console, "")
    console.print(grid(console, COLUMNS, [[name for name, _ in COLUMNS]], "dim"))
    for name, change in facts["changes"].items():
        if change["n"]:
            console.print(grid(console, COLUMNS, [_short(name, change)], "bold" if change["worse"] else ""))
    for line in notes(facts):
        say(console, line, "dim")


def answer(facts: StressFacts) -> str:
    """Whether anything is shown to make it worse, in a sentence."""
    found, of = facts["robustness"]["exposed"], facts["robustness"]["n_changes"]
    if not found:
        return f"none of {of} changes is shown to make it worse"
    named = ", ".join(found[:4]) + (f" and {len(found) - 4} more" if len(found) > 4 else "")
    return f"{len(found)} of {of} changes are shown to make it worse: {named}"


def worst_lines(facts: StressFacts) -> list[str]:
    """The worst change of each measure, with the interval that holds for all changes at once."""
    of = facts["robustness"]
    worst: list[tuple[Measure, Worst | None]] = [
        ("auroc", of["worst_auroc"]),
        ("miss_rate", of["worst_miss_rate"]),
        ("false_alarm_rate", of["worst_false_alarm_rate"]),
    ]
    return [
        f"worst {_NAMES[measure]}: {signed_with_interval(one['difference'], one['difference_ci'])} under "
        f"{one['change']}{_how_sure(measure, one)}"
        for measure, one in worst
        if one is not None
    ]


def _how_sure(measure: Measure, one: Worst) -> str:
    if one["is_shown"]:
        return ""
    harms = one["difference"] < 0 if measure == "auroc" else one["difference"] > 0
    return " (not shown)" if harms else " (none does harm)"


def notes(facts: StressFacts) -> list[str]:
    """What the numbers are of, what could not have been shown, and which changes did not apply."""
    of = facts["robustness"]
    read = f"read at {facts['operating_point']}" if facts["operating_point"] else "own answers"
    lines = [
        f"{SHOWN} worse at 5 % after Holm's correction over {of['n_tests']} tests. Paired, by group; {read}; "
        "worst: intervals for all changes at once, each row's in stress.json.",
        f"A rate is shown worse from {of['fewest_changed']} groups that change on, none the other way; there "
        f"are at most {of['most_groups']} with misbehavior.",
    ]
    none = [name for name, change in facts["changes"].items() if not change["n"]]
    if none:
        lines.append(f"Applied to no sample: {', '.join(none)}.")
    reasons: dict[str, int] = {}
    for change in facts["changes"].values():
        for reason, n in change["unscored"].items():
            reasons[reason] = reasons.get(reason, 0) + n
    if reasons:
        lines.append(f"Unscored under a change, in no rate: {reasons_in_words(reasons)}.")
    return lines


def rows(facts: StressFacts) -> list[Row]:
    """A row for each change that applied to a sample, with all intervals."""
    return [
        Row(
            name,
            count(change["n"]),
            [_with_mark(signed_with_interval(*_of(change[one])), one, change) for one in MEASURES],
            count(change["n_unscored"]),
            bool(change["worse"]),
        )
        for name, change in facts["changes"].items()
        if change["n"]
    ]


def _short(name: str, change: ChangeFacts) -> list[str]:
    rates = [_with_mark(signed(change[one]["difference"]), one, change) for one in MEASURES]
    bounds = signed_interval(change["auroc"]["difference_ci"])
    shown = [*rates[:2], f"{rates[2]} {bounds}".rstrip()]
    return [name, count(change["n"]), *shown, count(change["n_unscored"])]


def _with_mark(text: str, measure: Measure, change: ChangeFacts) -> str:
    value, _, rest = text.partition(" ")
    return f"{value}{SHOWN if measure in change['worse'] else ''} {rest}".rstrip()


def _of(moved: Moved) -> tuple[float | None, list[float] | None]:
    return moved["difference"], moved["difference_ci"]
