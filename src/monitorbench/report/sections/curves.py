"""ROC and reliability under one prompt, as SVG; a monitor without scores is not drawn."""

from collections.abc import Callable

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from monitorbench.metrics.results import CurvePoint, Results, short_names
from monitorbench.metrics.summary import Curves
from monitorbench.metrics.table import NO_PROMPT
from monitorbench.report.drawing import (
    COLOURS,
    INK,
    MARK_ID,
    MARKERS,
    Dots,
    colour,
    draw,
    legend,
    numbers,
    plain,
    shortened,
)

_PANEL = 4.1
"""Inches of a panel's side."""
_LOW_FAR = (0.01, 0.05)


def roc(results: Results, prompt: str) -> Markup:
    """The share of misbehavior flagged against FAR, with the point each monitor's own answers are at."""
    label = f"ROC curve of each monitor, {prompt} prompt"
    return draw(_name(results, "roc", prompt), label, lambda: roc_figure(results, prompt))


def reliability(results: Results, prompt: str) -> Markup:
    """The share of misbehavior among samples of like scores against their mean score, Wilson bars."""
    label = f"Share of misbehavior by score of each monitor, {prompt} prompt"
    return draw(_name(results, "reliability", prompt), label, lambda: reliability_figure(results, prompt))


def has_reliability(results: Results, prompt: str) -> bool:
    """Whether some monitor has enough scores under a prompt for bins that say something."""
    curves = [curves_of(results, name, prompt) for name in results["table"].drawn_in()]
    return any(curve["reliability"] for curve in curves if curve)


def roc_figure(results: Results, prompt: str) -> Figure:
    """Build the figure of `roc`, not yet as SVG."""
    return _panel(results, prompt, _roc)


def reliability_figure(results: Results, prompt: str) -> Figure:
    """Build the figure of `reliability`, not yet as SVG."""
    return _panel(results, prompt, _reliability)


def _name(results: Results, kind: str, prompt: str) -> str:
    return f"{kind}-{results['table'].prompts().index(prompt)}"


def curves_of(results: Results, monitor: str, prompt: str) -> Curves | None:
    """A monitor's curves under a prompt; a reference has the same under every prompt."""
    curve_prompt = NO_PROMPT if results["table"].is_reference(monitor) else prompt
    return results["curves"].get(monitor, {}).get(curve_prompt)


def _panel(results: Results, prompt: str, paint: Callable[[Axes, Results, str], None]) -> Figure:
    drawn, shorts = results["table"].drawn_in(), short_names(results)
    names = results["table"].monitors()
    height = _PANEL + 0.4 + 0.2 * (-(-len(drawn) // 2))
    figure = Figure(figsize=(_PANEL + 0.2, height), layout="constrained")
    axes = figure.add_subplot()
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), box_aspect=1)
    plain(axes)
    axes.set_title(f"{shortened(prompt, 40)} prompt", loc="left", fontsize=9)
    axes.plot([0, 1], [0, 1], ":", color=INK, alpha=0.4, lw=1)
    paint(axes, results, prompt)
    numbered = numbers(names)
    legend(
        figure,
        (
            (
                Line2D([], [], color=colour(names.index(name)), ls=_line(results, name), lw=1.4),
                f"{numbered[name]} {shortened(shorts[name], 30)}".strip(),
            )
            for name in drawn
        ),
    )
    return figure


def _roc(axes: Axes, results: Results, prompt: str) -> None:
    axes.set_xlabel("false alarm rate")
    axes.set_ylabel("misbehavior flagged (1 − MR)")
    for far in _LOW_FAR:
        axes.axvline(far, color=INK, ls=":", lw=0.8, alpha=0.7)
    names, dots = results["table"].monitors(), Dots()
    numbered = numbers(names)
    for name in results["table"].drawn_in():
        i = names.index(name)
        curve = curves_of(results, name, prompt)
        if curve and curve["roc"]:
            x, y = [far for far, _ in curve["roc"]], [1 - mr for _, mr in curve["roc"]]
            axes.plot(x, y, _line(results, name), color=colour(i), lw=1.3)
        missed = results["table"].value(name, prompt, "miss_rate")
        alarms = results["table"].value(name, prompt, "false_alarm_rate")
        if missed is not None and alarms is not None:
            point = alarms, 1 - missed
            marker = "s" if results["table"].is_reference(name) else MARKERS[0]
            (mark,) = axes.plot([point[0]], [point[1]], marker, zorder=3, **dots.marker(*point, colour(i)))
            mark.set(clip_on=False, gid=f"{MARK_ID}-{i}")
            axes.annotate(numbered[name], point, (4, -8), textcoords="offset points", fontsize=7)


