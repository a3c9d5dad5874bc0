"""All of `metrics.json` for some evaluation runs: rates, curves, baselines, and adapters against bases."""

from collections.abc import Mapping, Sequence
from typing import Any

from monitorbench.config.errors import UserError
from monitorbench.config.study import Study
from monitorbench.corpus.store import read_split
from monitorbench.metrics.cells import OVERALL, by_slice
from monitorbench.metrics.correlation import pearson
from monitorbench.metrics.cost import Stakes
from monitorbench.metrics.macro import Macro, macro
from monitorbench.metrics.overall import Overall, overall
from monitorbench.metrics.pareto import pareto_front
from monitorbench.metrics.rate_tests import Match, rate_tests
from monitorbench.metrics.rates import Judged
from monitorbench.metrics.results import (
    NO_PROMPT,
    SCHEMA_VERSION,
    CorrelationFacts,
    Results,
    StakesFacts,
)
from monitorbench.metrics.summary import CellMetrics, as_list, cell_metrics, summarise
from monitorbench.metrics.transfer import difference, differences
from monitorbench.monitors.baselines import judge_with_baselines
from monitorbench.monitors.evaluations import Evaluation
from monitorbench.records import Split
from monitorbench.runs.directory import read_finished


def measured(study: Study, evaluations: Sequence[Evaluation]) -> Results:
    """The numbers of runs over one dataset.

    Raises `UserError` where an adapter's base is not among several runs, or judged other samples.
    """
    data = evaluations[0].data
    drawn = {"resamples": study.probe.resamples, "seed": study.seed}
    test = read_split(data, Split.TEST)
    manifest = read_finished(data)["results"]
    train = read_split(data, Split.TRAIN) if Split.TRAIN in manifest["splits"] else []
    answered = [(e.monitor, e.prompt, e.judged) for e in evaluations]
    answered += [
        (name, NO_PROMPT, found) for name, found in judge_with_baselines(train, test, seed=study.seed).items()
    ]
    monitors: dict[str, dict[str, dict[str, CellMetrics]]] = {}
    slices: dict[str, dict[str, dict[str, CellMetrics]]] = {}
    macros: dict[str, dict[str, Macro]] = {}
    overalls: dict[str, dict[str, Overall]] = {}
    stakes = StakesFacts(
        base_rate=study.stakes.base_rate,
        cost_miss=study.stakes.cost_miss,
        cost_alarm=study.stakes.cost_alarm,
    )
    for monitor, prompt, found in answered:
        by_cell = summarise(found, **drawn)
        monitors.setdefault(monitor, {})[prompt] = by_cell
        slices.setdefault(monitor, {})[prompt] = {
            name: cell_metrics(inside, **drawn) for name, inside in by_slice(found).items()
        }
        macros.setdefault(monitor, {})[prompt] = macro(found, by_cell, **drawn)
        overalls.setdefault(monitor, {})[prompt] = overall(found, Stakes(**stakes), **drawn)
    pairs = _with_bases(evaluations)
    return Results(
        schema_version=SCHEMA_VERSION,
        dataset={"name": data.name.rpartition("-")[0], "directory": data.name, "n_test": len(test)},
        monitors=monitors,
        slices=slices,
        macro=macros,
        overall=overalls,
        stakes=stakes,
        transfer=_transfer(pairs, drawn),
        tests=rate_tests(_matches(pairs), **drawn),
        correlation=_correlations(monitors),
        trained_on={e.monitor: list(e.trained_on) for e in evaluations if e.trained_on},
        pareto=_pareto(monitors),
        surface_check=manifest["surface_check"],
        learning_curves={e.monitor: e.learning_curve for e in evaluations if e.learning_curve},
    )


def _with_bases(evaluations: Sequence[Evaluation]) -> list[tuple[Evaluation, Evaluation]]:
    """Every adapter behind its base, which judged the same samples."""
    bases = {e.basis: e for e in evaluations if not e.has_adapter}
    pairs = []
    for evaluation in evaluations:
        if not evaluation.has_adapter:
            continue
        base = bases.get(evaluation.basis)
        if base is None:
            if len(evaluations) == 1:  # a run scored alone
                continue
            raise UserError(
                f"{evaluation.directory}: no run of its base with the same prompt and engine is given"
            )
        if {item.sample_id for item in base.judged} != {item.sample_id for item in evaluation.judged}:
            raise UserError(f"{evaluation.directory} and {base.directory} judged different samples")
        pairs.append((base, evaluation))
    return pairs


def _transfer(
    pairs: Sequence[tuple[Evaluation, Evaluation]], drawn: Mapping[str, int]
) -> dict[str, dict[str, Any]]:
    """In each cell, over the trained cells and over the held-out ones."""
    transfer: dict[str, dict[str, Any]] = {}
    for base, evaluation in pairs:
        found: dict[str, Any] = dict(differences(base.judged, evaluation.judged, **drawn))
        for name, in_training in (("trained", True), ("held_out", False)):
            part = _cells(base.judged, evaluation.trained_on, in_training)
            if evaluation.trained_on and part:
                tuned = _cells(evaluation.judged, evaluation.trained_on, in_training)
                found[name] = difference(part, tuned, **drawn)
        transfer.setdefault(evaluation.monitor, {})[evaluation.prompt] = found
    return transfer


def _matches(pairs: Sequence[tuple[Evaluation, Evaluation]]) -> list[Match]:
    matches = []
    for base, tuned in pairs:
        theirs = {item.sample_id: item for item in tuned.judged}
        for where, inside in (
            (OVERALL, base.judged),
            ("trained", _cells(base.judged, tuned.trained_on, True)),
            ("held_out", _cells(base.judged, tuned.trained_on, False)),
        ):
            # Trained on everything or on nothing known: that part is empty, or the whole again.
            if inside and (where == OVERALL or len(inside) < len(base.judged)):
                of_tuned = [theirs[item.sample_id] for item in inside]
                matches.append(Match(base.monitor, tuned.monitor, tuned.prompt, where, inside, of_tuned))
    return matches


def _correlations(monitors: Mapping[str, Mapping[str, Any]]) -> dict[str, CorrelationFacts]:
    """MR against FAR over one point a monitor (2601.05752, section 5)."""
    found = {}
    for prompt in sorted({prompt for prompts in monitors.values() for prompt in prompts} - {NO_PROMPT}):
        points = [by_prompt[prompt]["overall"] for by_prompt in monitors.values() if prompt in by_prompt]
        r = pearson([p["miss_rate"] for p in points], [p["false_alarm_rate"] for p in points])
        found[prompt] = CorrelationFacts(r=r.r, r_ci=as_list(r.interval), n=r.n)
    return found


def _cells(items: Sequence[Judged], trained_on: Sequence[str], in_training: bool) -> list[Judged]:
    return [item for item in items if (f"{item.category}/{item.task}" in trained_on) is in_training]


def _pareto(monitors: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    fronts: dict[str, list[str]] = {}
    for prompt in sorted({prompt for prompts in monitors.values() for prompt in prompts} - {NO_PROMPT}):
        names = [name for name, prompts in monitors.items() if prompt in prompts]
        overall = [monitors[name][prompt]["overall"] for name in names]
        points = [(cell["miss_rate"], cell["false_alarm_rate"]) for cell in overall]
        fronts[prompt] = [names[i] for i in pareto_front(points)]
    return fronts
