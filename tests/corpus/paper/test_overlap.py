"""Near-duplicates against brute force: sets of 8-byte windows in plain Python, every pair compared."""

import random
from typing import NamedTuple

import numpy as np
import pytest
from datasketch import MinHash
from drawing import draws
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.config.sources import NearDuplicates
from monitorbench.corpus.paper import overlap
from monitorbench.corpus.paper.overlap import Index, first_of_each, in_company, jaccard, shingles, signatures

SETTINGS = NearDuplicates(threshold=0.8, permutations=128, seed=1)
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]


def windows(text: str) -> frozenset[bytes]:
    """The shingles by definition; a short text is filled up with blanks."""
    data = " ".join(text.casefold().split()).encode("utf-8", "replace").ljust(8)
    return frozenset(data[start : start + 8] for start in range(len(data) - 7))


def similarity(one: str, other: str) -> float:
    a, b = windows(one), windows(other)
    return len(a & b) / len(a | b)


def words(rng: random.Random, count: int) -> list[str]:
    return ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(count)]


def paraphrased(rng: random.Random, text: list[str], changes: int) -> str:
    """A copy with some words put in, left out, replaced or swapped, and other white space and case."""
    copy = list(text)
    for _ in range(changes):
        at = rng.randrange(len(copy) - 1)
        match rng.randrange(4):
            case 0:
                copy.insert(at, *words(rng, 1))
            case 1:
                del copy[at]
            case 2:
                copy[at] = words(rng, 1)[0]
            case _:
                copy[at], copy[at + 1] = copy[at + 1], copy[at]
    joined = rng.choice([" ", "\n", "  "]).join(copy)
    return rng.choice([str, str.upper, str.title])(joined)


class Planted(NamedTuple):
    original: str
    copy: str
    similarity: float


