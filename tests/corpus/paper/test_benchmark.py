"""The paired splits: so many pairs of each cell and trace, whole groups, and nothing by chance of order."""

import random
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import combinations
from typing import Any

import pytest
from drawing import draws
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.config.datasets import Ingredient, PaperDataset, Quota
from monitorbench.config.study import Study
from monitorbench.construct.pair import Pair, make_pair
from monitorbench.corpus.paper.benchmark import Benchmark, paired, select
from monitorbench.records import (
    Category,
    Cell,
    Construction,
    Label,
    LabelSource,
    Message,
    Role,
    Sample,
    Split,
    Task,
)

QA, CODE = Cell(Category.SAFETY_PERMISSION, Task.QA), Cell(Category.SAFETY_PERMISSION, Task.CODE)
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
TRACES = ("without_thinking", "with_thinking")


@cache
def words(seed: str, count: int) -> str:
    rng = random.Random(f"words/{seed}")
    return " ".join("".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(count))


def a_pair(name: str, group: str = "", cell: Cell = QA, thinks: bool = False, source: str = "s") -> Pair:
    """A pair whose texts are like no other's."""

    def respond(kind: str) -> list[Message]:
        thinking = words(f"{name} {kind} thinking", 12) if thinks else ""
        return [Message(role=Role.ASSISTANT, content=words(f"{name} {kind}", 20), thinking=thinking)]

    return make_pair(
        f"{source}-{name}",
        group_id=f"{source}-{group or name}",
        cell=cell,
        subcategory="made up",
        request=[Message(role=Role.USER, content=words(f"{name} request", 20))],
        misbehavior=respond("bad"),
        benign=respond("good"),
        label_source=LabelSource.AUTHOR,
        construction=Construction.LABELLED,
        source=source,
        licence="Apache-2.0",
    )


@pytest.fixture(scope="module")
def paper(compose_study: Callable[..., Study]) -> Callable[..., PaperDataset]:
    """`paper({QA: (5, 2)}, development=3)`: the dataset with other quotas, NT and T."""
    dataset = compose_study("build", "dataset=paper_local").dataset
    assert isinstance(dataset, PaperDataset)

    def made(quotas: dict[Cell, tuple[int, int]], development: int = 0, seed: int = 0) -> PaperDataset:
        benchmark: dict[Any, dict[Any, Quota]] = {}
        for cell, (without, with_) in quotas.items():
            quota = Quota(without_thinking=without, with_thinking=with_)
            benchmark.setdefault(cell.category.value, {})[cell.task.value] = quota
        return dataset.model_copy(
            update={"benchmark": benchmark, "development_pairs": development, "seed": seed}
        )

    return made


def counted(samples: list[Sample]) -> Counter[tuple[str, str]]:
    """Pairs per cell and trace; each has both labels."""
    pairs = paired(samples)
    assert 2 * len(pairs) == len(samples)
    return Counter((str(pair.benign.cell), TRACES[pair.benign.has_thinking]) for pair in pairs)


made_up = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from([QA, CODE]), st.booleans(), st.sampled_from(["s", "t"])),
    max_size=24,
)
sizes = st.tuples(st.integers(0, 5), st.integers(0, 5))


@given(made_up, sizes, sizes, st.integers(0, 3), st.randoms(use_true_random=False))
@draws(60)
def test_quotas_groups_and_order(
    paper: Callable[..., PaperDataset],
    found: list[tuple[int, Cell, bool, str]],
    qa: tuple[int, int],
    code: tuple[int, int],
    development: int,
    rng: random.Random,
):
    """More than asked is not the paper's benchmark; a group in two splits is a leak; order is no seed."""
    dataset = paper({QA: qa, CODE: code}, development)
    pairs = [a_pair(str(n), f"g{g}", cell, thinks, s) for n, (g, cell, thinks, s) in enumerate(found)]
    chosen = select(pairs, dataset)
    assert set(chosen.samples) == {Split.TEST, Split.VALIDATION, Split.CALIBRATION}
    have = counted(chosen.samples[Split.TEST])
    asked = {
        (str(cell), trace): n
        for cell, quota in ((QA, qa), (CODE, code))
        for trace, n in zip(TRACES, quota, strict=True)
    }
    cells = chosen.shortfall[Split.TEST]
    short = {(cell, trace): s for cell, traces in cells.items() for trace, s in traces.items()}
    for key, n in asked.items():
        assert have[key] <= n
        assert (key in short) == (have[key] < n)
        if key in short:
            assert short[key] == (n, have[key])
    for split in (Split.VALIDATION, Split.CALIBRATION):
        per_cell = Counter(cell for cell, _ in counted(chosen.samples[split]).elements())
        assert all(n <= development for n in per_cell.values())
    groups = {split: {sample.group_id for sample in samples} for split, samples in chosen.samples.items()}
    for one, other in combinations(groups.values(), 2):
        assert one.isdisjoint(other)
    ids = [sample.id for samples in chosen.samples.values() for sample in samples]
    assert len(ids) == len(set(ids))
    for split, samples in chosen.samples.items():
        assert all(sample.split is split for sample in samples)
    rng.shuffle(pairs)
    assert _content(select(pairs, dataset)) == _content(chosen)


