"""The sections of every monitor's numbers: overall, by cell, and where each errs."""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from monitorbench.metrics.inverted import is_inverted
from monitorbench.metrics.score_facts import COUNTED_AS, ScoreFacts, share_of
from monitorbench.metrics.summary import CellMetrics
from monitorbench.report import reading
from monitorbench.report.figures import heat as figures_heat
from monitorbench.report.sections.section import Material, PageNumber, fill
from monitorbench.report.tables import overall as overall_table
from monitorbench.report.tables.numbers import interval, rate
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


def has_unscored(material: Material) -> bool:
    """Whether some answer is no label."""
    return bool(unscored_rows(material.results))


def unscored(material: Material) -> Markup:
    """How many answers of each monitor are no label, or never came, and for which reasons."""
    rows = [
        (material.short_names[row.monitor], row.prompt, f"{row.n_unscored:,} of {row.n:,}", row.reasons)
        for row in unscored_rows(material.results)
    ]
    return fill("unscored", {"rows": rows})


def has_doubted_scores(material: Material) -> bool:
    """Whether some scores are bounds, contradict their label, or are mostly equal."""
    return bool(doubted_scores(material.results))


def doubted(material: Material) -> Markup:
    """How many scores of each monitor are bounds, contradict the label, are all the same, or missing."""
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
    return fill("doubted_scores", {"rows": rows})


def _missing(facts: ScoreFacts) -> str:
    n = facts.get("n_missing", 0)
    return f"{n:,}, {COUNTED_AS[facts.get('missing', 'leave_out')]}" if n else "0"


def by_cell(material: Material) -> Markup:
    """Miss rate, false alarm rate and AUROC in each cell, and in what cuts across the cells."""
    values = {
        "tables": [(prompt, _blocks(material, prompt, "monitors")) for prompt in material.prompts],
        "notes": [
            *reading.headlines_in_words(material.results),
            *reading.marks_in_words(material.results),
        ],
        "slices": [(prompt, _blocks(material, prompt, "slices")) for prompt in material.prompts],
    }
    return fill("by_cell", values)


def has_rates(material: Material) -> bool:
    """Whether there is a prompt to draw the monitors under."""
    return bool(material.prompts)


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
    return fill("heat_maps", {"heat_maps": drawn, "linked": bool(material.browsable)})


def _blocks(material: Material, prompt: str, part: reading.Part) -> list[tuple[str, list[_Row]]]:
    """The rows of each cell, behind it of its strata; or of each slice that is no stratum."""
    blocks = []
    for cell in reading.cells(material.results, prompt, part):
        blocks.append(_block(material, prompt, cell, part))
        if part == "monitors":
            strata = reading.strata(material.results, prompt, cell)
            blocks += [_block(material, prompt, stratum, "slices") for stratum in strata]
    return blocks


def _block(material: Material, prompt: str, cell: str, part: reading.Part) -> tuple[str, list[_Row]]:
    results = material.results
    # The samples page knows no strata.
    linked = cell if part == "monitors" and cell not in results["headline"] else None
    rows = [
        _Row(
            material.short_names[name],
            found["n"],
            found["n_unscored"],
            _linked(_numbers(found), material, name, prompt, linked),
        )
        for name in reading.shown_in(results, cell)
        if (found := reading.lookup(results, name, prompt, cell, part))
    ]
    return reading.title(results, cell), rows


def _linked(
    numbers: tuple[PageNumber, PageNumber, PageNumber],
    material: Material,
    monitor: str,
    prompt: str,
    cell: str | None,
) -> tuple[PageNumber, PageNumber, PageNumber]:
    """Both rates with a link to the samples that they count; `cell` is None for what is no cell."""
    if cell is None:
        return numbers
    missed, alarmed, auroc = numbers
    return (
        missed._replace(link=material.samples_link(monitor, prompt, cell=cell, verdict="miss")),
        alarmed._replace(link=material.samples_link(monitor, prompt, cell=cell, verdict="alarm")),
        auroc,
    )


def _numbers(found: CellMetrics) -> tuple[PageNumber, PageNumber, PageNumber]:
    def bounds(value: Sequence[float] | None) -> str:
        return interval(value) if value and value[0] != value[1] else ""

    return (
        PageNumber(
            rate(found["miss_rate"]), interval(found["miss_rate_ci"]), bounds(found["miss_rate_bounds"])
        ),
        PageNumber(
            rate(found["false_alarm_rate"]),
            interval(found["false_alarm_rate_ci"]),
            bounds(found["false_alarm_rate_bounds"]),
        ),
        PageNumber(
            rate(found["auroc"]),
            overall_table.auroc_missing(found) or interval(found["auroc_ci"]),
            mark="inverted" if is_inverted(found["auroc"], found["auroc_ci"]) else "",
        ),
    )
