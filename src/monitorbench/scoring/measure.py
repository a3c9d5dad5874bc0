"""All of `metrics.json` for some evaluation runs: rates, curves, baselines, and adapters against bases."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypedDict, TypeVar

from monitorbench.config.base import UserError
from monitorbench.config.datasets import DEFAULT_MEANING, Dataset, OwnDataset
from monitorbench.config.study import Study
from monitorbench.config.training import BASELINE_OBJECTIVE
from monitorbench.corpus.store import n_rows
from monitorbench.metrics.choice import Recommendation
from monitorbench.metrics.columns import BoolArray, by_cell, by_stratum, stratum_name
from monitorbench.metrics.cost_fronts import CorrelationFacts, pearson, rates_by_prompt
from monitorbench.metrics.points_in_words import notes
from monitorbench.metrics.prompts import add_prompts
from monitorbench.metrics.results import SCHEMA_VERSION, DatasetFacts, Results
from monitorbench.metrics.summary import Curves, add_numbers
from monitorbench.metrics.table import BASE, Numbers, Place, Table
from monitorbench.metrics.trainings import ObjectivePair, objective_tests
from monitorbench.metrics.transfer import difference, differences, differences_over_seeds, matched
from monitorbench.metrics.words import add_chance, add_corrected
from monitorbench.records import Split
from monitorbench.runs.directory import read_manifest
from monitorbench.scoring.baselines import baselines_of
from monitorbench.scoring.evaluations import Evaluation, unscored_reasons
from monitorbench.scoring.points import PointAt, add_points
from monitorbench.scoring.recommendation.decide import decision_of

T = TypeVar("T")
Trainings = Mapping[tuple[str, str], Sequence[tuple[Evaluation, Evaluation]]]
"""Training and prompt: its seeds, each behind its base."""


class Drawn(TypedDict):
    """How groups are drawn for the intervals of differences."""

    resamples: int
    seed: int


def measured(
    study: Study,
    evaluations: Sequence[Evaluation],
    points: Sequence[PointAt] = (),
    decision: Recommendation | None = None,
) -> Results:
    """The numbers of runs over one dataset; `points` are what some of them come to at a threshold.

    A `decision` that was made elsewhere takes the place of one among these runs.

    Raises `UserError` where an adapter's base is not among several runs, or judged other samples.
    """
    data, judged = evaluations[0].data, evaluations[0].judged
    pairs, strata = _with_bases(evaluations), by_stratum(judged)
    trainings = _trainings(pairs)
    drawn = Drawn(resamples=study.score.resamples, seed=study.seed)
    table, curves = Table(), dict[str, dict[str, Curves]]()
    at_points = add_points(table, points, study.stakes, study.seed)
    if decision is None:
        voids = {
            (monitor, prompt): notes(data.name, point)
            for monitor, by_prompt in at_points.items()
            for prompt, point in by_prompt.items()
        }
        decision = decision_of(study, evaluations, points, voids)
    for e in evaluations:
        of_prompt = add_numbers(table, e.monitor, e.prompt, e.judged, study.stakes)
        curves.setdefault(e.monitor, {})[e.prompt] = of_prompt
    baselines = baselines_of(study.paths.runs, data, study.stakes, study.seed)
    table.update(baselines.table)
    _add_effects(table, pairs, trainings, drawn)
    add_chance(table, {key: [tuned.judged for _, tuned in members] for key, members in trainings.items()})
    for monitor, by_prompt in _by_judge(evaluations, lambda evaluation: evaluation.judged).items():
        add_prompts(table, monitor, by_prompt, **drawn)
    families = _families([tuned for _, tuned in pairs])
    adapters = {name: [*families.get(name, {name: name}).values()] for name, _ in trainings}
    results = Results(
        schema_version=SCHEMA_VERSION,
        dataset=_dataset_facts(study.dataset, data),
        table=table,
        curves=curves | baselines.curves,
        headline={cell: name for cell, name in judged.headline.items() if stratum_name(cell, name) in strata},
        unscored=_by_judge(evaluations, unscored_reasons),
        stakes=study.stakes.model_dump(),
        adapters=adapters,
        matrix=add_corrected(table, trainings.keys(), study.transfer.auroc_margin),
        seeds={name: by_seed for name, by_seed in families.items() if len(by_seed) > 1},
        objectives=objective_tests(_objective_pairs([tuned for _, tuned in pairs]), **drawn),
        correlation=_correlations(table, {e.monitor for e in evaluations if e.has_adapter}),
        exposures={e.monitor: e.exposures for e in evaluations if e.exposures is not None},
        trained_on={e.monitor: list(e.trained_on) for e in evaluations if e.trained_on},
        shortcuts=baselines.shortcuts,
        learning_curves={e.monitor: e.learning_curve for e in evaluations if e.learning_curve},
        usage=_by_judge(evaluations, lambda evaluation: evaluation.usage),
        scores=_by_judge(evaluations, lambda evaluation: evaluation.score_facts),
        decision=decision,
    )
    if points:
        results["operating_points"] = at_points
    return results


def _by_judge(evaluations: Sequence[Evaluation], of: Callable[[Evaluation], T]) -> dict[str, dict[str, T]]:
    """What is told of each evaluation, by monitor and prompt."""
    by_monitor: dict[str, dict[str, T]] = {}
    for evaluation in evaluations:
        by_monitor.setdefault(evaluation.monitor, {})[evaluation.prompt] = of(evaluation)
    return by_monitor


def _dataset_facts(dataset: Dataset, data: Path) -> DatasetFacts:
    name = data.name.rpartition("-")[0]
    facts = DatasetFacts(name=name, directory=data.name, n_test=n_rows(data, Split.TEST))
    if isinstance(dataset, OwnDataset) and dataset.name == name:
        means = dataset.positive_means
    else:  # a run is scored without its dataset's settings
        means = read_manifest(data)["results"].get("positive_means", DEFAULT_MEANING)
    if read_manifest(data)["results"].get("without_texts"):
        facts["without_texts"] = True
    if means != DEFAULT_MEANING:
        facts["positive_means"] = means
    return facts


def _with_bases(evaluations: Sequence[Evaluation]) -> list[tuple[Evaluation, Evaluation]]:
    """Each adapter with its base, which judged the same samples: (base, adapter)."""
    bases = {e.basis: e for e in evaluations if not e.has_adapter}
    of_heads = {e.basis_of_head: e for e in bases.values()}
    pairs = []
    for evaluation in evaluations:
        if not evaluation.has_adapter:
            continue
        base = bases.get(evaluation.basis) or of_heads.get(evaluation.basis_of_head)
        if base is None:
            if len(evaluations) == 1:  # a run scored alone
                continue
            raise UserError(
                f"{evaluation.directory}: no run of its base with the same prompt and engine is given"
            )
        try:
            judged = matched(base.judged, evaluation.judged)  # in one order from here on
        except ValueError as error:
            raise UserError(
                f"{evaluation.directory} and {base.directory} judged different samples: {error}"
            ) from error
        pairs.append((base, evaluation._replace(judged=judged)))
    return pairs


def _add_effects(
    table: Table, pairs: Sequence[tuple[Evaluation, Evaluation]], trainings: Trainings, drawn: Drawn
) -> None:
    """Set each adapter against its base, and each training of several seeds by the mean of its adapters.

    In each cell, over all cells that it was trained on, and over the held-out ones.
    """
    for base, tuned in pairs:
        change = differences(base.judged, tuned.judged, **drawn)
        for name, inside in _parts(tuned).items():
            if tuned.trained_on and inside.any():
                change[name] = difference(base.judged.taking(inside), tuned.judged.taking(inside), **drawn)
        _add_parts(table, tuned.monitor, tuned.prompt, change)
    for (training, prompt), members in trainings.items():
        if len(members) == 1:
            continue
        base, first = members[0]
        parts = by_cell(base.judged)
        parts |= {where: mask for where, mask in _parts(first).items() if first.trained_on and mask.any()}
        seeds = [tuned.judged for _, tuned in members]
        _add_parts(table, training, prompt, differences_over_seeds(base.judged, seeds, parts, **drawn))


def _add_parts(table: Table, monitor: str, prompt: str, parts: Mapping[str, Numbers]) -> None:
    for part, numbers in parts.items():
        table.add(Place(monitor, prompt, part, against=BASE), numbers)


def _trainings(pairs: Sequence[tuple[Evaluation, Evaluation]]) -> Trainings:
    """Group adapters into trainings: several seeds under their family's name, one seed under its own."""
    grouped: dict[tuple[str, str], list[tuple[Evaluation, Evaluation]]] = {}
    for base, tuned in pairs:
        grouped.setdefault((tuned.family, tuned.prompt), []).append((base, tuned))
    return {
        (family if len(members) > 1 else members[0][1].monitor, prompt): members
        for (family, prompt), members in grouped.items()
    }


