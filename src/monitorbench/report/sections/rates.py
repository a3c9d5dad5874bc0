"""The sections of every monitor's numbers: overall, by cell, and in matrices of where each errs."""

from collections.abc import Callable
from functools import partial
from typing import Any

from markupsafe import Markup

from monitorbench.metrics.marks import headlines_in_words, marks_in_words, strata, title
from monitorbench.metrics.score_facts import is_inverted
from monitorbench.metrics.table import Numbers, is_cell
from monitorbench.metrics.written import interval_of, value_of
from monitorbench.report.matrix import matrix
from monitorbench.report.sections.section import NOTHING, Material, PageNumber, fill
from monitorbench.report.tables import overall as overall_table
from monitorbench.report.tables.overall import doubt_lines, unscored_lines


def overall(material: Material) -> Markup:
    """The sortable table of everything overall, best first, and the other numbers folded below it."""
    results = material.results
    values = {
        "columns": overall_table.COLUMNS,
        "rows": overall_table.overall_rows(results, material.short_names),
        "more_columns": overall_table.MORE_COLUMNS,
        "more_rows": overall_table.more_rows(results, material.short_names),
        "stakes": results["stakes"],
    }
    return fill("overall", values)


def unscored(material: Material) -> Markup:
    """Show how many answers of each monitor are no label, or never came, and for which reasons."""
    lines = unscored_lines(material.results)
    return fill("unscored", {"lines": lines}) if lines else NOTHING


def doubted(material: Material) -> Markup:
    """Show how many scores of each monitor are bounds, contradict the label, are all alike, or missing."""
    lines = doubt_lines(material.results)
    return fill("doubted_scores", {"lines": lines}) if lines else NOTHING


def by_cell(material: Material) -> Markup:
    """Miss rate, false alarm rate and AUROC in each cell, and in what cuts across the cells."""
    results, prompts = material.results, material.prompts
    slices = results["table"].slices_under
    values = {
        "tables": [(prompt, _blocks(material, prompt)) for prompt in prompts],
        "notes": [*headlines_in_words(results), *marks_in_words(results)],
        "slices": [
            (prompt, [_block(material, prompt, place) for place in slices(prompt)]) for prompt in prompts
        ],
    }
    return fill("by_cell", values)


def by_monitor(material: Material) -> Markup:
    """Miss rate and false alarm rate of every monitor in every cell, each a link to its samples."""
    names = material.results["table"].drawn_in()
    matrices = [
        matrix(material, names, prompt, measure)
        for prompt in material.prompts
        for measure in ("miss_rate", "false_alarm_rate")
    ]
    values = {
        "matrices": matrices,
        "linked": bool(material.browsable),
        "trained": material.results["adapters"],
    }
    return fill("by_monitor", values) if matrices else NOTHING


def _blocks(material: Material, prompt: str) -> list[tuple[str, list[dict[str, Any]]]]:
    """The rows of each cell, behind it of its strata."""
    results = material.results
    return [
        _block(material, prompt, place)
        for cell in results["table"].cells_under(prompt)
        for place in (cell, *strata(results, prompt, cell))
    ]


def _block(material: Material, prompt: str, part: str) -> tuple[str, list[dict[str, Any]]]:
    results = material.results
    rows = [
        {
            "monitor": material.short_names[name],
            "n": numbers["n"].whole,
            "n_unscored": numbers["n_unscored"].whole,
            "numbers": _numbers(numbers, partial(_link, material, name, prompt, part)),
        }
        for name in results["table"].shown_in(part)
        if (numbers := results["table"].lookup(name, prompt, part))
    ]
    return title(results, part), rows


def _link(material: Material, monitor: str, prompt: str, part: str, verdict: str) -> str:
    """The address of the samples that a rate counts; the samples page knows cells, and no strata."""
    is_linked = is_cell(part) and part not in material.results["headline"]
    return material.samples_link(monitor, prompt, cell=part, verdict=verdict) if is_linked else ""


def _numbers(found: Numbers, link: Callable[[str], str]) -> tuple[PageNumber, PageNumber, PageNumber]:
    """Miss rate, false alarm rate, AUROC."""

    def rate(name: str, verdict: str) -> PageNumber:
        bounds = found[f"{name}_bounds"]
        bounds_text = interval_of(bounds) if bounds.low != bounds.high else ""
        return PageNumber(value_of(found[name]), interval_of(found[name]), bounds_text, link(verdict))

    auroc = found["auroc"]
    mark = "inverted" if is_inverted(auroc.value, auroc.interval) else ""
    return (
        rate("miss_rate", "miss"),
        rate("false_alarm_rate", "alarm"),
        PageNumber(value_of(auroc), auroc.missing or interval_of(auroc), mark=mark),
    )
