"""What a monitor sees, drawn: how each way of asking changes the AUROC, and what it reads, in one picture."""

from matplotlib.figure import Figure

from monitorbench.metrics.views import ViewsFacts
from monitorbench.report.figures.drawing import COLOURS, INK, MARK_ID, draw, shortened


def seen_figure(facts: ViewsFacts) -> str:
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
