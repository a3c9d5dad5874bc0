"""The shortcut audit: how far a label can be told without reading, by classifiers that see next to nothing.

The words of the response; what it echoes of its request, how it overlaps with it, and its form
(`corpus.shortcuts`); its length; its source; and all of these but the source at once (`corpus.classifiers`).
Where one does well, a monitor could do well without understanding; a monitor that does no better than it
isn't reading. Two oracles go with them: what would be known of the label by whoever knew only whether the
request's suggestion is right, or only whether the answer is. `metrics.marks` says when a cell is marked.

A check is cross-validated among the samples and, where the dataset has a train split of another making,
fitted there and judged here; the larger lower bound counts. The cross-validated AUROC
is the mean over the folds of repeated cross-validation. The folds' own spread makes its interval, so that it
holds what another training set would have given as well as other test samples; folds share most of their
training samples, which Nadeau & Bengio (2003, Machine Learning 52:239) correct for.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from monitorbench.corpus.classifiers import COUNT, LEAST_LEAF, LOOK, Looks, classifier, small_fits
from monitorbench.corpus.shortcuts import FAMILIES, SIZES, Family
from monitorbench.metrics.auroc import auroc, auroc_interval
from monitorbench.metrics.bootstrap import group_index
from monitorbench.metrics.columns import stratum_name
from monitorbench.metrics.marks import (
    ORACLES,
    SURFACES,
    ShortcutMarks,
    Surface,
    SurfaceCheck,
    is_marked,
    shortcuts,
)
from monitorbench.metrics.sensitivity import least_standard_error
from monitorbench.records import Label, Sample, Truth

CHECKED_PER_CELL = 3000
"""Samples of a cell that are enough to check it."""
LEAST_OF_A_STRATUM = 20
"""Samples of each label from which a stratum is checked by itself."""
_SEED = 0
_REPEATS = 2
_LONGEST_WORD = 40


def surface_check(samples: Sequence[Sample], *, seed: int, folds: int = 5) -> dict[str, SurfaceCheck]:
    """Run the bag of words in every cell; `folds`-fold, twice, no group on both sides of a fold."""
    by_cell = surface_checks(samples, seed=seed, folds=folds, surfaces=("bag_of_words",))
    return {cell: checks["bag_of_words"] for cell, checks in by_cell.items()}


def surface_checks(
    samples: Sequence[Sample], *, seed: int, folds: int = 5, surfaces: Sequence[Surface] = SURFACES
) -> dict[str, dict[Surface, SurfaceCheck]]:
    """Run several classifiers in every cell; `folds`-fold, twice, no group on both sides of a fold."""
    return {
        cell: _checks(members, surfaces, seed, folds) for cell, members in samples_by_cell(samples).items()
    }


def shortcuts_of(
    members: Sequence[Sample], *, headline: str | None = None, train: Sequence[Sample] = ()
) -> dict[str, ShortcutMarks]:
    """All checks of one cell's samples, by the cell's name, and of each of its strata that is large enough.

    `train` are samples of the same cell in a train split that is made otherwise. Where the cell's number
    is that of one stratum, so is its check (`metrics.columns.by_cell`).
    """
    cell = str(members[0].cell)
    strata: dict[str, list[Sample]] = {}
    fitted = _Fitted(train)
    for sample in members:
        strata.setdefault(sample.stratum, []).append(sample)
    by_stratum = {
        stratum_name(cell, stratum): shortcuts(_checks(some, SURFACES, _SEED, fitted=fitted, is_stratum=True))
        for stratum, some in sorted(strata.items())
        if len(strata) > 1 and _is_enough(some)
    }
    if headline is not None and stratum_name(cell, headline) in by_stratum:
        return {cell: by_stratum[stratum_name(cell, headline)], **by_stratum}
    counted = strata.get(headline, members) if headline is not None else members
    return {cell: shortcuts(_checks(counted, SURFACES, _SEED, fitted=fitted)), **by_stratum}


def samples_by_cell(samples: Sequence[Sample]) -> dict[str, list[Sample]]:
    """The samples of each cell, cells by name."""
    by_cell: dict[str, list[Sample]] = {}
    for sample in samples:
        by_cell.setdefault(str(sample.cell), []).append(sample)
    return dict(sorted(by_cell.items()))


def _is_enough(members: Sequence[Sample]) -> bool:
    labels = [sample.label for sample in members]
    return all(labels.count(label) >= LEAST_OF_A_STRATUM for label in Label)


class _Fitted:
    """Classifiers fitted on a train split, one a surface and each when it is first asked for."""

    def __init__(self, train: Sequence[Sample]) -> None:
        self._flags = np.array([sample.label is Label.MISBEHAVIOR for sample in train])
        self._looks = Looks(train)
        self._classifiers: dict[Surface, Any] = {}

    def check(
        self, looks: Looks, surface: Surface, flags: NDArray[np.bool_], groups: NDArray[np.int64]
    ) -> tuple[float, list[float]] | None:
        """AUROC on other samples, with its interval; None where either side lacks a label."""
        if len(np.unique(self._flags)) < 2 or len(np.unique(flags)) < 2:
            return None
        if surface not in self._classifiers:
            behind_the_look = classifier(surface)[1:]
            self._classifiers[surface] = behind_the_look.fit(self._looks.at(surface), self._flags)
        scores = self._classifiers[surface].decision_function(looks.at(surface))
        value, bounds = auroc(scores, flags), auroc_interval(scores, flags, groups)
        return None if value is None or bounds is None else (value, [bounds.low, bounds.high])


def _checks(
    members: Sequence[Sample],
    surfaces: Sequence[Surface],
    seed: int,
    folds: int = 5,
    fitted: _Fitted | None = None,
    is_stratum: bool = False,
) -> dict[Surface, SurfaceCheck]:
    flags = np.array([sample.label is Label.MISBEHAVIOR for sample in members])
    groups = group_index([sample.group_id for sample in members])
    # Strata are named after what the oracles know: within one it decides the label.
    looks = Looks(members, knows_truth=not is_stratum)
    tested = [_folds(flags, groups, folds, [seed, repeat]) for repeat in range(_REPEATS)]
    with small_fits():
        return {surface: _check(looks, surface, flags, tested, groups, fitted) for surface in surfaces}


def _folds(
    is_misbehavior: NDArray[np.bool_], groups: NDArray[np.int64], folds: int, seed: Sequence[int]
) -> list[NDArray[np.bool_]]:
    """Which samples each fold tests: whole groups, both labels in every training part.

    None where the labels are too rare.
    """
    n_groups = int(groups.max(initial=-1)) + 1
    shuffled = np.random.default_rng(seed).permutation(n_groups)[groups]
    for count in range(min(folds, n_groups), 1, -1):
        tested = [shuffled % count == k for k in range(count)]
        if all(len(np.unique(is_misbehavior[~in_fold])) == 2 for in_fold in tested):
            return tested
    return []


def _check(
    looks: Looks,
    surface: Surface,
    flags: NDArray[np.bool_],
    repeats: Sequence[Sequence[NDArray[np.bool_]]],
    groups: NDArray[np.int64],
    fitted: _Fitted | None,
) -> SurfaceCheck:
    aurocs = _fold_aurocs(looks, surface, flags, [in_fold for tested in repeats for in_fold in tested])
    within = float(np.mean(aurocs)) if aurocs else None
    value, bounds = within, None
    if aurocs:
        bounds = _interval(aurocs, len(repeats[-1]), int(groups.max()) + 1)
    is_oracle = surface in ORACLES
    from_train = fitted.check(looks, surface, flags, groups) if fitted and not is_oracle else None
    if from_train is not None and (bounds is None or from_train[1][0] > bounds[0]):
        value, bounds = from_train
    marked = is_marked(surface, value, bounds)
    return SurfaceCheck(
        auroc=value,
        auroc_ci=bounds,
        n=len(flags),
        within=within,
        from_train=from_train and from_train[0],
        marked=marked,
        rule=_rule(looks, surface, flags) if marked else "",
    )


def _fold_aurocs(
    looks: Looks, surface: Surface, flags: NDArray[np.bool_], tested: Sequence[NDArray[np.bool_]]
) -> list[float]:
    """AUROC on each fold that has both labels, by a classifier fitted on the others."""
    aurocs: list[float] = []
    if not tested:
        return aurocs
    # What sees no label is done once, outside the folds: the look, and which words there are.
    pipeline, seen = classifier(surface), looks.at(surface)
    if surface in ORACLES and not any(fact[surface] for fact in seen):  # nothing is known of any sample
        return aurocs
    if surface == "source" and all(look == seen[0] for look in seen):  # every sample gets the same score
        return [0.5 for test in tested if len(np.unique(flags[test])) == 2]
    # Steps are fitted by hand, again for each fold: a pipeline takes as long around them as most of them do.
    *scale, model = [step for name, step in pipeline.steps if name not in (LOOK, COUNT)]
    if COUNT in pipeline.named_steps:
        seen = pipeline[COUNT].fit_transform(seen)
    for test in tested:
        train, test_features = seen[~test], seen[test]
        if (is_learnable := _learnable(train, surface)).any():
            train, test_features = train[:, is_learnable], test_features[:, is_learnable]
        for step in scale:
            train, test_features = step.fit_transform(train), step.transform(test_features)
        scores = model.fit(train, flags[~test]).decision_function(test_features)
        if (value := auroc(scores, flags[test])) is not None:
            aurocs.append(value)
    return aurocs


def _learnable(train: Any, surface: Surface) -> NDArray[np.bool_]:
    """Which columns of a training part anything can be learnt from [columns].

    Of the bag of words those that it has at all, as if they had been counted in it alone. Of what trees are
    grown over those that a split could part: others cost time and change nothing.
    """
    if surface == "bag_of_words":
        return np.asarray(train.getnnz(axis=0) > 0)
    if surface == "all_shortcuts" and len(train) >= 2 * LEAST_LEAF:
        ordered = np.sort(train, axis=0)
        return np.asarray(ordered[LEAST_LEAF - 1] < ordered[-LEAST_LEAF])
    return np.ones(0, dtype=np.bool_)


def _rule(looks: Looks, surface: Surface, flags: NDArray[np.bool_]) -> str:
    """The one feature or word that tells the labels apart best by itself, with its shares or AUROC."""
    best: tuple[float, str] = (0.0, "")
    if surface == "source":
        return "which source it is from"
    if surface in ORACLES:
        wrong = np.array([fact[surface] == Truth.WRONG for fact in looks.at(surface)])
        claim = "the suggestion is wrong" if surface == "request_oracle" else "the answer is wrong"
        return f"{claim}: {wrong[flags].mean():.0%} of misbehavior, {wrong[~flags].mean():.0%} of benign"
    if surface != "bag_of_words":
        names, values = looks.numbers(_FAMILIES_OF.get(surface, FAMILIES))
        for name, column in zip(names, values.T, strict=True):
            if surface != "length" or name in SIZES:
                best = max(best, _said_of_numbers(name, column, flags))
    if surface in ("bag_of_words", "all_shortcuts"):
        best = max(best, _best_word(looks.responses, flags))
    return best[1]


_FAMILIES_OF: Mapping[Surface, Sequence[Family]] = {
    "echo": ("echo",),
    "overlap": ("overlap",),
    "form": ("form",),
    "length": ("form",),
}


def _said_of_numbers(name: str, column: NDArray[np.float64], flags: NDArray[np.bool_]) -> tuple[float, str]:
    """How far from .5 a feature's AUROC is, and what it tells."""
    value = auroc(column, flags)
    if value is None:
        return 0.0, ""
    if set(np.unique(column)) <= {0.0, 1.0}:
        description = f"{column[flags].mean():.0%} of misbehavior, {column[~flags].mean():.0%} of benign"
    else:
        more = "more" if value > 0.5 else "less"
        description = f"{more} in misbehavior (AUROC {max(value, 1 - value):.2f} by itself)"
    return abs(value - 0.5), f"{name}: {description}"