@pytest.fixture(scope="module")
def planted() -> list[Planted]:
    """1,200 originals with a copy each, of all similarities from about .4 to 1."""
    rng = random.Random(20)
    made = []
    for _ in range(1200):
        original = words(rng, rng.randint(25, 90))
        copy = paraphrased(rng, original, rng.randint(0, max(2, len(original) // 7)))
        made.append(Planted(" ".join(original), copy, similarity(" ".join(original), copy)))
    return made


def test_planted_copies_are_found_and_nothing_else_is_removed(planted: list[Planted]):
    """A missed copy makes the test a test of memory; a false removal makes the corpus silently smaller."""
    alike = [plant.similarity >= SETTINGS.threshold for plant in planted]
    close = [SETTINGS.threshold <= plant.similarity < SETTINGS.threshold + 0.05 for plant in planted]
    assert sum(close) > 100
    assert len(alike) - sum(alike) > 200
    found = Index([plant.original for plant in planted], SETTINGS).overlaps([plant.copy for plant in planted])
    assert not (found & ~np.array(alike)).any(), "a text was removed that is below the threshold"
    assert found[np.array(alike)].mean() >= 0.995
    assert found[np.array(close)].mean() >= 0.98, "just above the threshold"
    texts = [text for plant in planted for text in (plant.original, plant.copy)]
    kept = first_of_each(texts, signatures(texts, SETTINGS), SETTINGS)
    assert kept[::2].all(), "an original was removed"
    assert (~kept[1::2] & ~np.array(alike)).sum() == 0
    assert (~kept[1::2])[np.array(alike)].mean() >= 0.995


def test_the_signature_estimates_the_similarity_as_datasketch_does(planted: list[Planted]):
    """Candidates are dropped by this estimate before anything exact is computed."""
    some = planted[:150]
    ours = signatures([plant.original for plant in some], SETTINGS).minhashes
    theirs = signatures([plant.copy for plant in some], SETTINGS).minhashes
    exact = np.array([plant.similarity for plant in some])
    estimate = (ours == theirs).mean(axis=1)
    reference = []
    for plant in some:
        hashes = [MinHash(num_perm=128, seed=1) for _ in range(2)]
        for hash_, text in zip(hashes, (plant.original, plant.copy), strict=True):
            hash_.update_batch(list(windows(text)))
        reference.append(hashes[0].jaccard(hashes[1]))
    error = np.sqrt(exact * (1 - exact) / SETTINGS.permutations)
    for found in (estimate, np.array(reference)):
        assert (np.abs(found - exact) <= 5 * error + 1e-9).all()
        assert abs((found - exact).mean()) <= 4 * error.mean() / np.sqrt(len(some))


def test_the_bands_miss_one_in_a_thousand_at_the_threshold():
    """More rows to a band would be faster and let copies through."""
    for threshold in (0.5, 0.7, 0.8, 0.9, 0.95):
        for permutations in (64, 128, 256):
            asked = NearDuplicates(threshold=threshold, permutations=permutations, seed=0)
            rows = overlap.rows_per_band(asked)
            bands = signatures(["text"], asked).keys.shape[1]
            assert bands * rows <= permutations
            assert (1 - threshold**rows) ** bands <= 1e-3


def test_settings_that_can_not_keep_the_promise_are_refused():
    """With few permutations a low threshold is one in name only: copies pass and the manifest says none."""
    try:
        asked = NearDuplicates(threshold=0.2, permutations=16, seed=0)
        rows = overlap.rows_per_band(asked)
    except ValueError:
        return
    assert (1 - 0.2**rows) ** (16 // rows) <= 1e-3


awkward = st.text(max_size=30) | st.sampled_from(
    [
        "",
        " ",
        "a",
        "A",
        "a b",
        "(B)",
        "1234567",
        "12345678",
        "123456789",
        "Straße",
        "STRASSE",
        "日本語のテキスト",
        "\0" * 9,
    ]
)
texts = st.lists(awkward | awkward.map(lambda text: f"{text} {text}"), max_size=14)


@given(awkward, awkward)
def test_similarity_is_the_definitions(one: str, other: str):
    """Everything else rests on this number."""
    assert len(shingles(one)) == len(windows(one)) >= 1
    assert jaccard(shingles(one), shingles(other)) == similarity(one, other)


@given(texts, st.sampled_from([0.5, 0.8, 1.0]))
def test_only_near_duplicates_of_a_kept_text_are_removed(found: list[str], threshold: float):
    """A chain of similar texts would eat itself up, or equal texts stay."""
    asked = NearDuplicates(threshold=threshold, permutations=128, seed=1)
    kept = first_of_each(found, signatures(found, asked), asked)
    assert kept.shape == (len(found),)
    for row, text in enumerate(found):
        before = [other for other, keep in zip(found[:row], kept[:row], strict=True) if keep]
        if not kept[row]:
            assert any(similarity(text, other) >= threshold for other in before)
        else:
            assert all(windows(text) != windows(other) for other in before)


@given(texts, texts)
def test_the_index_agrees_with_brute_force(held: list[str], asked: list[str]):
    """A request of the benchmark in the training split, or a harmless one thrown out."""
    found = Index(held, SETTINGS).overlaps(asked)
    assert found.shape == (len(asked),)
    for text, is_found in zip(asked, found, strict=True):
        best = max((similarity(text, other) for other in held), default=0.0)
        assert not is_found or best >= SETTINGS.threshold
        assert is_found or best < 1, "an equal text was missed"


@given(texts)
@draws(40)
def test_a_text_alone_in_its_bands_has_no_twin(found: list[str]):
    """The training split never looks at the texts that this says are alone."""
    alone = ~in_company(signatures(found, SETTINGS).keys).any(axis=1)
    for row in np.flatnonzero(alone):
        others = found[:row] + found[row + 1 :]
        assert all(windows(found[row]) != windows(other) for other in others)


@pytest.mark.parametrize("batch", [1, 3, 7])
def test_the_batch_size_decides_nothing(planted: list[Planted], monkeypatch: pytest.MonkeyPatch, batch: int):
    """The same corpus on a machine with less memory would be another one."""
    found = [plant.copy for plant in planted[:20]] + ["", "a", "日本語", "", "x" * 9]
    whole = signatures(found, SETTINGS)
    monkeypatch.setattr(overlap, "_BATCH", batch)
    pieces = signatures(found, SETTINGS)
    assert np.array_equal(whole.minhashes, pieces.minhashes)
    assert np.array_equal(whole.keys, pieces.keys)


def test_signatures_are_the_same_on_every_machine():
    """Rebuilt elsewhere, the corpus would not be the same bytes: pinned from a run of this version."""
    signed = signatures(["The quick brown fox", ""], SETTINGS)
    assert signed.minhashes[:, :2].tolist() == PINNED


PINNED = [[1492597657, 3231242893], [3545794593, 3510014695]]


def test_another_seed_signs_otherwise():
    """A seed that does nothing could not show whether a result hangs on it."""
    other = SETTINGS.model_copy(update={"seed": 2})
    assert not np.array_equal(
        signatures(["a text"], SETTINGS).minhashes, signatures(["a text"], other).minhashes
    )
