"""The sections of thresholds: both rates in one plane, a slider, other ones, and what gives labels away.

A number that is None is not drawn. On the slider a reader sees what a threshold costs at the stakes of their
own.
"""

from math import dist

from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from monitorbench.metrics.columns import OVERALL
from monitorbench.metrics.cost_fronts import rate_fronts
from monitorbench.metrics.marks import MARK, SHORT_WORDS, checked, in_words, title
from monitorbench.metrics.points_in_words import flagged_above, notes, promise
from monitorbench.metrics.results import OperatingPointFacts, Results, short_names
from monitorbench.metrics.table import NO_PROMPT, Numbers
from monitorbench.metrics.written import interval, rate
from monitorbench.report.drawing import (
    INK,
    LINES,
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
from monitorbench.report.samples.judged import Scores
from monitorbench.report.sections import curves as figures_curves
from monitorbench.report.sections.section import NOTHING, Material, PageNumber, fill
from monitorbench.report.tables.published import ARXIV, PUBLISHED, correlations_in_words
from monitorbench.report.template import visible

_LEAST_ARROW = 0.02
"""Points nearer than this have no arrow: it would be all head."""
_LABELS = {"Qwen3-14B": (7, 1), "Gemini-2.5-Flash": (-3, 6)}
"""Offsets of published names from their arrows' heads, in points, so that none covers another."""


def scatter(results: Results, *, other_points: bool = False) -> Markup:
    """Overall MR against FAR, one point a monitor and prompt, with Wilson intervals and the fronts.

    Arrows go from a monitor's direct to its evidence prompt. With `other_points` the paper's are drawn too,
    faint: they are of another dataset.
    """
    label = "Miss rate against false alarm rate of each monitor"
    return draw("scatter", label, lambda: scatter_figure(results, other_points))


def scatter_figure(results: Results, other_points: bool) -> Figure:
    """Build the figure of `scatter`, not yet as SVG."""
    names, prompts = results["table"].monitors(), results["table"].prompts()
    figure = Figure(figsize=(5.6, 6.0 + 0.2 * ((len(names) + 1) // 2)), layout="constrained")
    axes = figure.add_subplot()
    axes.plot([0, 1], [1, 0], ":", color=INK, alpha=0.4, lw=1)
    if other_points:
        _overlay(axes)
    for prompt, line in zip(prompts, LINES, strict=False):
        _front(axes, results, prompt, line)
    numbered, dots = numbers(names), Dots()
    for i, name in enumerate(names):
        reference = results["table"].is_reference(name)
        for j, prompt in enumerate([NO_PROMPT] if reference else prompts):
            overall = results["table"].lookup(name, prompt, OVERALL)
            if overall:
                marker = "s" if reference else MARKERS[j % len(MARKERS)]
                _point(axes, overall, colour(i), marker, numbered[name], f"{MARK_ID}-{i}-{j}", dots)
        for direct, evidence in results["table"].prompt_pairs(name):
            ends = [_rates(results["table"].lookup(name, prompt, OVERALL)) for prompt in (direct, evidence)]
            if ends[0] and ends[1]:
                _arrow(axes, ends[0], ends[1], colour(i), 1.2, 0.9)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), box_aspect=1)
    axes.set_xlabel("false alarm rate: share of benign flagged")
    axes.set_ylabel("miss rate: share of misbehavior not flagged")
    axes.set_title("↙ lower left is better", loc="left", fontsize=9)
    plain(axes)
    shorts, entries = short_names(results), list[tuple[Artist, str]]()
    for i, name in enumerate(names):
        mark = "s" if results["table"].is_reference(name) else "o"
        shown = f"{numbered[name]} {shortened(shorts[name], 34)}".strip()
        entries.append((Line2D([], [], ls="", marker=mark, color=colour(i)), shown))
    for j, prompt in enumerate(prompts):
        front = LINES[j] if j < len(LINES) else ""  # there may be more prompts than kinds of line
        mark = MARKERS[j % len(MARKERS)]
        shown = shortened(f"{prompt} prompt{', its front' if front else ''}", 34)
        entries.append((Line2D([], [], ls=front, color=INK, lw=1, marker=mark, mfc="none"), shown))
    entries.append((Line2D([], [], ls=":", color=INK, alpha=0.5), "guessing"))
    if other_points:
        of_others = Line2D([], [], ls="", marker="o", ms=4, mfc="none", color=INK, alpha=0.5)
        entries.append((of_others, "published, another dataset"))
    legend(figure, entries, 8.5)
    return figure


def _point(axes: Axes, found: Numbers, shade: str, marker: str, number: str, gid: str, dots: Dots) -> None:
    point = _rates(found)
    if point is None:
        return
    far, mr = point
    missed, alarms = found["miss_rate"].interval, found["false_alarm_rate"].interval
    if missed and alarms:
        axes.plot([far, far], missed, color=shade, alpha=0.55, lw=1, zorder=2)
        axes.plot(alarms, [mr, mr], color=shade, alpha=0.55, lw=1, zorder=2)
    axes.plot([far], [mr], marker, zorder=3, clip_on=False, gid=gid, **dots.marker(far, mr, shade))
    axes.annotate(number, (far, mr), (4, 4), textcoords="offset points", fontsize=7, zorder=4)


def _overlay(axes: Axes) -> None:
    for published in PUBLISHED:
        (direct_mr, direct_far), (evidence_mr, evidence_far) = published.direct, published.evidence
        direct, evidence = (direct_far, direct_mr), (evidence_far, evidence_mr)
        axes.plot(*zip(direct, evidence, strict=True), "o", ms=4, mfc="none", color=INK, alpha=0.45, zorder=1)
        _arrow(axes, direct, evidence, INK, 0.8, 0.45)
        axes.annotate(
            published.monitor,
            evidence,
            _LABELS.get(published.monitor, (5, 2)),
            textcoords="offset points",
            fontsize=6.5,
            alpha=0.6,
            zorder=1,
        )


def _arrow(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    shade: str,
    width: float,
    alpha: float,
) -> None:
    if dist(start, end) < _LEAST_ARROW:
        return
    style = {"arrowstyle": "->", "color": shade, "lw": width, "alpha": alpha, "shrinkA": 3, "shrinkB": 3}
    axes.annotate("", end, start, arrowprops=style, zorder=2)


def _front(axes: Axes, results: Results, prompt: str, line: str) -> None:
    """The border of what some monitor reaches: right of and above it, one on the front is no worse."""
    names = rate_fronts(results["table"]).get(prompt, [])
    rates = [_rates(results["table"].lookup(name, prompt)) for name in names]
    points = sorted(point for point in rates if point)
    if points:
        x = [points[0][0], *(far for far, _ in points), 1.0]
        y = [1.0, *(mr for _, mr in points), points[-1][1]]
        axes.step(x, y, line, where="post", color=INK, alpha=0.55, lw=1)


def _rates(found: Numbers | None) -> tuple[float, float] | None:
    """Return FAR and MR, where both are known."""
    if found is None:
        return None
    missed, alarms = found["miss_rate"].value, found["false_alarm_rate"].value
    return None if missed is None or alarms is None else (alarms, missed)


def _has_rates(material: Material) -> bool:
    """Whether some monitor has both rates."""
    return any(
        None not in (numbers["miss_rate"].value, numbers["false_alarm_rate"].value)
        for judged in material.results["table"].in_order()
        for numbers in [material.results["table"].parts(*judged)[OVERALL]]
    )


def plane(material: Material) -> Markup:
    """Miss rate against false alarm rate, with the Pareto fronts."""
    if not _has_rates(material):
        return NOTHING
    results = material.results
    values = {
        "scatter": scatter(results, other_points=material.other_points),
        "other_points": material.other_points,
        "answers": _answers(results),
        "arxiv": ARXIV,
        "has_arrows": any(results["table"].prompt_pairs(name) for name in results["table"].monitors()),
        "correlations": correlations_in_words(results),
    }
    return fill("plane", values)


def _has_curves(material: Material) -> bool:
    """Whether some monitor that reads a prompt has scores to draw curves of."""
    return any(
        curve["roc"]
        for name, by_prompt in material.results["curves"].items()
        for curve in by_prompt.values()
        if not material.results["table"].is_reference(name)
    )


def other_thresholds(material: Material) -> Markup:
    """ROC curves and reliability diagrams."""
    if not _has_curves(material):
        return NOTHING
    results = material.results
    values = {
        "roc": [figures_curves.roc(results, prompt) for prompt in material.prompts],
        "reliability": [
            figures_curves.reliability(results, prompt)
            for prompt in material.prompts
            if figures_curves.has_reliability(results, prompt)
        ],
        "answers": _answers(results),
    }
    return fill("thresholds", values)


def shortcuts(material: Material) -> Markup:
    """The shortcut checks: what tells misbehavior from benign without reading, by cell."""
    results = material.results
    if not results["shortcuts"]:
        return fill("no_shortcuts", {}) if results["dataset"].get("without_texts") else NOTHING
    rows: list[list[str | PageNumber]] = []
    for name in checked(results):
        checks, by = results["shortcuts"][name]["checks"], results["shortcuts"][name]["marked_by"]
        numbers = [
            PageNumber(rate(check["auroc"]), interval(check["auroc_ci"]), is_strong=check["marked"])
            for check in checks.values()
        ]
        n = max(check["n"] for check in checks.values())
        mark = in_words(by, checks[by]) if by is not None else ""
        rows.append([title(results, name), str(n), *numbers, mark])
    return fill(
        "shortcuts",
        {"rows": rows, "checks": [SHORT_WORDS[check_name] for check_name in checks], "mark": MARK},
    )


def _answers(results: Results) -> str:
    """Say whether the rates are of a calibrated threshold or of the monitors' own answers."""
    return (
        "answers by a calibrated threshold" if "operating_point" in results else "each monitor's own answers"
    )


def slider(material: Material) -> Markup:
    """The controls, empty until the page's script fills them, and the scores as JSON that nobody executes."""
    results = material.results
    if not material.scores:
        return NOTHING
    chosen = results["decision"]
    curves = [_curve(material, scores) for scores in material.scores]
    first = [
        i
        for i, scores in enumerate(material.scores)
        if (scores.monitor, scores.prompt) == (chosen["monitor"], chosen["prompt"])
    ]
    data = {"curves": curves, "stakes": results["stakes"], "first": first[0] if first else 0}
    without = [
        f"{material.short_names[name]} ({prompt})"
        for name, by_prompt in results["usage"].items()
        for prompt in by_prompt
        if (name, prompt) not in {(scores.monitor, scores.prompt) for scores in material.scores}
    ]
    # JSON that can't end the element it stands in, whatever a name holds.
    inert = htmlsafe_json_dumps(data, separators=(",", ":"))
    return fill("slider", {"data": inert, "without": without})


def _curve(material: Material, one: Scores) -> dict[str, object]:
    point = material.results.get("operating_points", {}).get(one.monitor, {}).get(one.prompt)
    return {
        "name": visible(f"{material.short_names[one.monitor]}, {one.prompt} prompt"),
        "n_without": one.n_without,
        "point": _slider_point(material.results, point),
        **one.packed(),
    }


def _slider_point(results: Results, point: OperatingPointFacts | None) -> dict[str, object] | None:
    """The calibrated threshold; None as its value where each category has its own."""
    if point is None:
        return None
    thresholds = point["thresholds"]
    common = thresholds[0]["threshold"] if [t["category"] for t in thresholds] == [""] else None
    remarks = [
        f"calibrated: {flagged_above(thresholds)}, {promise(thresholds)}",
        *notes(results["dataset"]["directory"], point),
    ]
    text = visible("; ".join(remarks))
    return {"threshold": common, "text": text}