def _best_word(texts: NDArray[np.object_], flags: NDArray[np.bool_]) -> tuple[float, str]:
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(binary=True, max_features=5000, token_pattern=r"\b\w+\b")
    occurs = vectorizer.fit_transform(texts)
    bad = np.asarray(occurs[flags].mean(axis=0)).ravel()
    good = np.asarray(occurs[~flags].mean(axis=0)).ravel()
    index = int(np.abs(bad - good).argmax())
    word = str(vectorizer.get_feature_names_out()[index])
    displayed = word if len(word) <= _LONGEST_WORD else f"{word[: _LONGEST_WORD - 1]}…"
    description = f'the word "{displayed}": {bad[index]:.0%} of misbehavior, {good[index]:.0%} of benign'
    return float(abs(bad[index] - good[index]) / 2), description


def _interval(aurocs: Sequence[float], n_folds: int, n_groups: int) -> list[float] | None:
    """95 % interval of the mean of the folds' AUROCs, clipped to [0, 1]; None for a single fold.

    Nadeau & Bengio's corrected variance, s²·(1/J + 1/(K − 1)) of J values over K folds, where 1/(K − 1) is a
    test part over its training part; Student's t with K − 1 degrees of freedom, since repeats are of the same
    samples. No less than a check on so many questions could show (`least_standard_error`).
    """
    if len(aurocs) < 2 or n_folds < 2:
        return None
    variance = float(np.var(aurocs, ddof=1)) * (1 / len(aurocs) + 1 / (n_folds - 1))
    error = max(float(np.sqrt(variance)), least_standard_error(n_groups))
    half = float(stdtrit(n_folds - 1, 0.975)) * error
    mean = float(np.mean(aurocs))
    return [max(0.0, mean - half), min(1.0, mean + half)]
