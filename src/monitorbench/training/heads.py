"""Fitting a head on hidden states: one layer, one position, one strength of regularisation at a time.

Linear classifiers on a network's layers are Alain and Bengio's probes (1610.01644); logistic regression on
standardised states is how Goldowsky-Dill et al. (2502.03407) fit one to deception. What is chosen is chosen
by the AUROC of the validation split, of equals by its loss, of these the first.

An attention head is the attention probe of Kantamneni et al. (2502.16681) and McKenzie et al. (2506.10805):
softmax(q · x_t / sqrt(hidden)) over a window's tokens, then a linear readout; with several queries, the sum
of theirs. Pooling and readout are both linear, so that a step multiplies the tokens by two vectors.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.nn.utils.rnn import pad_sequence

from monitorbench.config.training import Head
from monitorbench.engines.stored.head import windows
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


class TokenSplit(NamedTuple):
    """The token states and labels of one split."""

    read: Callable[[int], NDArray[np.float16]]
    """[tokens, hidden] of a sample's response, by its number: read when they are used, since a split's don't
    fit into memory."""
    is_misbehavior: NDArray[np.bool_]


def attention_candidates(
    head: Head, train: TokenSplit, validation: TokenSplit, seed: int
) -> Iterator[HeadCandidate]:
    """Fit a head with each strength of regularisation, by AdamW on the CPU; the epoch is validation's.

    As in `candidates` windows are fitted to their sample's label, and both labels weigh the same.
    Raises `ValueError` where a split holds one label.
    """
    refuse_one_label(train.is_misbehavior, validation.is_misbehavior)
    standard = _standardised_by(train)
    for strength in head.regularisation:
        fitted, figures = _fit_attention(head, strength, standard, train, validation, seed)
        yield HeadCandidate(strength, *figures, standard | fitted)


def _standardised_by(train: TokenSplit) -> _Weights:
    """Mean and standard deviation over all tokens of the split."""
    numbers = range(len(train.is_misbehavior))
    sums = [(len(x), x.sum(0)) for x in (train.read(number).astype(np.float64) for number in numbers)]
    n_tokens = sum(n for n, _ in sums)
    mean_H = sum(total for _, total in sums) / n_tokens
    squares_H = sum(np.square(train.read(number).astype(np.float64) - mean_H).sum(0) for number in numbers)
    return standardisation(np.asarray(mean_H), np.sqrt(squares_H / n_tokens))


def _fit_attention(
    head: Head, strength: float, standard: _Weights, train: TokenSplit, validation: TokenSplit, seed: int
) -> tuple[_Weights, Goodness]:
    draw = torch.Generator().manual_seed(seed)
    n = len(train.is_misbehavior)
    module = _Attention(head, standard, draw)
    optimizer = torch.optim.AdamW(module.parameters(), lr=head.learning_rate, weight_decay=strength)
    y_N = torch.from_numpy(train.is_misbehavior.astype(np.float32))
    weights_N = torch.from_numpy(balanced(train.is_misbehavior).astype(np.float32))
    best: Goodness | None = None
    best_weights: _Weights = {}
    for _ in range(head.epochs):
        order = torch.randperm(n, generator=draw)
        for rows in order.split(head.batch_size):
            logits_W, windows_B = module([train.read(row) for row in rows.tolist()])
            of_W = rows.repeat_interleave(windows_B)
            weights_W = weights_N[of_W] / windows_B.repeat_interleave(windows_B)
            total = binary_cross_entropy_with_logits(logits_W, y_N[of_W], weights_W, reduction="sum")
            optimizer.zero_grad()
            (total / len(rows)).backward()
            optimizer.step()
        now = _validated(module, validation, head.batch_size)
        if now.beats(best):
            best, best_weights = now, module.tensors()
    assert best is not None  # at least one epoch
    return best_weights, best


class _Attention(nn.Module):
    """Queries and readouts, of standardised states."""

    def __init__(self, head: Head, standard: _Weights, draw: torch.Generator) -> None:
        super().__init__()
        self._n, self._window = head.queries, head.window
        self._mean_H, self._scale_H = (torch.from_numpy(standard[name]) for name in ("mean", "scale"))
        bound = len(self._mean_H) ** -0.5
        both_QH = torch.empty(2 * self._n, len(self._mean_H)).uniform_(-bound, bound, generator=draw)
        self.both_QH = nn.Parameter(both_QH)
        """The queries, then the readouts."""
        self.c = nn.Parameter(torch.zeros(1))

    def forward(self, states: Sequence[NDArray[np.float16]]) -> tuple[torch.Tensor, torch.Tensor]:
        """The logits of all windows, [W], and how many windows each sample has, [B]."""
        parts = [windows(len(sample), self._window) for sample in states]
        lengths = [end - start for some in parts for start, end in some]
        states_TH = torch.from_numpy(np.concatenate(states)).float()
        # Standardising the few vectors instead of the many states.
        of_states_QH = self.both_QH / self._scale_H
        products_TQ = states_TH @ of_states_QH.T - of_states_QH @ self._mean_H
        padded_WTQ = pad_sequence(list(products_TQ.split(lengths)), batch_first=True)
        queried_WTK, read_WTK = padded_WTQ.split(self._n, -1)
        is_padding_WT = torch.arange(padded_WTQ.shape[1]) >= torch.tensor(lengths)[:, None]
        wanted_WTK = queried_WTK / len(self._mean_H) ** 0.5
        weights_WTK = wanted_WTK.masked_fill(is_padding_WT[..., None], -torch.inf).softmax(1)
        logits_W = (weights_WTK * read_WTK).sum((1, 2)) + self.c
        return logits_W, torch.tensor([len(some) for some in parts])

    def tensors(self) -> _Weights:
        """`q`, `v` [queries, hidden] and `c` [1]; see `engines.stored.head.FittedHead`."""
        q_KH, v_KH = self.both_QH.detach().clone().split(self._n)
        return {"q": q_KH.numpy(), "v": v_KH.numpy(), "c": self.c.detach().numpy().copy()}


def _validated(module: _Attention, validation: TokenSplit, batch_size: int) -> Goodness:
    logits: list[NDArray[Any]] = []
    n_windows: list[NDArray[Any]] = []
    numbers = range(len(validation.is_misbehavior))
    with torch.no_grad():
        for start in numbers[::batch_size]:
            logits_W, windows_B = module(
                [validation.read(number) for number in numbers[start : start + batch_size]]
            )
            logits.append(logits_W.numpy())
            n_windows.append(windows_B.numpy())
    return goodness(np.concatenate(logits), np.concatenate(n_windows), validation.is_misbehavior)
