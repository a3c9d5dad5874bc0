"""`dataset=paper_local` from end to end, on a small mirror: what is in it, and that brute force agrees.

Sets of 8-byte windows in plain Python are the oracle for disjointness.
"""

import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from small_mirror import CODE, GAMING, NO_SOURCE, QA, SYCOPHANCY, Mirrored, built

from monitorbench.config.base import UserError
from monitorbench.corpus.store import read_split
from monitorbench.records import Label, Message, Sample, Split

THRESHOLD = 0.8
SHORTEST_RESPONSE = 80


def held_out(directory: Path) -> list[Sample]:
    return [
        sample
        for split in (Split.TEST, Split.VALIDATION, Split.CALIBRATION)
        for sample in read_split(directory, split)
    ]


def plain(messages: tuple[Message, ...]) -> str:
    return "\n".join(part for message in messages for part in (message.thinking, message.content) if part)


@cache
def windows(text: str) -> frozenset[bytes]:
    data = " ".join(text.casefold().split()).encode().ljust(8)
    return frozenset(data[start : start + 8] for start in range(len(data) - 7))


def similar(one: frozenset[bytes], other: frozenset[bytes]) -> bool:
    return len(one & other) >= THRESHOLD * len(one | other)


def overlap_of(sample: Sample, held: list[Sample]) -> str:
    """Why a sample can't be in the training split; the first reason that holds, as the manifest counts."""
    if sample.group_id in {other.group_id for other in held}:
        return "group in the benchmark"
    if any(similar(windows(plain(sample.request)), windows(plain(other.request))) for other in held):
        return "request overlaps the benchmark"
    said = plain(sample.response)
    if len(said) >= SHORTEST_RESPONSE and any(
        similar(windows(said), windows(plain(other.response))) for other in held
    ):
        return "response overlaps the benchmark"
    return ""


# --- what is in it -------------------------------------------------------------------------------------


def test_the_benchmark_has_its_quotas_and_states_what_is_missing(small: Mirrored):
    """A count reached by other means than honest pairs is worth nothing; one missed in silence, less."""
    test = read_split(small.directory, Split.TEST)
    pairs = {(str(sample.cell), sample.pair_id, sample.has_thinking) for sample in test}
    have = Counter((cell, thinks) for cell, _, thinks in pairs)
    assert have == {
        (QA, False): 6,
        (CODE, False): 7,
        (SYCOPHANCY, False): 4,
        (SYCOPHANCY, True): 4,
        (GAMING, False): 3,
        (GAMING, True): 3,
    }
    assert Counter(sample.label for sample in test) == {label: len(pairs) for label in Label}
    assert small.results["shortfall"]["test"] == {
        QA: {"with_thinking": {"asked": 1, "have": 0, "missing": 1}},
        NO_SOURCE: {"without_thinking": {"asked": 3, "have": 0, "missing": 3}},
    }
    assert small.results["splits"]["test"]["pairs"][CODE] == 7


def test_the_corpus_keeps_quotas_and_shares_and_states_what_is_missing(small: Mirrored):
    """The manifest is what a paper cites; it has to be what is on the disk."""
    train = read_split(small.directory, Split.TRAIN)
    have = Counter(str(sample.cell) for sample in train)
    asked = {QA: 30, CODE: 1000, SYCOPHANCY: 10, GAMING: 1000, NO_SOURCE: 5}
    assert have[QA] == 30
    assert have[SYCOPHANCY] == 10
    assert 0 < have[CODE] < 1000
    assert small.results["shortfall"]["train"] == {
        cell: {"asked": n, "have": have[cell], "missing": n - have[cell]}
        for cell, n in asked.items()
        if have[cell] < n
    }
    stated = small.results["splits"]["train"]
    assert stated["samples"] == len(train)
    for cell, facts in stated["cells"].items():
        members = [sample for sample in train if str(sample.cell) == cell]
        assert facts["samples"] == len(members)
        assert facts["by_source"] == Counter(sample.source for sample in members)
        assert facts["by_label"] == {
            str(label): sum(s.label is label for s in members) for label in Label
        } or (not members)
    sources = Counter(sample.source for sample in train if str(sample.cell) == QA)
    assert sources["diasafety"] <= 0.9 * have[QA]
    assert sources["jailbreakbench"] <= 0.5 * have[QA]
    assert len({sample.id for sample in train}) == len(train)


def test_the_manifest_counts_each_cells_strata(small: Mirrored):
    """How many controls a cell has decides whether its echo tells the label; the card is read for that."""
    for split in (Split.TEST, Split.VALIDATION, Split.CALIBRATION):
        samples = read_split(small.directory, split)
        counted: dict[str, Counter[str]] = {}
        for sample in samples:
            if sample.label is Label.BENIGN:
                counted.setdefault(str(sample.cell), Counter())[sample.stratum] += 1
        assert small.results["splits"][split.value]["strata"] == counted
    train = Counter((str(s.cell), s.stratum) for s in read_split(small.directory, Split.TRAIN))
    stated = small.results["splits"]["train"]["cells"]
    assert {(c, name): n for c, facts in stated.items() for name, n in facts["by_stratum"].items()} == train
    assert small.results["headline"] == {QA: "compliant"}


