"""Learning curves by training step, as an SVG string."""

from matplotlib.figure import Figure

from monitorbench.metrics.results import CurvePoint, Results
from monitorbench.report.figures.style import COLOURS, shortened
from monitorbench.report.figures.svg import INK, draw


def learning_curves(results: Results) -> str | None:
    """Validation AUROC and training loss by step, a row an adapter; None where none were recorded."""
    curves = {name: points for name, points in results.get("learning_curves", {}).items() if points}
    if not curves:
        return None
    return draw("curves", "Validation AUROC and training loss by step", lambda: _curves(curves))


def _curves(curves: dict[str, list[CurvePoint]]) -> Figure:
    figure = Figure(figsize=(5.6, 0.3 + 1.9 * len(curves)), layout="constrained")
    grid = figure.subplots(len(curves), 2, squeeze=False, sharex="row")
    for (left, right), (name, points) in zip(grid, curves.items(), strict=True):
        known = [(p["step"], p["auroc"], p["auroc_ci"]) for p in points if p["auroc"] is not None]
        band = [(step, *bounds) for step, _, bounds in known if bounds]
        if band:
            left.fill_between(*zip(*band, strict=True), color=COLOURS[2], alpha=0.25, lw=0)
        left.plot([k[0] for k in known], [k[1] for k in known], ".-", color=COLOURS[2], lw=1.2)
        left.axhline(0.5, color=INK, ls=":", lw=1, alpha=0.5)
        left.set_ylim(min([0.35, *(b[1] for b in band)]), 1.02)
        left.set_title(shortened(name, 40), loc="left", fontsize=9)
        left.set_ylabel("validation AUROC")
        losses = [(p["step"], p["loss"]) for p in points if p["loss"] is not None]
        right.plot([s for s, _ in losses], [v for _, v in losses], ".-", color=COLOURS[1], lw=1.2)
        right.set_ylim(0, 1.08 * max([v for _, v in losses], default=1) or 1)
        right.set_ylabel("training loss")
        for axes in (left, right):
            axes.grid(color=INK, alpha=0.12)
            axes.spines[["top", "right"]].set_visible(False)
            axes.set_xlabel("step")
    return figure
