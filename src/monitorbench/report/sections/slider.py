"""The section where a reader moves the threshold, and sees what it costs at the stakes of their own."""

from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from monitorbench.metrics.points_in_words import flagged_above, notes, promise
from monitorbench.metrics.results import OperatingPointFacts, Results
from monitorbench.report.samples.visible import visible
from monitorbench.report.scores import Scores
from monitorbench.report.sections.section import NOTHING, Material, fill


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
        for name, by_prompt in results.get("usage", {}).items()
        for prompt in by_prompt
        if (name, prompt) not in {(scores.monitor, scores.prompt) for scores in material.scores}
    ]
    return fill("slider", {"data": _inert(data), "without": without})


def _curve(material: Material, one: Scores) -> dict[str, object]:
    point = material.results.get("operating_points", {}).get(one.monitor, {}).get(one.prompt)
    return {
        "name": visible(f"{material.short_names[one.monitor]}, {one.prompt} prompt"),
        "n_without": one.n_without,
        "point": _point(material.results, point),
        **one.packed(),
    }


def _point(results: Results, point: OperatingPointFacts | None) -> dict[str, object] | None:
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


def _inert(data: object) -> Markup:
    """JSON that can't end the element it stands in, whatever a name holds."""
    return htmlsafe_json_dumps(data, separators=(",", ":"))