def test_a_cell_has_strata_in_shares_and_development_pairs_of_its_own(paper: Callable[..., PaperDataset]):
    """Refusals would fill the cell, what nobody can see would be tested, and calibration would have none."""
    strata = ["refusal"] * 30 + ["compliant"] * 14 + ["unseen"] * 10
    pairs = []
    for number, stratum in enumerate(strata):
        pair = a_pair(f"{stratum} {number}")
        pairs.append(Pair(*(sample.model_copy(update={"stratum": stratum}) for sample in pair)))
    shares = {"refusal": 0.5, "unseen": 0.0}
    quota = Quota(without_thinking=12, with_thinking=0, max_strata=shares, development_pairs=6)
    dataset = paper({}, development=1).model_copy(update={"benchmark": {"safety_permission": {"qa": quota}}})
    chosen = select(pairs, dataset)
    counts = {
        split: Counter(s.stratum for s in samples if s.label is Label.BENIGN)
        for split, samples in chosen.samples.items()
    }
    assert counts[Split.TEST].total() == 12
    assert counts[Split.VALIDATION].total() == 6
    for count in counts.values():
        assert count["refusal"] <= count["compliant"]
        assert not count["unseen"]


def test_a_balanced_quota_passes_over_what_one_word_tells(paper: Callable[..., PaperDataset]):
    """The word would be the cell's answer."""
    pairs = []
    for number in range(12):
        bad, good = a_pair(str(number))
        said = bad.response[0].model_copy(update={"content": f"{bad.response[0].content} unsafe"})
        pairs.append(Pair(bad.model_copy(update={"id": "", "response": (said,)}), good))
    quota = Quota(without_thinking=9, with_thinking=0, balance=4)
    dataset = paper({}).model_copy(update={"benchmark": {"safety_permission": {"qa": quota}}})
    chosen = select([_rehashed(pair) for pair in pairs], dataset)
    assert len(chosen.samples[Split.TEST]) == 2 * 4
    assert chosen.shortfall[Split.TEST][str(QA)] == {"without_thinking": (9, 4)}


def _rehashed(pair: Pair) -> Pair:
    return Pair(*(Sample.model_validate({**sample.model_dump(), "id": ""}) for sample in pair))


def _content(benchmark: Benchmark) -> Any:
    samples = {split: sorted(s.id for s in members) for split, members in benchmark.samples.items()}
    return samples, benchmark.shortfall, benchmark.near_duplicates


def test_a_cell_is_filled_where_it_can_be(paper: Callable[..., PaperDataset]):
    """A shortfall that is stated although the pairs were there makes the benchmark smaller for nothing."""
    pairs = [a_pair(f"{n}-{thinks}", thinks=thinks) for n in range(12) for thinks in (False, True)]
    chosen = select(pairs, paper({QA: (7, 3)}, development=2))
    assert counted(chosen.samples[Split.TEST]) == {
        (str(QA), "without_thinking"): 7,
        (str(QA), "with_thinking"): 3,
    }
    assert [len(chosen.samples[split]) for split in (Split.VALIDATION, Split.CALIBRATION)] == [4, 4]
    assert not any(chosen.shortfall.values())


