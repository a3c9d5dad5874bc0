"""What a monitor sees, compared: a row for each way of asking it, and a picture of what each changes."""

from markupsafe import Markup
from matplotlib.figure import Figure

from monitorbench.config.terminal import opened
from monitorbench.metrics.views import AT_THRESHOLDS, SeenDifference, ViewsFacts, in_words
from monitorbench.metrics.written import DASH, count, rate, rate_with_interval, signed_with_interval
from monitorbench.report.drawing import COLOURS, INK, MARK_ID, draw, shortened
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
    console = opened(width=140)
    start_table(console, f"{monitor} by what it sees   (95 % intervals; * p < .05 by Holm)", _COLUMNS)
    asked = facts["asked"].items()
    rows = [
        [
            name,
            rate_with_interval(of["auroc"], of["auroc_ci"]),
            *(_change(of["changes"].get(measure)) for measure in ("auroc", "miss_rate_at_far_5")),
            DASH if of["n_both"] is None else count(of["n_both"]),
            count(of["n_not_shown"]),
            count(of["n_unscored"]),
            DASH if of["tokens"] is None else f"{of['tokens']:,.0f}",
            rate(of["seconds"]),
        ]
        for name, of in asked
    ]
    print_rows(console, _COLUMNS, rows)
    if any(of["rates_at_threshold"] for _, of in asked):
        start_table(console, "at calibrated thresholds, each its own", _AT_THRESHOLD)
        for name, of in asked:
            rates = (rate(of["rates_at_threshold"].get(measure)) for measure in AT_THRESHOLDS)
            changes = (_change(of["at_threshold"].get(measure)) for measure in AT_THRESHOLDS)
            print_rows(console, _AT_THRESHOLD, [[name, *rates, *changes]])
    if categories := list(dict.fromkeys(category for _, of in asked for category in of["by_category"])):
        columns = (_COLUMNS[0], *((category, 21) for category in categories))
        start_table(console, f"AUROC minus {facts['first']}'s, by category", columns)
        for name, of in asked:
            if of["by_category"]:
                changes = (_change(of["by_category"].get(category)) for category in categories)
                print_rows(console, columns, [[name, *changes]])
    say(console, in_words(facts))


def _change(of: SeenDifference | None) -> str:
    if of is None or of["difference"] is None:
        return DASH
    return signed_with_interval(of["difference"], of["difference_ci"]) + ("*" if of["shown"] else "")


def seen_figure(facts: ViewsFacts) -> Markup:
    """AUROC minus the first way's, with 95 % intervals, and mean tokens of an answer beside it, as SVG."""
    return draw(
        "views", f"AUROC beside {facts['first']}, and tokens, by what is shown", lambda: _figure(facts)
    )


def _figure(facts: ViewsFacts) -> Figure:
    names = list(facts["asked"])
    figure = Figure(figsize=(7.2, 1.1 + 0.32 * len(names)), layout="constrained")
    changes, tokens = figure.subplots(1, 2, sharey=True, width_ratios=(3, 1))
    changes.axvline(0, color=INK, ls=":", lw=1, alpha=0.6)
    for row, of in enumerate(facts["asked"].values()):
        auroc = of["changes"].get("auroc")
        if auroc is not None and auroc["difference"] is not None:
            shade = COLOURS[2] if auroc["shown"] else COLOURS[0]
            if auroc["difference_ci"]:
                changes.plot(auroc["difference_ci"], [row, row], color=shade, lw=2)
            changes.plot([auroc["difference"]], [row], "o", color=shade, gid=f"{MARK_ID}-{row}")
        if of["tokens"] is not None:
            tokens.barh(row, of["tokens"], color=COLOURS[0], height=0.5)
    changes.set_yticks(range(len(names)), [shortened(name, 40) for name in names], fontsize=8)
    changes.set_ylim(len(names) - 0.5, -0.5)
    changes.set_xlabel(f"AUROC minus {shortened(facts['first'], 30)}'s (blue: shown by Holm)")
    tokens.set_xlabel("tokens an answer")
    for axes in (changes, tokens):
        axes.grid(axis="x", color=INK, alpha=0.12)
        axes.spines[["top", "right"]].set_visible(False)
    return figure
