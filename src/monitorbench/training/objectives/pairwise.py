"""`objective=pairwise`: the label, and a margin between the scores of a sample and its counterpart.

A pair is the misbehavior and the benign sample of one cell and pair id. A pair stays in one forward pass;
samples without a counterpart go two by two beside the pairs and train by the label alone.
"""

import logging
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence

import numpy as np
import torch
from torch.nn import functional

from monitorbench.config.base import UserError
from monitorbench.config.training import Training
from monitorbench.prompts.label_tokens import LabelTokens
from monitorbench.records import Label, Sample
from monitorbench.training.examples import ExampleBatch
from monitorbench.training.objectives.base import AddedLoss, ObjectiveSpec, Unit, in_turn, steps_of, strata

_log = logging.getLogger(__name__)


def find_pairs(samples: Sequence[Sample], pool: Iterable[int] | None = None) -> list[Unit]:
    """Positions of pairs, misbehavior first; a sample is in one pair at most."""
    sides: defaultdict[Hashable, dict[Label, list[int]]] = defaultdict(lambda: {label: [] for label in Label})
    for i in range(len(samples)) if pool is None else pool:
        sides[samples[i].cell, samples[i].pair_id][samples[i].label].append(i)
    return [
        pair
        for side in sides.values()
        for pair in zip(side[Label.MISBEHAVIOR], side[Label.BENIGN], strict=False)
    ]


def margin_loss(
    logits_SV: torch.Tensor, batch: ExampleBatch, pairs_P2: torch.Tensor, tokens: LabelTokens, margin: float
) -> torch.Tensor:
    """Sum over pairs of softplus(margin − (score of the misbehavior sample − score of its counterpart)).

    A score is the logit of the evaluation's: ln P(any misbehavior word) − ln P(any benign word) where the
    label is answered. `pairs_P2` holds positions among the batch's examples, misbehavior first.
    """
    first_N = torch.searchsorted(batch.example_S, torch.arange(int(batch.example_S[-1]) + 1).to(pairs_P2))
    logits_NV = logits_SV[first_N]
    scores_N = logits_NV[:, list(tokens.misbehavior)].logsumexp(-1)
    scores_N = scores_N - logits_NV[:, list(tokens.benign)].logsumexp(-1)
    gaps_P = scores_N[pairs_P2[:, 0]] - scores_N[pairs_P2[:, 1]]
    return functional.softplus(margin - gaps_P).sum()


def _validate(samples: Sequence[Sample], training: Training) -> None:
    if not find_pairs(samples):
        raise UserError(
            f"training.objective=pairwise: none of {len(samples)} samples has its counterpart beside it; "
            "expected a paired training split, or objective=sft"
        )


def _facts(samples: Sequence[Sample]) -> dict[str, int]:
    n_pairs = len(find_pairs(samples))
    _log.info("train: %d of %d samples have their counterpart beside them", 2 * n_pairs, len(samples))
    return {"n_pairs": n_pairs}


def _units(
    samples: Sequence[Sample], n_extra: int, training: Training, draw: np.random.Generator
) -> Iterator[Sequence[Unit]]:
    pool = range(len(samples))
    cells = strata(pool, lambda i: samples[i].cell) if training.balance == "cell" else [pool]
    units = in_turn([_two_by_two(samples, cell, draw) for cell in cells], draw)
    return steps_of(units, training.steps, training.batch_size)


def _two_by_two(samples: Sequence[Sample], pool: Sequence[int], draw: np.random.Generator) -> Iterator[Unit]:
    """Pairs, and the unpaired two by two; each round has every sample, an odd one with a chance partner."""
    pairs = find_pairs(samples, pool)
    paired = {i for pair in pairs for i in pair}
    single = [i for i in pool if i not in paired]
    while True:
        shuffled = [single[k] for k in draw.permutation(len(single))]
        if len(shuffled) % 2:
            shuffled.append(pool[int(draw.integers(len(pool)))])
        twos = [*pairs, *zip(shuffled[::2], shuffled[1::2], strict=True)]
        yield from (twos[k] for k in draw.permutation(len(twos)))


def _loss(samples: Sequence[Sample], tokens: LabelTokens, training: Training) -> AddedLoss:
    """`pair_weight` times the margin's loss; a step's is the mean over its twos, pairs or not."""
    pairs = set(find_pairs(samples))

    def added(logits_SV: torch.Tensor, batch: ExampleBatch, units: Sequence[Unit]) -> torch.Tensor:
        places = [(2 * k, 2 * k + 1) for k, unit in enumerate(units) if unit in pairs]
        if not places:
            return logits_SV.new_zeros(())
        pairs_P2 = torch.tensor(places, device=logits_SV.device)
        term = margin_loss(logits_SV, batch, pairs_P2, tokens, training.margin)
        return training.pair_weight * term / (training.micro_batch_size / 2)

    return added


PAIRWISE = ObjectiveSpec("pairwise", units=_units, validate=_validate, facts=_facts, loss=_loss)
