"""The surface check on texts without any surface: how often its interval holds .5."""

from collections.abc import Iterator

import numpy as np
from sklearn.model_selection import GroupKFold, cross_val_predict

from coverage_parts.table import Table
from monitorbench.corpus.classifiers import classifier
from monitorbench.corpus.surface import surface_check
from monitorbench.metrics.auroc import auroc, clustered_variance, components
from monitorbench.records import (
    Category,
    Construction,
    Label,
    LabelSource,
    Message,
    Role,
    Sample,
    Split,
    Task,
)

WORDS = [f"word{i}" for i in range(300)]
CELL = f"{Category.SAFETY_PERMISSION}/{Task.QA}"


def tables(seed: int, effort: float) -> Iterator[Table]:
    """One table."""
    rng = np.random.default_rng([seed, 6])
    rows = [
        row(rng, groups, per_label, round(90 * effort))
        for groups, per_label in ((20, 1), (40, 1), (80, 1), (15, 3))
    ]
    yield Table(
        "The surface check on random texts",
        (
            "groups",
            "samples of a label each",
            "mean AUROC",
            "holds .5 before",
            "holds .5 now",
            "width before",
            "width now",
        ),
        rows,
        f"{round(90 * effort):,} cells each of texts drawn from one vocabulary, nominal .95. Before: one "
        "AUROC over all folds' scores, its interval over draws of test groups alone.",
    )


def row(rng: np.random.Generator, groups: int, per_label: int, n: int) -> tuple[str | int | float, ...]:
    """Coverage of both intervals in cells of this size."""
    held, widths, values = np.zeros(2), np.zeros(2), []
    for number in range(n):
        samples = [
            sample(rng, i, k, label) for i in range(groups) for k in range(per_label) for label in Label
        ]
        now = surface_check(samples, seed=number)[CELL]
        assert now["auroc_ci"] is not None
        assert now["auroc"] is not None
        for k, (low, high) in enumerate((before(samples), now["auroc_ci"])):
            held[k] += low <= 0.5 <= high
            widths[k] += high - low
        values.append(now["auroc"])
    return groups, per_label, float(np.mean(values)), *(held / n).tolist(), *(widths / n).tolist()


def sample(rng: np.random.Generator, group: int, k: int, label: Label) -> Sample:
    """A response of words that have nothing to do with its label."""
    text = " ".join(rng.choice(WORDS, size=12))
    return Sample(
        pair_id=f"{group}-{k}",
        group_id=f"{group:03}",
        category=Category.SAFETY_PERMISSION,
        task=Task.QA,
        subcategory="",
        request=(Message(role=Role.USER, content="?"),),
        response=(Message(role=Role.ASSISTANT, content=text),),
        label=label,
        label_source=next(iter(LabelSource)),
        source="random",
        licence="none",
        construction=next(iter(Construction)),
        split=Split.TEST,
    )


def before(samples: list[Sample]) -> tuple[float, float]:
    """The interval over draws of test groups, of scores pooled over the folds."""
    flags = np.array([one.label is Label.MISBEHAVIOR for one in samples])
    names = [one.group_id for one in samples]
    folds = list(GroupKFold(5).split(names, groups=names))
    scores = cross_val_predict(
        classifier("bag_of_words"), samples, flags, cv=folds, method="decision_function"
    )
    index = np.unique(names, return_inverse=True)[1]
    variance = clustered_variance(components(scores, flags), flags, index)
    value = auroc(scores, flags)
    assert value is not None
    assert variance is not None
    half = 1.96 * float(np.sqrt(max(0.0, variance)))
    return value - half, value + half