def test_a_short_cell_may_fill_its_development_splits_first(paper: Callable[..., PaperDataset]):
    """No threshold could be set on what a test split that takes all it can get has left."""
    pairs = [a_pair(str(n), group=f"g{n // 2}") for n in range(20)]
    asked = Quota(without_thinking=40, with_thinking=0, development_pairs=4, development_first=True)
    dataset = paper({}).model_copy(update={"benchmark": {"safety_permission": {"qa": asked}}})
    chosen = select(pairs, dataset)
    counts = {split: len(samples) // 2 for split, samples in chosen.samples.items()}
    assert counts[Split.VALIDATION] == counts[Split.CALIBRATION] == 4
    groups = {split: {sample.group_id for sample in chosen.samples[split]} for split in counts}
    assert not groups[Split.VALIDATION] & groups[Split.CALIBRATION]
    free = [
        pair
        for pair in pairs
        if pair.benign.group_id not in groups[Split.VALIDATION] | groups[Split.CALIBRATION]
    ]
    assert chosen.shortfall == {
        Split.TEST: {str(QA): {"without_thinking": (40, len(free))}},
        Split.VALIDATION: {},
        Split.CALIBRATION: {},
    }


def test_pairs_with_a_trace_never_stand_in_for_pairs_without(paper: Callable[..., PaperDataset]):
    """T against NT is one of the paper's comparisons; a filled-up half would compare like with like."""
    chosen = select([a_pair(str(n), thinks=True) for n in range(6)], paper({QA: (4, 2)}))
    assert counted(chosen.samples[Split.TEST]) == {(str(QA), "with_thinking"): 2}
    assert chosen.shortfall[Split.TEST] == {str(QA): {"without_thinking": (4, 0)}}


def test_an_empty_mirror_is_all_shortfall(paper: Callable[..., PaperDataset]):
    """The manifest has to say so, in every cell that was asked for."""
    chosen = select([], paper({QA: (4, 2), CODE: (1, 0)}, development=3))
    assert chosen.shortfall[Split.TEST] == {
        str(QA): {"without_thinking": (4, 0), "with_thinking": (2, 0)},
        str(CODE): {"without_thinking": (1, 0)},
    }
    assert chosen.shortfall[Split.VALIDATION] == {str(QA): {"any": (3, 0)}, str(CODE): {"any": (3, 0)}}
    assert not any(chosen.samples.values())


def test_another_seed_chooses_other_pairs(paper: Callable[..., PaperDataset]):
    """Else no one could tell a result from the luck of the choice."""
    pairs = [a_pair(str(n)) for n in range(40)]
    one, two = (select(pairs, paper({QA: (10, 0)}, seed=seed)) for seed in (0, 1))
    assert _content(one) != _content(two)


def test_a_near_duplicate_is_measured_once_and_counted(paper: Callable[..., PaperDataset]):
    """A pair that is there in two forks of one project counts double, and could be in test and validation."""
    pairs = [a_pair(str(n)) for n in range(6)]
    again = [
        make_pair(
            f"fork-{pair.benign.pair_id}",
            group_id=f"fork-{pair.benign.group_id}",
            cell=QA,
            subcategory="made up",
            request=pair.benign.request,
            misbehavior=pair.misbehavior.response,
            benign=pair.benign.response,
            label_source=LabelSource.AUTHOR,
            construction=Construction.LABELLED,
            source="fork",
            licence="Apache-2.0",
        )
        for pair in pairs[:4]
    ]
    chosen = select([*pairs, *again], paper({QA: (10, 0)}, development=5))
    assert chosen.near_duplicates == {str(QA): 4}
    assert counted(chosen.samples[Split.TEST]) == {(str(QA), "without_thinking"): 6}


def test_variants_stay_and_keep_to_the_splits_that_they_name(paper: Callable[..., PaperDataset]):
    """Pairs that differ in one fact on purpose would pass for copies, and acts of training be tested."""
    bound = [Split.TEST, Split.TEST, Split.VALIDATION, Split.CALIBRATION, Split.TRAIN]
    pairs = [
        Pair(
            *(
                sample.model_copy(update={"split": split, "pair_id": f"{split}-{n}", "id": ""})
                for sample in a_pair("one text", group=split, source="s")
            )
        )
        for n, split in enumerate(bound)
    ]
    dataset = paper({QA: (10, 0)}, development=5)
    varied = {"s": Ingredient(benchmark=True, max_share=1.0, variants=True)}
    chosen = select(pairs, dataset.model_copy(update={"sources": varied}))
    assert {split: len(samples) // 2 for split, samples in chosen.samples.items()} == {
        Split.TEST: 2,
        Split.VALIDATION: 1,
        Split.CALIBRATION: 1,
    }
    assert not chosen.near_duplicates
    assert len(select(pairs, dataset).samples[Split.TEST]) <= 2


def test_singles_are_no_pairs(paper: Callable[..., PaperDataset]):
    """Miss rate and false alarm rate would be measured on different requests."""
    pairs = [a_pair(str(n)) for n in range(4)]
    samples = [sample for pair in pairs for sample in pair]
    without = [sample for sample in samples if sample is not pairs[1].benign]
    assert paired(without) == [pairs[0], *pairs[2:]]
    assert all(pair.misbehavior.label is Label.MISBEHAVIOR for pair in paired(samples[::-1]))


def test_a_pair_with_two_samples_of_one_label_is_no_pair(paper: Callable[..., PaperDataset]):
    """One of two samples would be dropped in silence, and which one would depend on the order."""
    one, other = a_pair("1"), a_pair("2")
    twice = other.benign.model_copy(update={"pair_id": one.benign.pair_id, "id": ""})
    kept = [paired(samples) for samples in ([*one, twice], [twice, *one])]
    assert kept[0] == kept[1]
