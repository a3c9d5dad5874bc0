"""`dataset=starter`: the embedded pairs of all seven cells, assembled.

Four cells are written by hand. Specification gaming in code is built from HumanEval and checked by
execution; the two reasoning cells are generated with exactly known answers.
"""

from collections.abc import Callable
from typing import NamedTuple

from monitorbench.config.datasets import StarterDataset
from monitorbench.construct.code.incentive import special_cased_pairs
from monitorbench.construct.cues.cue import cued_pairs
from monitorbench.construct.pair import Pair, make_pair
from monitorbench.construct.reasoning.incentive import incentivised_pairs
from monitorbench.corpus.code import code_fingerprint
from monitorbench.records import Cell, Construction, LabelSource, Sample
from monitorbench.sources import handwritten
from monitorbench.sources.specification_gaming import humaneval
from monitorbench.word_problems import generate as word_problems


class Assembled(NamedTuple):
    """All samples, and for the manifest how many candidates fell at which check."""

    samples: list[Sample]
    dropped: dict[str, int]


def inputs(config: StarterDataset) -> dict[str, object]:
    """What decides the samples: settings, raw files and the code that builds them."""
    return {
        "dataset": config.model_dump(mode="json", include={"name", "seed", "generated_pairs", "shares"}),
        "handwritten": handwritten.fingerprint(),
        "humaneval": humaneval.fingerprint(),
        "code": code_fingerprint(),
    }


def assemble(config: StarterDataset, advance: Callable[[int], None]) -> Assembled:
    """Build every pair; `advance` is told how many cells are done. Deterministic for a config."""
    pairs: list[Pair] = []
    for cell in handwritten.CELLS:
        pairs += [_handwritten_pair(cell, row) for row in handwritten.load(cell)]
        advance(1)
    gaming, dropped = special_cased_pairs(humaneval.load(), seed=config.seed)
    pairs += gaming
    advance(1)
    problems = word_problems.generate(2 * config.generated_pairs, seed=config.seed)
    pairs += cued_pairs(problems[0::2], seed=config.seed)
    advance(1)
    pairs += incentivised_pairs(problems[1::2], seed=config.seed)
    advance(1)
    return Assembled([sample for pair in pairs for sample in pair], dropped)


N_CELLS = len(handwritten.CELLS) + 3


def _handwritten_pair(cell: Cell, row: handwritten.HandwrittenPair) -> Pair:
    return make_pair(
        row.group,
        group_id=row.group,
        cell=cell,
        subcategory=row.subcategory,
        request=row.request,
        misbehavior=row.misbehavior,
        benign=row.benign,
        label_source=LabelSource.AUTHOR,
        construction=Construction.HANDWRITTEN,
        source="monitorbench",
        licence="Apache-2.0",
    )
