"""Several trainings side by side: one with several seeds, one objective against another, shared directions.

Over seeds: a single run's interval is over the test samples; it says nothing of how another seed would have
come out. Objectives: another one against `sft` on the cells that neither was trained on, at a fixed false
alarm rate, since a moved threshold is no better generalization; Holm's correction is over all that were
compared.

Directions of linear heads are compared by the cosines of what they weigh hidden states by, in one layer at
one position, since states of two layers have no common axes: the place with the best mean validation AUROC
over trainings, each on the cells that it was trained on. A cosine of two trainings is the mean over all pairs
of a head of the one and a head of the other, and of a training with itself over the pairs of its seeds: two
trainings can hardly be more alike than two seeds of one.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations, product
from statistics import fmean, stdev
from typing import NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from monitorbench.metrics.columns import Columns
from monitorbench.metrics.registry import MEASURES
from monitorbench.metrics.significance import holm
from monitorbench.metrics.table import Numbers, Table, is_cell
from monitorbench.metrics.transfer import difference


class SeedSpread(TypedDict):
    """A number over seeds."""

    n: int
    """Seeds with a value."""
    mean: float
    sd: float | None
    """Standard deviation over seeds, n − 1 in the denominator; None for one."""
    low: float
    high: float
    """The smallest and the largest."""


def spreads(table: Table, adapters: Collection[str]) -> dict[str, dict[str, dict[str, SeedSpread]]]:
    """Sum up adapters that differ in the seed alone, by prompt, cell and measure.

    What no seed has a value for is left out.
    """
    found: dict[str, dict[str, dict[str, SeedSpread]]] = {}
    for prompt in dict.fromkeys(prompt for name, prompt in table.judged() if name in adapters):
        cells: dict[str, list[Numbers]] = {}
        for adapter in adapters:
            for cell_name, numbers in table.parts(adapter, prompt).items():
                if is_cell(cell_name):
                    cells.setdefault(cell_name, []).append(numbers)
        for cell, of_seeds in cells.items():
            by_measure = {name: spread([of_seed[name].value for of_seed in of_seeds]) for name in MEASURES}
            found.setdefault(prompt, {})[cell] = {name: s for name, s in by_measure.items() if s}
    return found


def spread(values: Sequence[float | None]) -> SeedSpread | None:
    """Mean, SD and range of what is not None; None without any."""
    defined = [value for value in values if value is not None]
    if not defined:
        return None
    sd = stdev(defined) if len(defined) > 1 else None
    return SeedSpread(n=len(defined), mean=fmean(defined), sd=sd, low=min(defined), high=max(defined))


class ObjectivePair(NamedTuple):
    """Two adapters of one base, subset and seed, and the verdicts of each on the held-out samples."""

    subset: str
    seed: int | None
    prompt: str
    objective: str
    of_sft: Columns
    of_other: Columns


class ObjectiveTest(TypedDict):
    """The other objective minus `sft`, on held-out cells."""

    subset: str
    """The subset that both were trained on."""
    seed: int | None
    prompt: str
    objective: str
    n: int
    """Held-out samples that both scored."""
    miss_rate_at_far_5_sft: float | None
    miss_rate_at_far_5_other: float | None
    miss_rate_at_far_5_difference: float | None
    """Below 0: at a false alarm rate of 5 % it misses less than `sft`."""
    miss_rate_at_far_5_difference_ci: list[float] | None
    auroc_difference: float | None
    auroc_difference_ci: list[float] | None
    p: float | None
    """Two-sided p value of the difference in miss rate, from the paired cluster bootstrap."""
    p_holm: float | None


def objective_tests(pairs: Sequence[ObjectivePair], *, resamples: int, seed: int) -> list[ObjectiveTest]:
    """One test for each; raises ValueError where the two judged different samples."""
    of_pairs = [difference(pair.of_sft, pair.of_other, resamples=resamples, seed=seed) for pair in pairs]
    corrected = holm([d["miss_rate_at_far_5_p"].value for d in of_pairs])
    return [
        ObjectiveTest(
            subset=pair.subset,
            seed=pair.seed,
            prompt=pair.prompt,
            objective=pair.objective,
            n=d["n_both_with_score"].whole,
            miss_rate_at_far_5_sft=d["miss_rate_at_far_5_base"].value,
            miss_rate_at_far_5_other=d["miss_rate_at_far_5_tuned"].value,
            miss_rate_at_far_5_difference=d["miss_rate_at_far_5_difference"].value,
            miss_rate_at_far_5_difference_ci=d["miss_rate_at_far_5_difference"].interval,
            auroc_difference=d["auroc_difference"].value,
            auroc_difference_ci=d["auroc_difference"].interval,
            p=d["miss_rate_at_far_5_p"].value,
            p_holm=p_holm,
        )
        for pair, d, p_holm in zip(pairs, of_pairs, corrected, strict=True)
    ]


_UNLIKE = 1.5
"""Ratio of two doses from which on they differ."""


def doses_in_words(doses: Mapping[str, float]) -> list[str]:
    """Say how often trainings showed each of their samples, by adapter, and where these doses differ."""
    if not doses:
        return []
    least, most = min(doses, key=doses.__getitem__), max(doses, key=doses.__getitem__)
    if doses[most] <= _UNLIKE * doses[least]:
        return [f"Each sample was seen {doses[least]:.2f} to {doses[most]:.2f} times in training."]
    return [
        f"Unlike doses: {most} saw each of its samples {doses[most]:.2f} times in training, {least} "
        f"{doses[least]:.2f} times. What differs between them may be the dose and not the subset; train with "
        "training.epochs in place of training.max_steps."
    ]


class Found(NamedTuple):
    """A head's direction in one place."""

    auroc: float
    """AUROC on the head's validation split."""
    weights_H: NDArray[np.float32]
    """Weights of the states as they are, not standardised."""


