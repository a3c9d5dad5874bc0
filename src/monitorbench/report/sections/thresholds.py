"""The sections of the two rates in one plane, of other thresholds, and of what gives labels away unread."""

from markupsafe import Markup

from monitorbench.metrics import reading
from monitorbench.metrics.columns import OVERALL
from monitorbench.metrics.marks import MARK, SHORT_WORDS, in_words
from monitorbench.metrics.results import Results
from monitorbench.metrics.written import interval, rate
from monitorbench.report.figures import curves as figures_curves
from monitorbench.report.figures import scatter as figures_scatter
from monitorbench.report.sections.section import NOTHING, Material, PageNumber, fill
from monitorbench.report.tables import significance
from monitorbench.report.tables.published import ARXIV


def _has_rates(material: Material) -> bool:
    """Whether some monitor has both rates."""
    return any(
        None not in (numbers["miss_rate"].value, numbers["false_alarm_rate"].value)
        for judged in reading.judged(material.results)
        for numbers in [material.results["table"].parts(*judged)[OVERALL]]
    )


def plane(material: Material) -> Markup:
    """Miss rate against false alarm rate, with the Pareto fronts."""
    if not _has_rates(material):
        return NOTHING
    results = material.results
    values = {
        # Safe to put in as it is: drawn here, every name in it an outline or escaped.
        "scatter": Markup(figures_scatter.scatter(results, other_points=material.other_points)),
        "other_points": material.other_points,
        "answers": _answers(results),
        "arxiv": ARXIV,
        "correlations": significance.correlations_in_words(results),
    }
    return fill("plane", values)


def _has_curves(material: Material) -> bool:
    """Whether some monitor that reads a prompt has scores to draw curves of."""
    return any(
        curve["roc"]
        for name, by_prompt in material.results["curves"].items()
        for curve in by_prompt.values()
        if not reading.is_reference(material.results, name)
    )


def other_thresholds(material: Material) -> Markup:
    """ROC curves and reliability diagrams."""
    if not _has_curves(material):
        return NOTHING
    results = material.results
    values = {
        # Safe to put in as they are: drawn here, every name in them an outline or escaped.
        "roc": [Markup(figures_curves.roc(results, prompt)) for prompt in material.prompts],
        "reliability": [
            Markup(figures_curves.reliability(results, prompt))
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
    for name in reading.checked(results):
        checks, by = results["shortcuts"][name]["checks"], results["shortcuts"][name]["marked_by"]
        numbers = [
            PageNumber(rate(check["auroc"]), interval(check["auroc_ci"]), is_strong=check["marked"])
            for check in checks.values()
        ]
        n = max(check["n"] for check in checks.values())
        mark = in_words(by, checks[by]) if by is not None else ""
        rows.append([reading.title(results, name), str(n), *numbers, mark])
    return fill(
        "shortcuts",
        {"rows": rows, "checks": [SHORT_WORDS[check_name] for check_name in checks], "mark": MARK},
    )


def _answers(results: Results) -> str:
    """Say whether the rates are of a calibrated threshold or of the monitors' own answers."""
    return (
        "answers by a calibrated threshold" if "operating_point" in results else "each monitor's own answers"
    )
