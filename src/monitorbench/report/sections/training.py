"""The page's sections on training: adapters and bases, seeds, objectives, directions, the paper's cells."""

from markupsafe import Markup

from monitorbench.metrics.marks import headlines_in_words, marks_in_words
from monitorbench.metrics.registry import Measure
from monitorbench.metrics.trainings import doses_in_words
from monitorbench.metrics.written import Finding, finding
from monitorbench.report.matrix import cosines, matrix
from monitorbench.report.sections.curves import learning_curves as draw_learning_curves
from monitorbench.report.sections.section import NOTHING, Material, PageNumber, fill
from monitorbench.report.tables.effects import comparisons, effects, negative_rows, seed_rows
from monitorbench.report.tables.published import ARXIV, paper_rows
from monitorbench.report.tables.training import (
    counted_words,
    directions_in_words,
    negative_in_words,
    objectives_in_words,
)


def changes(material: Material) -> Markup:
    """Every training against its base: differences, tests, and the transfer matrix."""
    results = material.results
    if not results["adapters"]:
        return NOTHING
    names = results["table"].shown_in("")
    measures: tuple[Measure, ...] = ("auroc", "miss_rate_at_far_5")
    values = {
        "differences": [
            {
                "effect": row.effect,
                "where": row.where,
                "numbers": [PageNumber(value, interval) for value, interval, _ in row.effect.changes[:3]],
                "words": str(outcome),
                "is_clear": outcome in (Finding.BETTER, Finding.WORSE),
                "bag_of_words": row.bag_of_words,
            }
            for row in comparisons(results, material.short_names)
            for outcome in (finding(row.effect.numbers["auroc_difference"].interval),)
        ],
        "matrices": {
            m: [matrix(material, names, prompt, m) for prompt in material.prompts] for m in measures
        },
        "holm": results["matrix"],
        "notes": [*headlines_in_words(results), *marks_in_words(results)],
        "words": [row for row in effects(results, material.short_names) if row.is_in_matrix],
        "counted_words": [*counted_words(results), *doses_in_words(results["exposures"])],
    }
    return fill("training", values)


def seeds(material: Material) -> Markup:
    """The spread of every training that has several seeds."""
    rows = seed_rows(material.results)
    return fill("seeds", {"rows": rows}) if rows else NOTHING


def objectives(material: Material) -> Markup:
    """Other objectives beside `sft`, on held-out cells."""
    sentences = objectives_in_words(material.results)
    return fill("objectives", {"objectives": sentences}) if sentences else NOTHING


def paper_cells(material: Material) -> Markup:
    """The paper's printed cells, each with ours of the same name."""
    rows = paper_rows(material.results, material.short_names)
    return fill("paper", {"rows": rows, "arxiv": ARXIV}) if rows else NOTHING


def negative(material: Material) -> Markup:
    """Held-out cells that a training made worse: upside down, or discrimination lost."""
    summary = negative_in_words(material.results)
    rows = [
        (
            f"{row.subject}, {row.prompt}",
            row.title,
            row.auroc,
            row.p_of_chance,
            row.auroc_difference,
            f"{row.word}, upside down" if row.is_inverted else row.word,
        )
        for row in negative_rows(effects(material.results, material.short_names))
    ]
    return fill("negative", {"said": summary, "rows": rows}) if summary else NOTHING


def directions(material: Material) -> Markup:
    """Cosines of the linear heads, as a matrix and in words."""
    sentences = directions_in_words(material.results, material.short_names)
    return (
        fill("directions", {"cosines": cosines(material), "sentences": sentences}) if sentences else NOTHING
    )


def learning_curves(material: Material) -> Markup:
    """Validation AUROC and training loss by step."""
    svg = draw_learning_curves(material.results)
    return fill("learning", {"curves": svg}) if svg else NOTHING
