"""The surface check on texts without any surface: how often its interval holds .5."""

from collections.abc import Iterator

import numpy as np
from sklearn.model_selection import GroupKFold, cross_val_predict

from benchmarks.coverage import Table, given, holds, means
from benchmarks.judged import CELL, sample
from monitorbench.corpus.classifiers import classifier
from monitorbench.corpus.surface import surface_check
from monitorbench.metrics.auroc import auroc, clustered_variance, components
from monitorbench.records import Label, Sample, Split

WORDS = [f"word{i}" for i in range(300)]


def tables(seed: int, effort: float) -> Iterator[Table]:
    """Tabulate the coverage of both intervals, by the size of the cells."""
    rng, n = np.random.default_rng([seed, 6]), round(90 * effort)

    def draw(number: int, groups: int, per_label: int) -> list[float]:
        samples = [
            sample(
                f"{group}-{k}",
                " ".join(rng.choice(WORDS, size=12)),
                label,
                request="?",
                group=f"{group:03}",
                split=Split.TEST,
            )
            for group in range(groups)
            for k in range(per_label)
            for label in Label
        ]
        now = surface_check(samples, seed=number)[str(CELL)]
        both = (_interval_before(samples), given(now["auroc_ci"]))
        return [given(now["auroc"]), *holds(both, 0.5), *(high - low for low, high in both)]

    rows = [
        [groups, per_label, *means(draw(number, groups, per_label) for number in range(n))]
        for groups, per_label in ((20, 1), (40, 1), (80, 1), (15, 3))
    ]
    yield Table(
        "The surface check on random texts",
        "groups | samples of a label each | mean AUROC | holds .5 before | holds .5 now | width before | "
        "width now",
        rows,
        f"{n:,} cells each of texts drawn from one vocabulary, nominal .95. Before: one "
        "AUROC over all folds' scores, its interval over draws of test groups alone.",
    )


def _interval_before(samples: list[Sample]) -> tuple[float, float]:
    """Compute the interval over draws of test groups, of scores pooled over the folds."""
    flags = np.array([sample.label is Label.MISBEHAVIOR for sample in samples])
    names = [sample.group_id for sample in samples]
    folds = list(GroupKFold(5).split(names, groups=names))
    words = classifier("bag_of_words")
    scores = cross_val_predict(words, samples, flags, cv=folds, method="decision_function")
    index = np.unique(names, return_inverse=True)[1]
    variance = given(clustered_variance(components(scores, flags), flags, index))
    value, half = given(auroc(scores, flags)), 1.96 * float(np.sqrt(max(0.0, variance)))
    return value - half, value + half
