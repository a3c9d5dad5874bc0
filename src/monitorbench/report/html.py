"""The report: one HTML page that needs nothing beside it.

Promises: no font, no image and no address is loaded; the scripts are the page's own, which its policy
names by hash, so that no other runs even where escaping failed; names, judged text and all other text are
escaped, unseen characters in them named, and only the SVG that the figures drew is put in as it is.
"""

from collections.abc import Mapping, Sequence, Set

from markupsafe import Markup

from monitorbench.metrics import reading
from monitorbench.metrics.results import Results
from monitorbench.metrics.robustness.facts import StressFacts
from monitorbench.report.recommendation.page import title
from monitorbench.report.samples.browsable import PAGE
from monitorbench.report.samples.worst import Worst
from monitorbench.report.scores import Scores
from monitorbench.report.sections import (
    costs,
    inverted,
    prompts,
    rates,
    samples,
    thresholds,
    training,
    under_stress,
)
from monitorbench.report.sections.answer import answer
from monitorbench.report.sections.background import background
from monitorbench.report.sections.section import Material, Section
from monitorbench.report.sections.slider import slider
from monitorbench.report.template import policy, templates

SECTIONS = (
    Section("which monitor to deploy", answer, level=1),
    Section("all monitors, overall", rates.overall),
    Section("miss rate against false alarm rate", thresholds.plane),
    Section("at any threshold", slider),
    Section("answers that are no label", rates.unscored),
    Section("scores to doubt", rates.doubted),
    Section("inverted in a cell", inverted.inverted),
    Section("one monitor under several prompts", prompts.by_prompt),
    Section("under changes that keep the label", under_stress.under_stress),
    Section("miss rate, false alarm rate and AUROC by cell", rates.by_cell),
    Section("where each monitor errs", rates.heat_maps),
    Section("what training changed", training.changes),
    Section("where transfer is negative", training.negative, level=3),
    Section("which trainings share a direction", training.directions, level=3),
    Section("several seeds of one training", training.seeds, level=3),
    Section("other training objectives", training.objectives, level=3),
    Section("beside the paper's own cells", training.paper_cells, level=3),
    Section("learning curves", training.learning_curves, level=3),
    Section("what a verdict costs", costs.against_cost),
    Section("at other thresholds", thresholds.other_thresholds),
    Section("shortcut checks", thresholds.shortcuts),
    Section("the worst samples", samples.worst),
    Section("how it was made, and what the words mean", background),
)
"""The page from top to bottom, the table of contents behind the first. A section
without anything to show is left out. Its name is its heading and its line in the contents."""
_SCRIPTS = ("sort.js", "slider.js")


def render_report(
    results: Results,
    manifest: Mapping[str, object],
    worst: Worst | None = None,
    worst_missing: Sequence[str] = (),
    scores: Sequence[Scores] = (),
    browsable: Set[tuple[str, str]] = frozenset(),
    other_points: bool = False,
    stress: Sequence[StressFacts] = (),
) -> str:
    """The page for some results and the manifest of the run it came from.

    `worst` holds the worst samples by monitor and prompt, `worst_missing` says what of them could not be
    read; `scores` are the monitors' own, for the slider of thresholds. `browsable` are the monitors and
    prompts whose samples stand on the samples page beside this one; `other_points` draws published points of
    other datasets too; `stress` says what changes that keep the label do to some of the monitors.
    """
    material = Material(
        results,
        manifest,
        worst or {},
        worst_missing,
        reading.prompts(results),
        reading.short_names(results),
        scores,
        browsable,
        other_points,
        stress,
    )
    rendered = [(section, section.make(material)) for section in SECTIONS]
    scripts = [templates().get_template(name).render() for name in _SCRIPTS]
    return (
        templates()
        .get_template("report.html.j2")
        .render(
            title=title(results["decision"]),
            policy=policy(*scripts),
            # Safe to put in as they are: files of ours.
            scripts=[Markup(script) for script in scripts],
            sections=[(section, html) for section, html in rendered if html],
            samples=PAGE if browsable else "",
        )
    )
