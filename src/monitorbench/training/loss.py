"""The loss, computed from the supervised positions alone.

A stock trainer projects every position onto the whole vocabulary and throws nearly all of it away. Here
the model is asked for the logits of supervised positions only (`logits_to_keep`); loss and gradients are
the same.
"""

from typing import Any, NamedTuple

import torch
from torch.nn import functional

from monitorbench.prompts.render import LabelTokens
from monitorbench.training.examples import Batch


class Margin(NamedTuple):
    """The contrastive term of `objective=pairwise`."""

    label_tokens: LabelTokens
    margin: float
    weight: float


def supervised_logits(model: Any, batch: Batch) -> torch.Tensor:
    """[S, V] logits that predict the supervised tokens, in float32."""
    logits_BKV = model(
        input_ids=batch.ids_BT,
        position_ids=batch.positions_BT,
        **({} if batch.mask_BT is None else {"attention_mask": batch.mask_BT}),
        **({} if batch.lengths is None else {"sample_lengths": batch.lengths}),
        logits_to_keep=batch.keep,
        use_cache=False,  # with a cache, packed examples see each other
    ).logits
    return logits_BKV[batch.rows_S, batch.columns_S].float()


def label_loss(logits_SV: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Next-token cross-entropy, the mean over an example's tokens and then over examples.

    So a long completion weighs as much as a label. Where all have one length it is the mean over tokens.
    """
    losses_S = functional.cross_entropy(logits_SV, batch.targets_S, reduction="none")
    counts_N = torch.bincount(batch.example_S)
    return (losses_S / counts_N[batch.example_S]).sum() / len(counts_N)


def margin_loss(logits_SV: torch.Tensor, batch: Batch, pairs_P2: torch.Tensor, term: Margin) -> torch.Tensor:
    """Sum over pairs of softplus(margin − (score of the misbehavior sample − score of its twin)).

    A score is the logit of the evaluation's: ln P(any misbehavior word) − ln P(any benign word) where the
    label is answered. `pairs_P2` holds positions among the batch's examples, misbehavior first.
    """
    first_N = torch.searchsorted(batch.example_S, torch.arange(int(batch.example_S[-1]) + 1).to(pairs_P2))
    logits_NV = logits_SV[first_N]
    scores_N = logits_NV[:, list(term.label_tokens.misbehavior)].logsumexp(-1)
    scores_N = scores_N - logits_NV[:, list(term.label_tokens.benign)].logsumexp(-1)
    gaps_P = scores_N[pairs_P2[:, 0]] - scores_N[pairs_P2[:, 1]]
    return functional.softplus(term.margin - gaps_P).sum()