def test_all_that_is_missing_is_named_before_anything_is_made(small: Mirrored, tmp_path: Path):
    """If it failed: nine minutes of work would end in a traceback, and at the first file of several."""
    digest = "0" * 64
    gone = {
        f"source__{name}__{key}": value
        for name in ("sven", "gsm8k")
        for key, value in (
            ("origin", "none"),
            ("files", f"[{{path: '', mirror: gone/{name}, sha256: {digest}}}]"),
        )
    }
    with pytest.raises(UserError, match=r"^gsm8k: no file .*Files of sven are missing too \(plan=true\)"):
        built(small.mirror, tmp_path / "data", **gone)
    assert not [*(tmp_path / "data").glob(".candidates/*")]


def test_a_bad_row_is_counted_in_the_manifest(small: Mirrored):
    """One row of the mirror has an unknown label: passed over, and said so."""
    assert small.results["constructed"]["diasafety"]["bad_rows"] == {"unknown label": 1}
    assert small.results["constructed"]["sven"]["bad_rows"] == {}


def test_nothing_of_the_benchmark_is_in_the_training_split(small: Mirrored):
    """A monitor that has seen the question, or the answer, is measured on its memory."""
    held, train = held_out(small.directory), read_split(small.directory, Split.TRAIN)
    assert len(held) >= 60
    assert [overlap_of(sample, held) for sample in train] == [""] * len(train)
    groups = [
        {s.group_id for s in read_split(small.directory, split)}
        for split in Split
        if split is not Split.TRAIN
    ]
    assert sum(map(len, groups)) == len(set().union(*groups))


def test_what_fell_is_what_brute_force_says(small: Mirrored):
    """A false removal makes the corpus silently smaller; the manifest's reasons have to add up."""
    held = held_out(small.directory)
    for cell, facts in small.results["splits"]["train"]["cells"].items():
        file = f"{cell.replace('/', '-')}.parquet"
        found = [
            Sample.model_validate(row)
            for part in sorted((small.data / ".candidates").glob(f"*/{file}"))
            for row in pq.read_table(part).to_pylist()
        ]
        reasons = Counter(overlap_of(sample, held) for sample in found)
        for reason in ("group in the benchmark", "request overlaps", "response overlaps"):
            expected = sum(n for why, n in reasons.items() if why.startswith(reason))
            assert sum(n for why, n in facts["rejected"].items() if why.startswith(reason)) == expected, cell
        assert facts["samples"] + sum(facts["rejected"].values()) == len(found)
    rejected = small.results["splits"]["train"]["cells"][QA]["rejected"]
    assert rejected["request overlaps the benchmark"] >= 1
    assert rejected["response overlaps the benchmark"] >= 1


def test_no_two_training_samples_of_a_label_are_near_duplicates(small: Mirrored):
    """The same text twice counts double in the loss, and in every share that the card states."""
    train = read_split(small.directory, Split.TRAIN)
    texts = [(windows(f"{plain(s.request)}\n{plain(s.response)}"), s) for s in train]
    for number, (one, sample) in enumerate(texts):
        for other, earlier in texts[:number]:
            same = sample.cell == earlier.cell and sample.label is earlier.label
            assert not (same and similar(one, other)), (sample.id, earlier.id)
    rejected = {cell: facts["rejected"] for cell, facts in small.results["splits"]["train"]["cells"].items()}
    assert rejected[QA]["near-duplicate within the corpus"] >= 2


def test_the_hubs_library_reads_all_of_it(small: Mirrored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Anyone without this package has the data by one call."""
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    from datasets import load_dataset

    files = {split.value: str(small.directory / split.value / "*.parquet") for split in Split}
    loaded = load_dataset("parquet", data_files=files, cache_dir=str(tmp_path / "cache"))
    for split in Split:
        samples = read_split(small.directory, split)
        assert [Sample.model_validate(row) for row in loaded[split.value]] == samples
        assert small.results["splits"][split.value]["samples"] == len(samples)


# --- what it costs to import ---------------------------------------------------------------------------


def test_building_imports_nothing_heavy():
    """A corpus is built on machines that have no torch, and `--help` must not take ten seconds."""
    heavy = ("torch", "transformers", "vllm", "trl", "datasets")
    code = (
        "import sys, monitorbench.corpus.build;"
        "import monitorbench.corpus.paper.units, monitorbench.corpus.paper.build;"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
