"""The sections of every monitor's numbers: overall, by cell, and where each errs."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from markupsafe import Markup

from monitorbench.metrics import reading
from monitorbench.metrics.inverted import is_inverted
from monitorbench.metrics.score_facts import COUNTED_AS, ScoreFacts, share_of
from monitorbench.metrics.table import Numbers, is_cell
from monitorbench.metrics.written import interval_of, value_of
from monitorbench.report.figures import heat as figures_heat
from monitorbench.report.sections.section import NOTHING, Material, PageNumber, fill
from monitorbench.report.tables import overall as overall_table
from monitorbench.report.tables.scores import doubted_scores
from monitorbench.report.tables.tables import unscored_rows


class _Row(NamedTuple):
    """One monitor in one cell."""

    monitor: str
    n: int
    n_unscored: int
    numbers: tuple[PageNumber, PageNumber, PageNumber]
    """Miss rate, false alarm rate, AUROC."""


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
    rows = [
        (
            material.short_names[row.monitor],
            row.prompt,
            f"{row.n_unscored:,} of {row.n:,}",
            ", ".join(f"{n} {reason}" for reason, n in row.reasons.items()),
        )
        for row in unscored_rows(material.results)
    ]
    return fill("unscored", {"rows": rows}) if rows else NOTHING


def doubted(material: Material) -> Markup:
    """Show how many scores of each monitor are bounds, contradict the label, are all alike, or missing."""
    rows = [
        (
            material.short_names[row.monitor],
            row.prompt,
            share_of(row.facts["n_censored"], row.facts["n_with_score"]),
            share_of(row.facts["n_against"], row.facts["n_both"]),
            share_of(row.facts.get("n_most_frequent", 0), row.facts["n_with_score"]),
            _missing(row.facts),
        )
        for row in doubted_scores(material.results)
    ]
    return fill("doubted_scores", {"rows": rows}) if rows else NOTHING


def _missing(facts: ScoreFacts) -> str:
    n = facts.get("n_missing", 0)
    return f"{n:,}, {COUNTED_AS[facts.get('missing', 'leave_out')]}" if n else "0"


def by_cell(material: Material) -> Markup:
    """Miss rate, false alarm rate and AUROC in each cell, and in what cuts across the cells."""
    values = {
        "tables": [(prompt, _blocks(material, prompt)) for prompt in material.prompts],
        "notes": [
            *reading.headlines_in_words(material.results),
            *reading.marks_in_words(material.results),
        ],
        "slices": [
            (prompt, [_block(material, prompt, place) for place in reading.slices(material.results, prompt)])
            for prompt in material.prompts
        ],
    }
    return fill("by_cell", values)


def heat_maps(material: Material) -> Markup:
    """Miss rate and false alarm rate by category and task, as colours, each a link to its samples."""
    # Safe to put in as they are: drawn here, every name in them an outline or escaped.
    drawn = [
        (
            prompt,
            [Markup(svg) for svg in figures_heat.heat_maps(material.results, prompt, material.samples_link)],
        )
        for prompt in material.prompts
    ]
    return fill("heat_maps", {"heat_maps": drawn, "linked": bool(material.browsable)}) if drawn else NOTHING


def _blocks(material: Material, prompt: str) -> list[tuple[str, list[_Row]]]:
    """The rows of each cell, behind it of its strata."""
    results = material.results
    return [
        _block(material, prompt, place)
        for cell in reading.cells(results, prompt)
        for place in (cell, *reading.strata(results, prompt, cell))
    ]


def _block(material: Material, prompt: str, part: str) -> tuple[str, list[_Row]]:
    results = material.results
    rows = [
        _Row(
            material.short_names[name],
            numbers["n"].whole,
            numbers["n_unscored"].whole,
            _numbers(numbers, partial(_link, material, name, prompt, part)),
        )
        for name in reading.shown_in(results, part)
        if (numbers := reading.lookup(results, name, prompt, part))
    ]
    return reading.title(results, part), rows


def _link(material: Material, monitor: str, prompt: str, part: str, verdict: str) -> str:
    """The address of the samples that a rate counts; the samples page knows cells, and no strata."""
    is_linked = is_cell(part) and part not in material.results["headline"]
    return material.samples_link(monitor, prompt, cell=part, verdict=verdict) if is_linked else ""


def _numbers(found: Numbers, link: Callable[[str], str]) -> tuple[PageNumber, PageNumber, PageNumber]:
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