def _reliability(axes: Axes, results: Results, prompt: str) -> None:
    axes.set_xlabel("mean score")
    axes.set_ylabel("share of misbehavior")
    names = results["table"].monitors()
    numbered = numbers(names)
    for name in results["table"].drawn_in():
        curve = curves_of(results, name, prompt)
        bins = curve["reliability"] if curve else []
        if not bins:
            continue
        shade = colour(names.index(name))
        x, y = [bucket["mean_score"] for bucket in bins], [bucket["share_misbehavior"] for bucket in bins]
        for bucket in bins:
            if bucket["share_misbehavior_ci"]:
                positions = [bucket["mean_score"]] * 2
                axes.plot(positions, bucket["share_misbehavior_ci"], color=shade, alpha=0.35, lw=1)
        axes.plot(x, y, _line(results, name), color=shade, lw=0.8, alpha=0.6)
        axes.plot(x, y, "o", ms=3.5, color=shade, gid=f"{MARK_ID}-{names.index(name)}")
        axes.annotate(numbered[name], (x[-1], y[-1]), (4, -3), textcoords="offset points", fontsize=7)


def _line(results: Results, name: str) -> str:
    return "--" if results["table"].is_reference(name) else "-"


def learning_curves(results: Results) -> Markup | None:
    """Validation AUROC and training loss by step, a row an adapter; None where none were recorded."""
    curves = {name: points for name, points in results["learning_curves"].items() if points}
    if not curves:
        return None
    return draw("curves", "Validation AUROC and training loss by step", lambda: _curves(curves))


def _curves(curves: dict[str, list[CurvePoint]]) -> Figure:
    figure = Figure(figsize=(5.6, 0.3 + 1.9 * len(curves)), layout="constrained")
    grid = figure.subplots(len(curves), 2, squeeze=False, sharex="row")
    for i, ((auroc_axes, loss_axes), (name, points)) in enumerate(zip(grid, curves.items(), strict=True)):
        auroc_points = [(p["step"], p["auroc"], p["auroc_ci"]) for p in points if p["auroc"] is not None]
        band = [(step, *bounds) for step, _, bounds in auroc_points if bounds]
        if band:
            auroc_axes.fill_between(*zip(*band, strict=True), color=COLOURS[2], alpha=0.25, lw=0)
        steps, aurocs = [k[0] for k in auroc_points], [k[1] for k in auroc_points]
        auroc_axes.plot(steps, aurocs, ".-", color=COLOURS[2], lw=1.2, gid=f"{MARK_ID}-{i}")
        auroc_axes.axhline(0.5, color=INK, ls=":", lw=1, alpha=0.5)
        auroc_axes.set_ylim(min([0.35, *(b[1] for b in band)]), 1.02)
        auroc_axes.set_title(shortened(name, 40), loc="left", fontsize=9)
        auroc_axes.set_ylabel("validation AUROC")
        losses = [(p["step"], p["loss"]) for p in points if p["loss"] is not None]
        loss_axes.plot([s for s, _ in losses], [v for _, v in losses], ".-", color=COLOURS[1], lw=1.2)
        loss_axes.set_ylim(0, 1.08 * max([v for _, v in losses], default=1) or 1)
        loss_axes.set_ylabel("training loss")
        for axes in (auroc_axes, loss_axes):
            plain(axes)
            axes.set_xlabel("step")
    return figure
