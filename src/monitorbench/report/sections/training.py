"""The sections on training: adapters and their bases, seeds, objectives, the paper's cells."""

from markupsafe import Markup

from monitorbench.metrics.marks import headlines_in_words, marks_in_words
from monitorbench.metrics.trainings import doses_in_words
from monitorbench.metrics.transfer import MEASURES, change
from monitorbench.metrics.written import Finding, finding, signed, signed_interval
from monitorbench.report.figures import curves as figures_curves
from monitorbench.report.figures import matrix as figures_directions
from monitorbench.report.figures import matrix as figures_matrix
from monitorbench.report.sections.section import NOTHING, Material, PageNumber, fill
from monitorbench.report.tables import published, transfer_signs
from monitorbench.report.tables import transfer as transfer_tables
from monitorbench.report.tables.published import ARXIV
from monitorbench.report.tables.transfer import comparisons


def changes(material: Material) -> Markup:
    """Every training against its base: differences, tests, and the transfer matrix."""
    results, prompts = material.results, material.prompts
    if not results["transfer"]:
        return NOTHING
    values = {
        "differences": _differences(material),
        "tests": published.rate_tests_in_words(results),
        # Safe to put in as they are: drawn here, every name in them an outline or escaped.
        "matrices": [(prompt, Markup(figures_matrix.transfer_matrix(results, prompt))) for prompt in prompts],
        "rate_matrices": [
            (
                prompt,
                figures_matrix.TITLES[measure],
                Markup(figures_matrix.transfer_matrix(results, prompt, measure)),
            )
            for prompt in prompts
            for measure in MEASURES[1:]
        ],
        "matrix": results["matrix"],
        "notes": [*headlines_in_words(results), *marks_in_words(results)],
        "words": transfer_tables.word_rows(results, material.short_names),
        "counted_words": [
            *transfer_tables.counted_words(results),
            *doses_in_words(results["exposures"]),
        ],
    }
    return fill("training", values)


def seeds(material: Material) -> Markup:
    """The spread of every training that has several seeds."""
    rows = transfer_tables.seed_rows(material.results)
    return fill("seeds", {"rows": rows}) if rows else NOTHING


def objectives(material: Material) -> Markup:
    """Other objectives beside `sft`, on held-out cells."""
    sentences = transfer_tables.objectives_in_words(material.results)
    return fill("objectives", {"objectives": sentences}) if sentences else NOTHING


def paper_cells(material: Material) -> Markup:
    """The paper's printed cells, each with ours of the same name."""
    rows = published.paper_rows(material.results, material.short_names)
    return fill("paper", {"rows": rows, "arxiv": ARXIV}) if rows else NOTHING


def negative(material: Material) -> Markup:
    """Held-out cells that a training made worse: upside down, or discrimination lost."""
    summary = transfer_signs.negative_in_words(material.results)
    rows = [
        (
            f"{row.training}, {row.prompt}",
            row.cell,
            row.auroc,
            row.p,
            row.difference,
            f"{row.word}, upside down" if row.is_inverted else row.word,
        )
        for row in transfer_signs.negative_rows(material.results, material.short_names)
    ]
    return fill("negative", {"said": summary, "rows": rows}) if summary else NOTHING


def directions(material: Material) -> Markup:
    """Cosines of the linear heads, as a figure and in words."""
    if "directions" not in material.results:
        return NOTHING
    return fill(
        "directions",
        {
            "figure": Markup(figures_directions.directions(material.results)),
            "sentences": transfer_signs.directions_in_words(material.results, material.short_names),
        },
    )


def learning_curves(material: Material) -> Markup:
    """Validation AUROC and training loss by step."""
    svg = figures_curves.learning_curves(material.results)
    return fill("learning", {"curves": Markup(svg)}) if svg else NOTHING


def _differences(material: Material) -> list[dict[str, object]]:
    """A row for each training beside its base on a set of cells: AUROC, MR and FAR, each minus the base's."""
    rows = []
    for comparison in comparisons(material.results):
        d = comparison.difference
        outcome = finding(d["auroc_difference_ci"])
        rows.append(
            {
                "training": transfer_tables.subject(
                    material.results, comparison.training, material.short_names
                ),
                "prompt": comparison.prompt,
                "where": transfer_tables.where(comparison),
                "n": d["n_both_with_score"],
                "numbers": [
                    PageNumber(signed(moved.value), signed_interval(moved.interval))
                    for measure in MEASURES[:3]
                    for moved in (change(d, measure),)
                ],
                "words": str(outcome),
                "is_clear": outcome in (Finding.BETTER, Finding.WORSE),
                "bag_of_words": comparison.bag_of_words,
            }
        )
    return rows
