"""The report: one HTML page that needs nothing beside it.

Promises: no font, no image and no address is loaded; the one script is the page's own, which its policy
names by hash, so that no other runs even where escaping failed; names, judged text and all other text are
escaped, unseen characters in them named, and only the SVG that the figures drew is put in as it is.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from monitorbench.metrics.results import Results, as_results
from monitorbench.metrics.summary import CellMetrics
from monitorbench.report import findings, reading
from monitorbench.report.definitions import DEFINITIONS
from monitorbench.report.figures import curves as figures_curves
from monitorbench.report.figures import heat as figures_heat
from monitorbench.report.figures import learning as figures_learning
from monitorbench.report.figures import matrix as figures_matrix
from monitorbench.report.figures import scatter as figures_scatter
from monitorbench.report.samples.view import worst_views
from monitorbench.report.samples.worst import Worst
from monitorbench.report.tables import overall as overall_table
from monitorbench.report.tables import probe as probe_tables
from monitorbench.report.tables import significance, tables
from monitorbench.report.tables.numbers import (
    Outcome,
    interval,
    outcome,
    rate,
    signed,
    signed_interval,
)
from monitorbench.report.tables.published import ARXIV
from monitorbench.report.template import facts, policy, templates


class _Number(NamedTuple):
    """A number, its interval, and the bounds where unscored answers widen it."""

    value: str
    interval: str
    bounds: str = ""


class _Row(NamedTuple):
    monitor: str
    n: int
    n_unscored: int
    numbers: tuple[_Number, _Number, _Number]


class _Difference(NamedTuple):
    adapter: str
    prompt: str
    where: str
    n: int
    numbers: tuple[_Number, _Number, _Number]
    words: str
    told: bool
    bag_of_words: str


class _Surface(NamedTuple):
    cell: str
    n: int
    auroc: _Number
    leaks: bool


def render_report(
    metrics: Mapping[str, object],
    manifest: Mapping[str, object],
    worst: Worst | None = None,
    worst_missing: Sequence[str] = (),
) -> str:
    """The page for a `metrics.json` and the manifest of the run it came from.

    `worst` holds the worst samples by monitor and prompt, `worst_missing` says what of them could not be
    read. Raises ValueError where the metrics are of another schema version.
    """
    results = as_results(metrics)
    prompts = reading.prompts(results)
    shorts = reading.short_names(results)
    environment = templates()
    script = environment.get_template("sort.js").render()
    curves = figures_learning.learning_curves(results)
    return environment.get_template("report.html.j2").render(
        dataset=results["dataset"],
        policy=policy(script),
        # Safe to put in as it is: a file of ours.
        script=Markup(script),
        statement=" ".join(findings.statement(results)),
        details=findings.details(results),
        full_names=[(short, name) for name, short in shorts.items() if short != name],
        overall_columns=overall_table.COLUMNS,
        overall_rows=overall_table.overall_rows(results, shorts),
        stakes=results["stakes"],
        tables=[(prompt, _blocks(results, prompt, shorts)) for prompt in prompts],
        slices=[(prompt, _blocks(results, prompt, shorts, "slices")) for prompt in prompts],
        differences=_differences(results, shorts),
        tests=significance.tests_in_words(results),
        correlations=significance.correlations_in_words(results),
        arxiv=ARXIV,
        answers="answers by a calibrated threshold"
        if "operating_point" in results
        else "each monitor's own answers",
        # Safe to put in as they are: drawn here, every name in them an outline or escaped.
        matrices=[(prompt, Markup(figures_matrix.transfer_matrix(results, prompt))) for prompt in prompts],
        rate_matrices=[
            (prompt, figures_matrix.TITLES[one], Markup(figures_matrix.transfer_matrix(results, prompt, one)))
            for prompt in prompts
            for one in figures_matrix.MEASURES[1:]
            if results["transfer"]
        ],
        matrix=results["matrix"],
        words=probe_tables.word_rows(results, shorts),
        counted_words=probe_tables.counted_words(results),
        seeds=probe_tables.seed_rows(results),
        objectives=probe_tables.objectives_in_words(results),
        paper=probe_tables.paper_rows(results, shorts),
        scatter=Markup(figures_scatter.scatter(results)),
        heat_maps=[(prompt, Markup(figures_heat.heat_maps(results, prompt))) for prompt in prompts],
        roc=Markup(figures_curves.roc(results)),
        reliability=Markup(figures_curves.reliability(results)),
        curves=Markup(curves) if curves else None,
        surface=_surface(results),
        worst=worst_views(results, worst or {}, shorts),
        worst_missing=worst_missing,
        made=_made(results, manifest),
        definitions=DEFINITIONS,
    )


def _blocks(
    results: Results, prompt: str, shorts: Mapping[str, str], part: reading.Part = "monitors"
) -> list[tuple[str, list[_Row]]]:
    return [
        (
            cell,
            [
                _Row(shorts[name], found["n"], found["n_unscored"], _numbers(found))
                for name in reading.shown_in(results, cell)
                if (found := reading.lookup(results, name, prompt, cell, part))
            ],
        )
        for cell in reading.cells(results, prompt, part)
    ]


def _numbers(found: CellMetrics) -> tuple[_Number, _Number, _Number]:
    def bounds(value: Sequence[float] | None) -> str:
        return interval(value) if value and value[0] != value[1] else ""

    return (
        _Number(rate(found["miss_rate"]), interval(found["miss_rate_ci"]), bounds(found["miss_rate_bounds"])),
        _Number(
            rate(found["false_alarm_rate"]),
            interval(found["false_alarm_rate_ci"]),
            bounds(found["false_alarm_rate_bounds"]),
        ),
        _Number(rate(found["auroc"]), interval(found["auroc_ci"])),
    )


def _differences(results: Results, shorts: Mapping[str, str]) -> list[_Difference]:
    rows = []
    for one in reading.comparisons(results):
        d = one.difference
        rows.append(
            _Difference(
                adapter=shorts.get(one.adapter, one.adapter),
                prompt=one.prompt,
                where=tables.where(one),
                n=d["n_both_with_score"],
                numbers=(
                    _Number(signed(d["auroc_difference"]), signed_interval(d["auroc_difference_ci"])),
                    _Number(signed(d["miss_rate_difference"]), signed_interval(d["miss_rate_difference_ci"])),
                    _Number(
                        signed(d["false_alarm_rate_difference"]),
                        signed_interval(d["false_alarm_rate_difference_ci"]),
                    ),
                ),
                words=str(outcome(d["auroc_difference_ci"])),
                told=outcome(d["auroc_difference_ci"]) in (Outcome.BETTER, Outcome.WORSE),
                bag_of_words=tables.bag_of_words_text(one),
            )
        )
    return rows


def _surface(results: Results) -> list[_Surface]:
    return [
        _Surface(
            cell,
            found["n"],
            _Number(rate(found["auroc"]), interval(found["auroc_ci"])),
            bool(found["auroc_ci"] and found["auroc_ci"][0] > reading.LEAK),
        )
        for cell in reading.ordered_cells(set(results["surface_check"]))
        for found in [results["surface_check"][cell]]
    ]


def _made(results: Results, manifest: Mapping[str, object]) -> list[tuple[str, str]]:
    """How the report was made: the data set, then all that the manifest says, one value a line."""
    dataset = results["dataset"]
    return [("dataset", f"{dataset['name']} ({dataset['directory']})"), *facts(manifest)]
