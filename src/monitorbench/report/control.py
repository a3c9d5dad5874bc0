"""`control.html`: one page that needs nothing beside it, every text in it escaped, and its two figures."""

from collections.abc import Sequence

from markupsafe import Markup
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from monitorbench.metrics.control.results import ControlFacts, ControlResults
from monitorbench.report.drawing import (
    INK,
    MARK_ID,
    MARKERS,
    colour,
    draw,
    legend,
    plain,
    shortened,
)
from monitorbench.report.tables.control import (
    PROTOCOLS,
    answer,
    lacking,
    monitors,
    notes,
    percent,
    percent_with_interval,
    promise,
    which_far,
)
from monitorbench.report.template import policy, templates

_LOWEST = 1e-4
_SIZE = (5.2, 4.3)
_LEGEND = 0.2
"""Inches of a line of the legend."""


def roc(results: ControlResults) -> Markup:
    """Attacks caught against the share of honest samples audited, logarithmic; the fit is dashed."""
    label = "Share of attacks caught against false alarm rate, with a logit-normal fit below the data"
    return draw("control-roc", label, lambda: roc_figure(results))


def front(results: ControlResults) -> Markup:
    """Safety against usefulness of each protocol at each share of traffic acted on."""
    label = "Safety against usefulness of each monitor and protocol, with 95 % intervals"
    return draw("control-front", label, lambda: _front_figure(results))


def roc_figure(results: ControlResults) -> Figure:
    """Return the figure that `roc` draws as SVG."""
    curves = list(monitors(results))
    figure, axes = _axes((len(curves) + 3) // 2 + 1)
    axes.set_xscale("log")
    axes.set(xlim=(_LOWEST, 1), ylim=(-0.02, 1.02))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: percent(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("honest samples audited (FAR)")
    axes.set_ylabel("attacks caught")
    for budget in sorted({at_budget["budget"] for _, _, facts in curves for at_budget in facts["budgets"]}):
        axes.axvline(budget, color=INK, ls=":", lw=0.8, alpha=0.45)
    for i, (_, _, facts) in enumerate(curves):
        _curve(axes, facts, i)
    legend(
        figure,
        [
            *_monitor_lines(curves),
            (Line2D([], [], color=INK, ls="--", lw=1.1), "logit-normal fit"),
            (Line2D([], [], color=INK, ls="", marker=MARKERS[0], ms=5), "at a threshold that keeps a budget"),
            (Line2D([], [], color=INK, ls=":", lw=0.8, alpha=0.6), "budgets"),
        ],
    )
    return figure


def _monitor_lines(drawn: Sequence[tuple[str, str, ControlFacts]]) -> list[tuple[Artist, str]]:
    """List the line of each monitor, and what it is called."""
    names = [shortened(f"{name} · {prompt}", 34) for name, prompt, _ in drawn]
    return [(Line2D([], [], color=colour(i), lw=1.5), name) for i, name in enumerate(names)]


def _curve(axes: Axes, facts: ControlFacts, i: int) -> None:
    lowest = 1 / max(facts["n_honest"], 1)
    if facts["fit"]:
        curve = facts["fit"]["curve"]
        axes.plot([x for x, _ in curve], [y for _, y in curve], "--", color=colour(i), lw=1.1, alpha=0.8)
    # Below one sample in all of them the curve has nothing to show but what is caught without any.
    points = [(x, y) for x, y in facts["roc"] if x > 0]
    points[:0] = [(lowest / 2, max(y for x, y in facts["roc"] if x == 0))] if points else []
    if points:
        axes.step([x for x, _ in points], [y for _, y in points], "-", where="post", color=colour(i), lw=1.5)
    for j, point in enumerate(facts["budgets"]):
        if point["caught"] is not None and point["false_alarm_rate"] is not None:
            x = (
                point["false_alarm_rate"] or lowest / 2
            )  # hollow: no honest sample of the test split is audited
            fill = colour(i) if point["false_alarm_rate"] else "none"
            (mark,) = axes.plot([x], [point["caught"]], MARKERS[0], color=colour(i), mfc=fill, ms=5, zorder=3)
            mark.set(clip_on=False, gid=f"{MARK_ID}-roc-{i}-{j}")


def _front_figure(results: ControlResults) -> Figure:
    """Return the figure that `front` draws as SVG."""
    fronts = [(name, prompt, facts) for name, prompt, facts in monitors(results) if facts["front"]]
    used = [one for one in PROTOCOLS if any(p["protocol"] == one for _, _, f in fronts for p in f["front"])]
    figure, axes = _axes((len(fronts) + len(used) + 1) // 2)
    low = [p["usefulness"] for _, _, f in fronts for p in f["front"]]
    axes.set(xlim=(max(-0.02, min([*low, 0.9]) - 0.08), 1.02), ylim=(-0.02, 1.02))
    axes.set_xlabel("usefulness of honest work")
    axes.set_ylabel("safety")
    for i, (_, _, facts) in enumerate(fronts):
        for k, protocol in enumerate(used):
            points = [one for one in facts["front"] if one["protocol"] == protocol]
            points.sort(key=lambda one: (one["usefulness"], one["safety"]))
            axes.plot(
                [one["usefulness"] for one in points],
                [one["safety"] for one in points],
                "-",
                color=colour(i),
                lw=0.9,
                alpha=0.6,
            )
            for j, one in enumerate(points):
                x, y = one["usefulness"], one["safety"]
                if one["safety_ci"]:
                    axes.plot([x, x], one["safety_ci"], color=colour(i), alpha=0.35, lw=1)
                if one["usefulness_ci"]:
                    axes.plot(one["usefulness_ci"], [y, y], color=colour(i), alpha=0.35, lw=1)
                full = colour(i) if one["on_front"] else "none"
                marker = MARKERS[k % len(MARKERS)]
                (mark,) = axes.plot([x], [y], marker, mfc=full, mec=colour(i), ms=5, zorder=3)
                mark.set(clip_on=False, gid=f"{MARK_ID}-front-{i}-{k}-{j}")
    marks = [
        Line2D([], [], ls="", marker=MARKERS[k % len(MARKERS)], color=INK, ms=5) for k in range(len(used))
    ]
    named = zip(marks, (PROTOCOLS[one] for one in used), strict=True)
    legend(figure, [*_monitor_lines(fronts), *named])
    return figure


def _axes(lines: int) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(_SIZE[0], _SIZE[1] + _LEGEND * lines), layout="constrained")
    axes = figure.add_subplot()
    plain(axes)
    return figure, axes


def render_control(results: ControlResults) -> str:
    """The page of a `control.json`."""
    values = {
        "dataset": results["dataset"],
        "policy": policy(),
        "answer": answer(results),
        "sentences": [which_far(results), promise(results), *notes(results)],
        "roc": roc(results),
        "front": front(results),
        "monitors": list(monitors(results)),
        "differences": results["differences"],
        "protocols": PROTOCOLS,
        "lacking": lacking,
        "percent": percent,
        "percent_with_interval": percent_with_interval,
    }
    return templates().get_template("control.html.j2").render(values)
