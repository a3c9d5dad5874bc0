"""Error rates against the length of what a monitor reads, by where the judged response stands in it."""

from collections import defaultdict

from matplotlib.figure import Figure

from monitorbench.metrics.robustness.compare import Measure
from monitorbench.metrics.robustness.worst import StressFacts
from monitorbench.report.figures.drawing import INK, LINES, MARK_ID, colour, draw

_PANELS: tuple[tuple[Measure, str], ...] = (
    ("miss_rate", "miss rate"),
    ("false_alarm_rate", "false alarm rate"),
)
_LEAST_LENGTHS = 2
Curves = dict[tuple[str, str], dict[int, str]]
"""Names of changes by family and place, and by length in thousands of tokens."""


def lengths(facts: StressFacts, name: str) -> str | None:
    """The curves of a stress run's padded texts, as SVG; None where fewer than two lengths were tried."""
    curves = curves_of(facts)
    if not any(len(points) >= _LEAST_LENGTHS for points in curves.values()):
        return None
    return draw(name, "Miss rate and false alarm rate by length and position", lambda: _figure(facts, curves))


def curves_of(facts: StressFacts) -> Curves:
    """The changes that lengthen a text, such as `turns.8k.middle`, where they applied to a sample."""
    curves: Curves = defaultdict(dict)
    for name, change in facts["changes"].items():
        family, _, rest = name.partition(".")
        size, _, place = rest.partition(".")
        if family in ("padding", "turns") and size[:-1].isdigit() and change["n"]:
            curves[family, place][int(size[:-1])] = name
    return dict(curves)


def _figure(facts: StressFacts, curves: Curves) -> Figure:
    figure = Figure(figsize=(6.4, 3.0), layout="constrained")
    places = list(dict.fromkeys(place for _, place in curves))
    families = list(dict.fromkeys(family for family, _ in curves))
    panels = figure.subplots(1, len(_PANELS), sharex=True)
    for axes, (measure, heading) in zip(panels, _PANELS, strict=True):
        for (family, place), by_length in curves.items():
            moved = {size: facts["changes"][by_length[size]][measure] for size in sorted(by_length)}
            style = {"color": colour(places.index(place) + 1), "ls": LINES[families.index(family)]}
            after = [(size, of["after"]) for size, of in moved.items() if of["after"] is not None]
            before = [(size, of["before"]) for size, of in moved.items() if of["before"] is not None]
            if after:
                gid = f"{MARK_ID}-{places.index(place)}"
                axes.plot(
                    *zip(*after, strict=True),
                    marker="o",
                    ms=3,
                    lw=1.3,
                    gid=gid,
                    **style,
                    label=f"{family}, {place}",
                )
                axes.plot(*zip(*before, strict=True), ":", color=style["color"], lw=0.8, alpha=0.7)
        axes.set(xscale="log", ylim=(-0.03, 1.03), xlabel="thousand tokens", title=heading)
        axes.title.set_fontsize(9)
        axes.grid(color=INK, alpha=0.12)
        axes.spines[["top", "right"]].set_visible(False)
    ticks = sorted({size for by_length in curves.values() for size in by_length})
    panels[0].set_xticks(ticks, [str(size) for size in ticks])
    panels[0].minorticks_off()
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower left", ncols=3, fontsize=8)
    return figure
