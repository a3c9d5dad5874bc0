"""Fitting a head on hidden states: one layer, one position, one strength of regularisation at a time.

Linear classifiers on a network's layers are Alain and Bengio's probes (1610.01644); logistic regression on
standardised states is how Goldowsky-Dill et al. (2502.03407) fit one to deception. What is chosen is chosen
by the AUROC of the validation split, of equals by its loss, of these the first.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitorbench.config.training import Head
from monitorbench.metrics.auroc import auroc

_Weights = dict[str, NDArray[np.float32]]


class HeadSplit(NamedTuple):
    """States and labels of one split: N samples, which have W windows (≥ N) between them."""

    states_WH: NDArray[np.float16]
    """The windows of the first sample, then those of the second, and so on."""
    windows_N: NDArray[np.int64]
    """Number of windows of each sample, at least one."""
    is_misbehavior: NDArray[np.bool_]
    """Label of each sample, [N]."""


class HeadCandidate(NamedTuple):
    """A head that was fitted, and what validation says of it."""

    regularisation: float
    auroc: float
    """AUROC on the validation split, in [0, 1]."""
    loss: float
    """The validation split's mean cross-entropy, in nats, both labels weighing the same."""
    tensors: _Weights
    """See `engines.stored.head.FittedHead`."""


class _Data(NamedTuple):
    """Both splits, standardised by the train split's mean and standard deviation."""

    x_WH: NDArray[np.float32]
    is_misbehavior: NDArray[np.bool_]
    """Label of each window, [W]: that of its sample."""
    weights_W: NDArray[np.float64]
    """Weight of each window: a sample's weight is shared equally by its windows."""
    n_samples: int
    v_VH: NDArray[np.float32]
    validation: HeadSplit


def candidates(head: Head, train: HeadSplit, validation: HeadSplit, seed: int) -> Iterator[HeadCandidate]:
    """Fit a linear head or an MLP with each strength of regularisation.

    Both labels weigh the same, whatever their numbers. Every window is fitted to its sample's label, and
    samples weigh the same however many they have; validation judges a sample by the highest of its windows.
    Raises `ValueError` where a split holds one label.
    """
    refuse_one_label(train.is_misbehavior, validation.is_misbehavior)
    states_WH = train.states_WH.astype(np.float64)
    standard = standardisation(states_WH.mean(0), states_WH.std(0))
    data = _Data(
        x_WH=_standardised(train.states_WH, standard),
        is_misbehavior=np.repeat(train.is_misbehavior, train.windows_N),
        weights_W=np.repeat(balanced(train.is_misbehavior) / train.windows_N, train.windows_N),
        n_samples=len(train.is_misbehavior),
        v_VH=_standardised(validation.states_WH, standard),
        validation=validation,
    )
    fit = {"linear": _linear, "mlp": _mlp}[head.kind]
    for strength in head.regularisation:
        fitted, goodness = fit(head, strength, data, seed)
        yield HeadCandidate(strength, *goodness, standard | fitted)


def refuse_one_label(train: NDArray[np.bool_], validation: NDArray[np.bool_]) -> None:
    """Raise `ValueError` where a split's samples are all of one label."""
    for name, is_misbehavior in (("train", train), ("validation", validation)):
        if len(np.unique(is_misbehavior)) < 2:
            raise ValueError(f"the {name} split holds one label")


def standardisation(mean_H: NDArray[np.float64], scale_H: NDArray[np.float64]) -> _Weights:
    """`mean` and `scale` of a head, from the train split's mean and standard deviation."""
    changes_H = np.where(scale_H < 1e-6, 1.0, scale_H)  # by 1: a dimension that never changes
    return {"mean": mean_H.astype(np.float32), "scale": changes_H.astype(np.float32)}


