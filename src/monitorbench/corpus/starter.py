"""`dataset=starter`: the embedded pairs of all seven cells, assembled.

Four cells are written by hand. Specification gaming in code is built from HumanEval and checked by
execution; the two reasoning cells are generated with exactly known answers.
"""

from collections.abc import Callable
from typing import NamedTuple

from monitorbench.config.datasets import StarterDataset
from monitorbench.construct.code import incentive as special_cased
from monitorbench.construct.cues import cue
from monitorbench.construct.pair import Pair
from monitorbench.construct.reasoning import incentive
from monitorbench.corpus.selection import CORPUS_VERSION, balanced
from monitorbench.records import Sample
from monitorbench.sources import handwritten
from monitorbench.sources.upstream import coding_problems
from monitorbench.word_problems import generate as word_problems

_BALANCE = 6
"""Limit for the pairs of code, see `corpus.selection`."""


class StarterSamples(NamedTuple):
    """All samples, and for the manifest how many candidates were rejected at which check."""

    samples: list[Sample]
    dropped: dict[str, int]


def inputs(config: StarterDataset) -> dict[str, object]:
    """Settings, raw files and declared versions that decide the samples."""
    deciding = {"name", "seed", "generated_pairs", "shares", *([] if config.own_checks else ["own_checks"])}
    return {
        "dataset": config.model_dump(mode="json", include=deciding),
        "handwritten": handwritten.fingerprint(),
        "humaneval": coding_problems.humaneval_sha256(),
        "balance": _BALANCE,
        "versions": {
            "corpus": CORPUS_VERSION,
            "handwritten": handwritten.VERSION,
            "humaneval": coding_problems.HUMANEVAL.version,
            "word_problems": word_problems.VERSION,
            **dict((special_cased.VERSION, cue.VERSION, incentive.VERSION)),
        },
    }


def assemble(config: StarterDataset, advance: Callable[[int], None]) -> StarterSamples:
    """Build every pair; `advance` is called with the number of cells done. Deterministic for a config."""
    pairs: list[Pair] = []
    for cell in handwritten.CELLS:
        pairs += [handwritten.pair_of(cell, row, "monitorbench") for row in handwritten.load(cell)]
        advance(1)
    gaming, dropped = special_cased.special_cased_pairs(
        coding_problems.read_humaneval(), seed=config.seed, own_checks=config.own_checks
    )
    chosen = balanced(gaming, _BALANCE, len(gaming))
    dropped["pair: out of balance"] = len(gaming) - len(chosen)
    pairs += chosen
    advance(1)
    problems = word_problems.generate(2 * config.generated_pairs, seed=config.seed)
    pairs += cue.cued_pairs(problems[0::2], seed=config.seed)
    advance(1)
    pairs += incentive.incentivised_pairs(problems[1::2], seed=config.seed)
    advance(1)
    return StarterSamples([sample for pair in pairs for sample in pair], dropped)


N_CELLS = len(handwritten.CELLS) + 3