def _families(evaluations: Sequence[Evaluation]) -> dict[str, dict[int, str]]:
    """Adapters by their name without the seed, and by seed."""
    families: dict[str, dict[int, str]] = {}
    for evaluation in evaluations:
        if evaluation.seed is not None:
            families.setdefault(evaluation.family, {})[evaluation.seed] = evaluation.monitor
    return families


def _objective_pairs(adapters: Sequence[Evaluation]) -> list[ObjectivePair]:
    """Each adapter of another objective beside the one by `sft`, on the cells neither was trained on."""
    by_sft = {(e.basis, e.subset, e.seed): e for e in adapters if e.objective == BASELINE_OBJECTIVE}
    pairs = []
    for adapter in adapters:
        sft = by_sft.get((adapter.basis, adapter.subset, adapter.seed))
        if adapter.objective == BASELINE_OBJECTIVE or sft is None:
            continue
        held_out = ~adapter.judged.in_cells([*adapter.trained_on, *sft.trained_on])
        if held_out.any():
            both = sft.judged.taking(held_out), adapter.judged.taking(held_out)
            pairs.append(
                ObjectivePair(adapter.subset, adapter.seed, adapter.prompt, adapter.objective, *both)
            )
    return pairs


def _parts(tuned: Evaluation) -> dict[str, BoolArray]:
    """Which samples are of the cells that the adapter was trained on, and which of the others."""
    trained = tuned.judged.in_cells(tuned.trained_on)
    return {"trained": trained, "held_out": ~trained}


def _correlations(table: Table, adapters: Collection[str]) -> dict[str, CorrelationFacts]:
    """MR against FAR over one point a base (2601.05752, section 5).

    Adapters, and seeds of them, come from one base and are no further monitors: Fisher's interval would take
    them for such.
    """
    facts = {}
    for prompt, rates in rates_by_prompt(table).items():
        points = [of for name, of in rates.items() if name not in adapters]
        facts[prompt] = pearson([miss for miss, _ in points], [alarm for _, alarm in points])
    return facts