def balanced(is_misbehavior: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Weights with a mean of 1 that make both labels weigh the same."""
    share = is_misbehavior.mean()
    return np.where(is_misbehavior, 0.5 / share, 0.5 / (1 - share))


class Goodness(NamedTuple):
    """AUROC and loss of a head on the validation split; see `HeadCandidate`."""

    auroc: float
    loss: float

    def beats(self, other: "Goodness | None") -> bool:
        """Whether this head is chosen over the other; of equals the first stays."""
        return other is None or (self.auroc, -self.loss) > (other.auroc, -other.loss)


def goodness(
    logits_W: NDArray[Any], windows_N: NDArray[np.int64], is_misbehavior: NDArray[np.bool_]
) -> Goodness:
    """Measure a head by the highest logit of each sample's windows.

    Both figures are rounded, so that sums in another order choose the same head.
    """
    logits_N = np.maximum.reduceat(logits_W.astype(np.float64), np.cumsum(windows_N) - windows_N)
    area = auroc(logits_N, is_misbehavior)
    assert area is not None  # both labels are there, and every sample has a score
    losses_N = np.logaddexp(0, np.where(is_misbehavior, -logits_N, logits_N))
    loss = float(np.average(losses_N, weights=balanced(is_misbehavior)))
    return Goodness(round(area, 6), round(loss, 6))


def _standardised(states_WH: NDArray[np.float16], standard: _Weights) -> NDArray[np.float32]:
    return np.asarray((states_WH.astype(np.float32) - standard["mean"]) / standard["scale"])


def _linear(head: Head, strength: float, data: _Data, seed: int) -> tuple[_Weights, Goodness]:
    """Fit logistic regression: mean loss + strength/2 · |v|²; scikit-learn's C is 1 / (strength · n)."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1 / (strength * data.n_samples), max_iter=2000)
    model.fit(data.x_WH, data.is_misbehavior, sample_weight=data.weights_W)
    v = model.coef_[0].astype(np.float32)
    c = model.intercept_.astype(np.float32)
    chosen_by = data.validation
    return {"v": v, "c": c}, goodness(data.v_VH @ v + c, chosen_by.windows_N, chosen_by.is_misbehavior)


def _mlp(head: Head, strength: float, data: _Data, seed: int) -> tuple[_Weights, Goodness]:
    """Fit one hidden layer by AdamW, and keep the epoch that is best on the validation split."""
    import torch
    from torch import nn

    draw = torch.Generator().manual_seed(seed)
    n, hidden = data.x_WH.shape
    chosen_by = data.validation
    first, last = nn.Linear(hidden, head.hidden), nn.Linear(head.hidden, 1)
    with torch.no_grad():
        for layer in (first, last):
            bound = layer.in_features**-0.5
            layer.weight.uniform_(-bound, bound, generator=draw)
            layer.bias.zero_()
    parameters = [*first.parameters(), *last.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=head.learning_rate, weight_decay=strength)
    x, v = torch.from_numpy(data.x_WH), torch.from_numpy(data.v_VH)
    y = torch.from_numpy(data.is_misbehavior.astype(np.float32))
    weights = torch.from_numpy((data.weights_W * (n / data.n_samples)).astype(np.float32))
    best: Goodness | None = None
    best_weights: _Weights = {}
    for _ in range(head.epochs):
        order = torch.randperm(n, generator=draw)
        for start in range(0, n, head.batch_size):
            rows = order[start : start + head.batch_size]
            logits = last(first(x[rows]).relu())[:, 0]
            loss = nn.functional.binary_cross_entropy_with_logits(logits, y[rows], weights[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            logits_V = last(first(v).relu())[:, 0].numpy()
            now = goodness(logits_V, chosen_by.windows_N, chosen_by.is_misbehavior)
            if now.beats(best):
                best = now
                best_weights = {
                    "W": first.weight.numpy().copy(),
                    "b": first.bias.numpy().copy(),
                    "v": last.weight[0].numpy().copy(),
                    "c": last.bias.numpy().copy(),
                }
    assert best is not None  # at least one epoch
    return best_weights, best
