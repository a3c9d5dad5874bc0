"""The report stage: `metrics.json` of a transfer or scored run to `report.html`, `samples.html` and tables.

The numbers are `metrics.json`'s; the samples shown come from the dataset and the verdict logs.

The report is one HTML page that needs nothing beside it. Promises: no font, no image and no address is
loaded; the scripts are the page's own, which its policy names by hash, so that no other runs even where
escaping failed; names, judged text and all other text are escaped, unseen characters in them named, and only
the SVG that the figures drew is put in as it is.
"""

from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from markupsafe import Markup

from monitorbench.config.base import UserError
from monitorbench.config.study import Paths, Study
from monitorbench.config.terminal import opened
from monitorbench.metrics.marks import MARK
from monitorbench.metrics.metrics_json import as_results
from monitorbench.metrics.results import Results, short_names
from monitorbench.metrics.robustness import StressFacts
from monitorbench.metrics.score_facts import MARGIN
from monitorbench.metrics.written import rate
from monitorbench.records import Split
from monitorbench.report import stress
from monitorbench.report.recommendation import title
from monitorbench.report.samples import browsable
from monitorbench.report.samples.browsable import PAGE, render_samples
from monitorbench.report.samples.judged import Scores, Worst, read_judged, read_scores, runs_of, worst_of
from monitorbench.report.sections import costs, prompts, rates, samples, thresholds, training
from monitorbench.report.sections.answer import answer
from monitorbench.report.sections.section import Material, Section, fill
from monitorbench.report.sections.thresholds import slider
from monitorbench.report.tables.tables import print_tables
from monitorbench.report.template import facts, policy, templates
from monitorbench.runs.directory import kind_of, read_checked, read_finished, record_files
from monitorbench.runs.files import write_atomically
from monitorbench.runs.run_folders import evaluation_id
from monitorbench.runs.tracking import track_results
from monitorbench.scoring.recommendation.stressed import read_stress


def background(material: Material) -> Markup:
    """Show how the report was made, one value a line, and what its words mean."""
    dataset = material.results["dataset"]
    made = [("dataset", f"{dataset['name']} ({dataset['directory']})"), *facts(material.manifest)]
    return fill("background", {"made": made, "margin": rate(MARGIN), "mark": rate(MARK)})


SECTIONS = (
    Section("which monitor to deploy", answer, level=1),
    Section("all monitors, overall", rates.overall),
    Section("miss rate against false alarm rate", thresholds.plane),
    Section("at any threshold", slider),
    Section("answers that are no label", rates.unscored),
    Section("scores to doubt", rates.doubted),
    Section("inverted in a cell", samples.inverted),
    Section("one monitor under several prompts", prompts.by_prompt),
    Section("under changes that keep the label", stress.under_stress),
    Section("miss rate, false alarm rate and AUROC by cell", rates.by_cell),
    Section("where each monitor errs", rates.by_monitor),
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
        results["table"].prompts(),
        short_names(results),
        scores,
        browsable,
        other_points,
        stress,
    )
    rendered = [section.make(material) for section in SECTIONS]
    scripts = [templates().get_template(name).render() for name in _SCRIPTS]
    return (
        templates()
        .get_template("report.html.j2")
        .render(
            title=title(results["decision"]),
            policy=policy(*scripts),
            # Safe to put in as they are: files of ours.
            scripts=[Markup(script) for script in scripts],
            sections=[(section, html) for section, html in zip(SECTIONS, rendered, strict=True) if html],
            samples=PAGE if browsable else "",
        )
    )


def is_unscored_evaluation(directory: Path) -> bool:
    """Whether it is a finished evaluation run over the test split without metrics."""
    if (directory / "metrics.json").is_file() or not (directory / "manifest.json").is_file():
        return False
    manifest = read_finished(directory)
    return "judge" in manifest["results"] and manifest["identity"].get("split", Split.TEST) == Split.TEST


def _stress_of(directory: Path, manifest: Mapping[str, Any], paths: Paths) -> list[StressFacts]:
    """The stress of the evaluation run, or of each run of the transfer run, that a report is of."""
    ids: list[str] = []
    for run in runs_of(paths, directory, manifest):
        try:
            ids.append(evaluation_id(read_finished(run)))
        except UserError:  # gone since; the page's last sections say which
            continue
    return read_stress(paths.runs, ids)


def report(study: Study, *, is_brief: bool = False) -> Path:
    """Write `report.html` beside the metrics of `study.run`, and print the answer and the tables to stdout.

    `is_brief` prints the answer with overall numbers alone. Of each cell at most `report.worst` misses and as
    many false alarms are shown on the page with their text; `samples.html` has all samples of the runs
    that are still there, and is not written where none is. Raises `UserError` where the run has no metrics
    yet, or is of a kind that never has.
    """
    directory = study.required_run()
    manifest = read_finished(directory)
    # An evaluation's results name its judge, a transfer run's the runs that it lays side by side.
    if not {"judge", "runs"} & manifest["results"].keys():
        raise UserError(
            f"{directory}: {kind_of(directory)}, which has no report; expected an evaluation, a transfer run "
            "or a pilot"
        )
    metrics = directory / "metrics.json"
    if not metrics.is_file():
        raise UserError(f"{directory}: no metrics.json there; run `monitorbench score run={directory}`")
    try:
        results = as_results(read_checked(directory, metrics.name))
    except ValueError as error:  # of another version of this project
        raise UserError(f"{metrics}: {error}") from error
    judged = read_judged(directory, manifest, results, study.paths)
    scores = read_scores(directory, manifest, results, study.paths)
    page = render_report(
        results,
        manifest,
        worst_of(judged.runs, study.report.worst),
        judged.missing,
        scores,
        browsable={(run.monitor, run.prompt) for run in judged.runs},
        other_points=study.report.other_points,
        stress=_stress_of(directory, manifest, study.paths),
    )
    write_atomically(directory / "report.html", page)
    written = [directory / "report.html"]
    if judged.runs:
        written.append(directory / browsable.PAGE)
        write_atomically(written[-1], render_samples(results, judged.runs))
    record_files(directory, *(file.name for file in written))
    track_results(study, directory, "report", files=written)
    print_tables(opened(), results, is_brief=is_brief)
    return directory
