"""Fitting a head on hidden states: one layer, one position, one strength of regularisation at a time.

Linear classifiers on a network's layers are Alain and Bengio's probes (1610.01644); logistic regression on
standardised states is how Goldowsky-Dill et al. (2502.03407) fit one to deception. What is chosen is chosen
by the AUROC of the validation split, of equals by its loss, of these the first.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitorbench.config.head import Head
from monitorbench.metrics.auroc import auroc

_Weights = dict[str, NDArray[np.float32]]


class Split(NamedTuple):
    """States and labels of one split."""

    states_NH: NDArray[np.float16]
    is_misbehavior: NDArray[np.bool_]


class Candidate(NamedTuple):
    """A head that was fitted, and what validation says of it."""

    regularisation: float
    auroc: float
    """On the validation split, in [0, 1]."""
    loss: float
    """The validation split's mean cross-entropy, in nats, both labels weighing the same."""
    tensors: _Weights
    """See `engines.stored.head.FittedHead`."""


class _Data(NamedTuple):
    """Both splits, standardised by the first."""

    x_NH: NDArray[np.float32]
    is_misbehavior: NDArray[np.bool_]
    weights_N: NDArray[np.float64]
    v_NH: NDArray[np.float32]
    validation: Split


def candidates(head: Head, train: Split, validation: Split, seed: int) -> Iterator[Candidate]:
    """Fit a head with each strength of regularisation.

    Both labels weigh the same, whatever their numbers. Raises `ValueError` where a split holds one label.
    """
    for name, split in (("train", train), ("validation", validation)):
        if len(np.unique(split.is_misbehavior)) < 2:
            raise ValueError(f"the {name} split holds one label")
    states_NH = train.states_NH.astype(np.float64)
    mean_H, scale_H = states_NH.mean(0), states_NH.std(0)
    scale_H[scale_H < 1e-6] = 1.0  # a dimension that never changes
    standard = {
        "mean": mean_H.astype(np.float32),
        "scale": scale_H.astype(np.float32),
    }
    data = _Data(
        x_NH=_standardised(train.states_NH, standard),
        is_misbehavior=train.is_misbehavior,
        weights_N=_balanced(train.is_misbehavior),
        v_NH=_standardised(validation.states_NH, standard),
        validation=validation,
    )
    fit = {"linear": _linear, "mlp": _mlp}[head.kind]
    for strength in head.regularisation:
        fitted, goodness = fit(head, strength, data, seed)
        yield Candidate(strength, *goodness, standard | fitted)


def _standardised(states_NH: NDArray[np.float16], standard: _Weights) -> NDArray[np.float32]:
    return np.asarray((states_NH.astype(np.float32) - standard["mean"]) / standard["scale"])


def _balanced(is_misbehavior: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Weights with a mean of 1 that make both labels weigh the same."""
    share = is_misbehavior.mean()
    return np.where(is_misbehavior, 0.5 / share, 0.5 / (1 - share))


class _Goodness(NamedTuple):
    auroc: float
    loss: float

    def beats(self, other: "_Goodness | None") -> bool:
        return other is None or (self.auroc, -self.loss) > (other.auroc, -other.loss)


def _goodness(logits_N: NDArray[Any], validation: Split) -> _Goodness:
    """Rounded, so that sums in another order choose the same."""
    logits_N = logits_N.astype(np.float64)
    found = auroc(logits_N, validation.is_misbehavior)
    assert found is not None  # both labels are there, and every sample has a score
    losses_N = np.logaddexp(0, np.where(validation.is_misbehavior, -logits_N, logits_N))
    loss = float(np.average(losses_N, weights=_balanced(validation.is_misbehavior)))
    return _Goodness(round(found, 6), round(loss, 6))


def _linear(head: Head, strength: float, data: _Data, seed: int) -> tuple[_Weights, _Goodness]:
    """Logistic regression: mean loss + strength/2 · |v|²; scikit-learn's C is 1 / (strength · n)."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1 / (strength * len(data.x_NH)), max_iter=2000)
    model.fit(data.x_NH, data.is_misbehavior, sample_weight=data.weights_N)
    v = model.coef_[0].astype(np.float32)
    c = model.intercept_.astype(np.float32)
    return {"v": v, "c": c}, _goodness(data.v_NH @ v + c, data.validation)


def _mlp(head: Head, strength: float, data: _Data, seed: int) -> tuple[_Weights, _Goodness]:
    """One hidden layer, AdamW; what is kept is the epoch that validation likes best."""
    import torch
    from torch import nn

    draw = torch.Generator().manual_seed(seed)
    n, hidden = data.x_NH.shape
    first, last = nn.Linear(hidden, head.hidden), nn.Linear(head.hidden, 1)
    with torch.no_grad():
        for layer in (first, last):
            bound = layer.in_features**-0.5
            layer.weight.uniform_(-bound, bound, generator=draw)
            layer.bias.zero_()
    parameters = [*first.parameters(), *last.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=head.learning_rate, weight_decay=strength)
    x, v = torch.from_numpy(data.x_NH), torch.from_numpy(data.v_NH)
    y = torch.from_numpy(data.is_misbehavior.astype(np.float32))
    weights = torch.from_numpy(data.weights_N.astype(np.float32))
    best: _Goodness | None = None
    kept: _Weights = {}
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
            now = _goodness(last(first(v).relu())[:, 0].numpy(), data.validation)
            if now.beats(best):
                best = now
                kept = {
                    "W": first.weight.numpy().copy(),
                    "b": first.bias.numpy().copy(),
                    "v": last.weight[0].numpy().copy(),
                    "c": last.bias.numpy().copy(),
                }
    assert best is not None  # at least one epoch
    return kept, best
