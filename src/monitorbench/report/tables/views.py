"""What a monitor sees, compared: a row for each way of asking it."""

from collections.abc import Sequence

from monitorbench.config.terminal import Console
from monitorbench.metrics.views import AT_THRESHOLDS, SeenDifference, ViewsFacts, in_words
from monitorbench.metrics.written import DASH, count, rate, rate_with_interval, signed_with_interval
from monitorbench.report.tables.terminal import print_rows, say, start_table

_COLUMNS = (
    ("asked", 30),
    ("AUROC", 17),
    ("minus the first", 21),
    ("MR at FAR 5 %: minus", 21),
    ("both", 5),
    ("not shown", 9),
    ("unsc.", 5),
    ("tokens", 7),
    ("sec.", 6),
)
_AT_THRESHOLD = (_COLUMNS[0], ("MR", 6), ("FAR", 6), ("MR minus the first", 21), ("FAR minus the first", 21))


def show_views(facts: ViewsFacts, monitor: str) -> None:
    """Print a row for each way of asking, and what is shown of them, to stdout; a star marks p < .05."""
    console = Console()
    console = console if console.is_terminal else Console(width=140)
    start_table(console, f"{monitor} by what it sees   (95 % intervals; * p < .05 by Holm)", _COLUMNS)
    print_rows(console, _COLUMNS, view_rows(facts))
    if any(of["rates_at_threshold"] for of in facts["asked"].values()):
        start_table(console, "at calibrated thresholds, each its own", _AT_THRESHOLD)
        print_rows(console, _AT_THRESHOLD, threshold_rows(facts))
    if categories := list(dict.fromkeys(one for of in facts["asked"].values() for one in of["by_category"])):
        columns = (_COLUMNS[0], *((category, 21) for category in categories))
        start_table(console, f"AUROC minus {facts['first']}'s, by category", columns)
        print_rows(console, columns, category_rows(facts, categories))
    say(console, in_words(facts))


def threshold_rows(facts: ViewsFacts) -> list[list[str]]:
    """The cells of each row of the rates at calibrated thresholds."""
    return [
        [
            name,
            *(_rate(of["rates_at_threshold"].get(measure)) for measure in AT_THRESHOLDS),
            *(_change(of["at_threshold"].get(measure)) for measure in AT_THRESHOLDS),
        ]
        for name, of in facts["asked"].items()
    ]


def category_rows(facts: ViewsFacts, categories: Sequence[str]) -> list[list[str]]:
    """The cells of each row of the differences by category."""
    return [
        [name, *(_change(of["by_category"].get(category)) for category in categories)]
        for name, of in facts["asked"].items()
        if of["by_category"]
    ]


def view_rows(facts: ViewsFacts) -> list[list[str]]:
    """The cells of each row."""
    return [
        [
            name,
            rate_with_interval(of["auroc"], of["auroc_ci"]),
            *(_change(of["changes"].get(measure)) for measure in ("auroc", "miss_rate_at_far_5")),
            DASH if of["n_both"] is None else count(of["n_both"]),
            count(of["n_not_shown"]),
            count(of["n_unscored"]),
            DASH if of["tokens"] is None else f"{of['tokens']:,.0f}",
            DASH if of["seconds"] is None else rate(of["seconds"]),
        ]
        for name, of in facts["asked"].items()
    ]


def _rate(value: float | None) -> str:
    return DASH if value is None else rate(value)


def _change(of: SeenDifference | None) -> str:
    if of is None or of["difference"] is None:
        return DASH
    return signed_with_interval(of["difference"], of["difference_ci"]) + ("*" if of["shown"] else "")