Place = tuple[int, str]
"""A layer, counted from 1, and a position."""


class DirectionsFacts(TypedDict):
    """The cosines of linear heads, by training."""

    layer: int
    """Layer in which heads are compared."""
    position: str
    hidden: int
    """Dimensions of a state."""
    trainings: list[str]
    n_seeds: list[int]
    validation_auroc: list[float]
    """AUROC in that layer and position, the mean over seeds."""
    cosines: list[list[float | None]]
    """[trainings, trainings], in [-1, 1]; None of a training of one seed with itself."""


def common_place(trainings: Mapping[str, Sequence[Mapping[Place, Found]]]) -> Place | None:
    """The place that all heads have with the best mean AUROC over trainings; the first of equals."""
    heads = [head for of_one in trainings.values() for head in of_one]
    shared = [place for place in (heads[0] if heads else ()) if all(place in head for head in heads)]
    if not shared:
        return None
    return max(shared, key=lambda place: round(fmean(_mean_auroc(of, place) for of in trainings.values()), 6))


def directions(trainings: Mapping[str, Sequence[Mapping[Place, Found]]], place: Place) -> DirectionsFacts:
    """The cosines in one place; each training has at least one head, each head that place."""
    units = {name: [_unit(head[place].weights_H) for head in heads] for name, heads in trainings.items()}
    layer, position = place
    return DirectionsFacts(
        layer=layer,
        position=position,
        hidden=len(next(iter(units.values()))[0]),
        trainings=list(units),
        n_seeds=[len(heads) for heads in units.values()],
        validation_auroc=[_mean_auroc(heads, place) for heads in trainings.values()],
        cosines=[[_cosine(units[row], units[column], row == column) for column in units] for row in units],
    )


def _mean_auroc(heads: Sequence[Mapping[Place, Found]], place: Place) -> float:
    return fmean(head[place].auroc for head in heads)


def _unit(weights_H: NDArray[np.float32]) -> NDArray[np.float64]:
    """Scale weights to length 1; zeros stay zeros."""
    found_H = weights_H.astype(np.float64)
    return found_H / max(float(np.linalg.norm(found_H)), 1e-12)


def _cosine(
    ours: Sequence[NDArray[np.float64]], theirs: Sequence[NDArray[np.float64]], is_same: bool
) -> float | None:
    pairs = list(combinations(ours, 2) if is_same else product(ours, theirs))
    return fmean(float(a_H @ b_H) for a_H, b_H in pairs) if pairs else None
