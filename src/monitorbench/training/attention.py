"""Fitting an attention head: a learned query decides which tokens of a response its readout is of.

The attention probe of Kantamneni et al. (2502.16681) and McKenzie et al. (2506.10805): softmax(q · x_t /
sqrt(hidden)) over a window's tokens, then a linear readout; with several queries, the sum of theirs. Pooling
and readout are both linear, so that a step multiplies the tokens by two vectors, and that is all.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.nn.utils.rnn import pad_sequence

from monitorbench.config.training import Head
from monitorbench.engines.stored.head import windows
from monitorbench.training.heads import (
    Goodness,
    HeadCandidate,
    balanced,
    goodness,
    refuse_one_label,
    standardisation,
)

_Weights = dict[str, NDArray[np.float32]]


class TokenSplit(NamedTuple):
    """The token states and labels of one split."""

    read: Callable[[int], NDArray[np.float16]]
    """[tokens, hidden] of a sample's response, by its number: read when they are used, since a split's don't
    fit into memory."""
    is_misbehavior: NDArray[np.bool_]


def candidates(head: Head, train: TokenSplit, validation: TokenSplit, seed: int) -> Iterator[HeadCandidate]:
    """Fit a head with each strength of regularisation, by AdamW on the CPU; the epoch is validation's.

    As in `heads.candidates` windows are fitted to their sample's label, and both labels weigh the same.
    Raises `ValueError` where a split holds one label.
    """
    refuse_one_label(train.is_misbehavior, validation.is_misbehavior)
    standard = _standardised_by(train)
    for strength in head.regularisation:
        fitted, figures = _fit(head, strength, standard, train, validation, seed)
        yield HeadCandidate(strength, *figures, standard | fitted)


def _standardised_by(train: TokenSplit) -> _Weights:
    """Mean and standard deviation over all tokens of the split."""
    numbers = range(len(train.is_misbehavior))
    sums = [(len(x), x.sum(0)) for x in (train.read(number).astype(np.float64) for number in numbers)]
    n_tokens = sum(n for n, _ in sums)
    mean_H = sum(total for _, total in sums) / n_tokens
    squares_H = sum(np.square(train.read(number).astype(np.float64) - mean_H).sum(0) for number in numbers)
    return standardisation(np.asarray(mean_H), np.sqrt(squares_H / n_tokens))


def _fit(
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


class _Attention(torch.nn.Module):
    """Queries and readouts, of standardised states."""

    def __init__(self, head: Head, standard: _Weights, draw: torch.Generator) -> None:
        super().__init__()
        self._n, self._window = head.queries, head.window
        self._mean_H, self._scale_H = (torch.from_numpy(standard[name]) for name in ("mean", "scale"))
        bound = len(self._mean_H) ** -0.5
        both_QH = torch.empty(2 * self._n, len(self._mean_H)).uniform_(-bound, bound, generator=draw)
        self.both_QH = torch.nn.Parameter(both_QH)
        """The queries, then the readouts."""
        self.c = torch.nn.Parameter(torch.zeros(1))

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
