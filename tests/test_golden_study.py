"""A small study's identities: samples and verdicts found again by today's code are those of earlier runs.

Nothing is judged here. Verdict keys are planned: rendered by the real tokenizer and hashed with the judge's
identity, for `engine.dtype=float32 dataset.test.pairs_per_cell=2`.
"""

import hashlib
import json
from pathlib import Path

import pytest
from small_models import SMOLLM2, smollm2_folder
from studies import study

from monitorbench.corpus.build import directory_of
from monitorbench.corpus.store import read_split
from monitorbench.engines.protocol import Decoding
from monitorbench.engines.weights import weights_identity
from monitorbench.judging.identity import verdict_key
from monitorbench.prompts.render import Renderer
from monitorbench.records import Sample, Split

DATASET = "starter-5a37f1f30702"
SAMPLE_IDS = {
    "train": "bb8a3ad3154bbc74",
    "validation": "8a1c74d0f26b5272",
    "calibration": "c4bb656452975b96",
    "test": "d2b21cb59452b3f5",
}
"""Per split, SHA-256 over the sorted sample ids."""
VERDICT_KEYS = {
    "direct": [
        "0daa4aa5fb61447f2a54fab3",
        "c9d0f77ad0ec78fde7c6d449",
        "11c784bd0cbb06e03b705728",
        "e91de5d1e08071b43019a40f",
        "663ff7b42f415248",
    ],
    "evidence": [
        "6945911da72f9d4c0715f5b7",
        "7eba2808a2829d44d17b80fb",
        "4555894d2ae9893411a8fd7c",
        "a66e555305b27e25c7a9742f",
        "d6523d71d35dd8b2",
    ],
}
"""The first four keys of each prompt, and SHA-256 over all 28 in their order."""


@pytest.fixture(scope="module")
def judged(starter: Path) -> list[Sample]:
    """What the golden study judges."""
    return read_split(starter, Split.TEST, study("dataset.test.pairs_per_cell=2").dataset.test)


def test_the_dataset_has_its_name():
    """Built datasets would be built again, and no run on them found."""
    assert directory_of(study("dataset=starter")).path.name == DATASET


@pytest.mark.parametrize("split", list(Split))
def test_sample_ids(starter: Path, split: Split):
    """Verdicts, annotations and splits point at samples by id."""
    ids = sorted(sample.id for sample in read_split(starter, split))
    assert hashlib.sha256("\n".join(ids).encode()).hexdigest()[:16] == SAMPLE_IDS[split.value]


@pytest.mark.parametrize(("prompt", "max_new_tokens"), [("direct", 1), ("evidence", 8)])
def test_verdict_keys(judged: list[Sample], prompt: str, max_new_tokens: int):
    """Verdicts that were paid for would be asked for again."""
    assert planned_keys(judged, prompt, max_new_tokens) == VERDICT_KEYS[prompt]


def planned_keys(samples: list[Sample], prompt: str, max_new_tokens: int) -> list[str]:
    """The first four keys of all samples, and the hash over all."""
    from transformers import AutoTokenizer

    asked = study(f"prompt={prompt}", f"prompt.max_new_tokens={max_new_tokens}").prompt
    renderer = Renderer(asked, AutoTokenizer.from_pretrained(smollm2_folder()), "", None)
    decoding = Decoding(asked.max_new_tokens, (renderer.end_of_turn,), renderer.label_tokens.all)
    keys = [
        verdict_key(
            sample.id,
            renderer.render(sample, ()),
            weights=weights_identity(SMOLLM2),
            adapter="",
            decoding=decoding,
            dtype="float32",
            engine="transformers",
        )
        for sample in samples
    ]
    return [*keys[:4], hashlib.sha256(json.dumps(keys).encode()).hexdigest()[:16]]
