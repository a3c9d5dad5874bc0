"""What a monitor sees, compared: a row for each way of asking it."""

from monitorbench.config.terminal import Console
from monitorbench.metrics.views import SeenDifference, ViewsFacts, in_words
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


def show_views(facts: ViewsFacts, monitor: str) -> None:
    """Print a row for each way of asking, and what is shown of them, to stdout; a star marks p < .05."""
    console = Console()
    console = console if console.is_terminal else Console(width=140)
    start_table(console, f"{monitor} by what it sees   (95 % intervals; * p < .05 by Holm)", _COLUMNS)
    print_rows(console, _COLUMNS, view_rows(facts))
    say(console, in_words(facts))


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


def _change(of: SeenDifference | None) -> str:
    if of is None or of["difference"] is None:
        return DASH
    return signed_with_interval(of["difference"], of["difference_ci"]) + ("*" if of["shown"] else "")
