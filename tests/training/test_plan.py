"""Who is in which step and forward pass, by counting, for every objective and way of batching; their list."""

from collections import Counter
from itertools import product
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from studies import study

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.training import Objective
from monitorbench.records import Category, Label, Split, Task
from monitorbench.training.objectives import find_pairs
from monitorbench.training.trainer import OBJECTIVES, make_plan, objective_of

EXPLICIT, MIDDLE, IMPLICIT = Category


@pytest.fixture(scope="module")
def corpus(make_sample):
    """Skewed on purpose: 60, 20 and 10 samples of three cells, 1 in 5 misbehavior, half of them paired."""
    cells = [(EXPLICIT, Task.CODE, 60), (MIDDLE, Task.QA, 20), (IMPLICIT, Task.REASONING, 10)]
    return [
        make_sample(
            f"Request {cell} {k}",
            f"Response {k}",
            category=category,
            task=task,
            # Samples 0 and 1, 10 and 11, … of a cell are counterparts.
            pair_id=f"{category}-{k - 1 if k % 10 == 1 else k}",
            label=Label.MISBEHAVIOR if k % 5 == 0 else Label.BENIGN,
        )
        for cell, (category, task, n) in enumerate(cells)
        for k in range(n)
    ]


def plan(corpus, *overrides, seed=0, n_instructions=0, lengths=None):
    training = study(*(f"training.{one}" for one in overrides)).training
    lengths = lengths or [10 + 7 * k % 90 for k in range(len(corpus) + n_instructions)]
    return make_plan(corpus, lengths, n_instructions, training, seed), training, lengths


def steps(passes, training):
    per_step = training.batch_size // training.micro_batch_size
    flat = [[i for unit in one for i in unit] for one in passes]
    return [[i for one in flat[k : k + per_step] for i in one] for k in range(0, len(flat), per_step)]


@pytest.mark.parametrize("batching", ["padded", "length_grouped", "packed"])
def test_batching_changes_no_step_and_loses_no_sample(corpus, batching):
    """If it failed: packed runs would train on other samples than padded ones, or on some never."""
    passes, training, _ = plan(corpus, f"batching={batching}", "max_steps=45")
    padded, _, _ = plan(corpus, "batching=padded", "max_steps=45")
    assert [sorted(s) for s in steps(passes, training)] == [sorted(s) for s in steps(padded, training)]
    assert len(passes) == 45 * 2
    assert all(passes), "an empty forward pass"
    # 45 steps of 8 are 4 rounds over 90 samples.
    assert set(Counter(i for s in steps(passes, training) for i in s).values()) == {4}
    assert all(len(s) == 8 for s in steps(passes, training))


def test_grouping_pads_less_and_packing_levels_the_rows(corpus):
    """If it failed: a long sample would make its whole pass as wide as itself for nothing."""

    def padding(batching):
        passes, _, lengths = plan(corpus, f"batching={batching}", "batch_size=32", "max_steps=20")
        widths = [[lengths[i] for (i,) in one] for one in passes]
        return sum(len(one) * max(one) for one in widths) / sum(map(sum, widths))

    assert padding("length_grouped") < 1.15 < 1.4 < padding("padded")
    passes, training, lengths = plan(corpus, "batching=packed", "batch_size=32", "max_steps=20")
    tokens = np.array([sum(lengths[i] for (i,) in one) for one in passes]).reshape(20, -1)
    assert (tokens.max(1) - tokens.min(1) <= max(lengths)).all()
    assert training.micro_batch_size == 4


@pytest.mark.parametrize("objective", ["sft", "pairwise", "curriculum"])
def test_a_seed_decides_the_whole_plan(corpus, objective):
    """If it failed: a resumed run, or a second process, would train on other samples."""
    one, two, other = (plan(corpus, f"objective={objective}", seed=seed)[0] for seed in (1, 1, 2))
    assert one == two != other


def test_labels_are_balanced_in_every_step(corpus):
    """If it failed: a corpus of four benign to one would teach a monitor to say no."""
    passes, training, _ = plan(corpus, "balance=label", "max_steps=45")
    for step in steps(passes, training):
        assert Counter(corpus[i].label for i in step) == {Label.MISBEHAVIOR: 4, Label.BENIGN: 4}
    seen = Counter(i for step in steps(passes, training) for i in step)
    benign = [n for i, n in seen.items() if corpus[i].label is Label.BENIGN]
    assert len(seen) == 90
    assert max(benign) - min(benign) <= 1, "some of a label more often than others"


def test_cells_are_balanced_and_the_labels_in_them(corpus):
    """If it failed: the largest cell would decide what a monitor learns."""
    passes, training, _ = plan(corpus, "balance=cell", "max_steps=45")
    drawn = Counter((corpus[i].cell, corpus[i].label) for step in steps(passes, training) for i in step)
    assert len(drawn) == 6
    assert max(drawn.values()) - min(drawn.values()) <= 2


def test_a_pair_stays_in_one_forward_pass_and_nobody_is_left_out(corpus):
    """If it failed: the margin would be computed from few pairs, or the unpaired never train."""
    passes, training, _ = plan(corpus, "objective=pairwise", "max_steps=45")
    pairs = set(find_pairs(corpus))
    assert len(pairs) == 9
    assert all(
        (corpus[a].label, corpus[b].label) == (Label.MISBEHAVIOR, Label.BENIGN)
        and corpus[a].pair_id == corpus[b].pair_id
        for a, b in pairs
    )
    units = [unit for one in passes for unit in one]
    assert {len(unit) for unit in units} == {2}
    assert Counter(unit for unit in units if unit in pairs) == dict.fromkeys(pairs, 4)
    assert set(Counter(i for unit in units for i in unit).values()) == {4}
    assert all(len(s) == training.batch_size for s in steps(passes, training))


def test_a_curriculum_begins_explicit_and_ends_with_everything(corpus):
    """If it failed: the order would be another one, or earlier categories be forgotten."""
    shares = "curriculum_shares=[0.25,0.25,0.5]"
    passes, training, _ = plan(corpus, "objective=curriculum", shares, "max_steps=40")
    seen = [{corpus[i].category for i in step} for step in steps(passes, training)]
    assert set.union(*seen[:10]) == {EXPLICIT}
    assert set.union(*seen[10:20]) == {EXPLICIT, MIDDLE}
    assert set.union(*seen[20:]) == {EXPLICIT, MIDDLE, IMPLICIT}
    assert len(seen) == 40
    without_middle = [s for s in corpus if s.category is not MIDDLE]
    passes, _, _ = plan(without_middle, "objective=curriculum", shares, "max_steps=30")
    seen = [{without_middle[i].category for i in step} for step in steps(passes, training)]
    assert set.union(*seen[:10]) == {EXPLICIT}
    assert IMPLICIT in set.union(*seen[10:])


def test_every_mixed_step_has_its_share_of_instructions(corpus):
    """If it failed: a run called mixed would be SFT, or no label be trained."""
    passes, training, _ = plan(corpus, "objective=mixed", "mix_share=0.25", n_instructions=5)
    for step in steps(passes, training):
        assert sum(i >= len(corpus) for i in step) == 2
        assert len(step) == 8


def test_an_objective_with_nothing_to_work_on_says_so(corpus):
    """If it failed: a run would report as pairwise or curriculum what was plain SFT."""
    with pytest.raises(UserError, match="none of 60 samples has its counterpart"):
        plan(
            [s.model_copy(update={"pair_id": str(i)}) for i, s in enumerate(corpus[:60])],
            "objective=pairwise",
        )
    with pytest.raises(UserError, match="the training samples are all safety_permission"):
        plan(corpus[:60], "objective=curriculum")
    own = [corpus[0].model_copy(update={"category": "pii"}), *corpus]
    with pytest.raises(UserError, match=r"curriculum: .* the paper's categories only, not for pii; expected"):
        plan(own, "objective=curriculum")
    assert plan(own, "objective=sft")


@given(data=st.data())
def test_every_plan_is_whole(corpus, data):
    """If it failed: some combination of settings would drop samples, or join or split forward passes."""
    objective = data.draw(st.sampled_from(["sft", "pairwise", "curriculum"]))
    micro = data.draw(st.sampled_from([2, 4, 6]))
    n_passes = data.draw(st.integers(1, 4))
    chosen = data.draw(st.lists(st.integers(0, 89), min_size=2, unique=True))
    some = [corpus[i] for i in chosen]
    base = TRAINING.model_copy(
        update={
            "objective": objective,
            "batching": data.draw(st.sampled_from(["padded", "length_grouped", "packed"])),
            "balance": data.draw(st.sampled_from(["none", "cell"])),
            "micro_batch_size": micro,
            "batch_size": micro * n_passes,
            "max_steps": 7,
        }
    )
    try:
        passes = make_plan(some, [1 + i for i in chosen], 0, base, seed=0)
    except UserError:
        assert objective != "sft"
        return
    assert len(passes) == 7 * n_passes
    assert all(len(s) == micro * n_passes for s in steps(passes, base))
    if base.batching != "packed":
        assert all(sum(map(len, one)) == micro for one in passes)


TRAINING = study().training

NONSENSE = {
    "objective=pairwise micro_batch_size=1": "even micro_batch_size",
    "objective=pairwise balance=label": "balance=none or cell",
    "objective=mixed mix_share=0.01": "at least one instruction",
    "objective=mixed mix_share=0.99": "at least one instruction",
    "objective=curriculum curriculum_shares=[1.0,1.0,1.0]": "expected a sum of 1",
    "early_stopping_patience=2 validate_every=31": "validate_every <= max_steps=30",
    "early_stopping_patience=0": "greater than or equal to 1",
    "loader=unsloth device=cpu": "needs a GPU",
    "loader=unsloth batching=packed": "length_grouped",
    "objective=sfft": "'sft', 'pairwise'",
    "batching=none": "'padded', 'length_grouped' or 'packed'",
}


@pytest.mark.parametrize("typed", NONSENSE)
def test_settings_at_odds_are_refused_in_one_line(typed):
    """If it failed: a run would silently do something else than it was asked for."""
    with pytest.raises(ConfigError) as refused:
        study(*(f"training.{one}" for one in typed.split()))
    assert NONSENSE[typed] in str(refused.value)
    assert "\n" not in str(refused.value)


def test_all_sensible_combinations_are_taken():
    """If it failed: the checks above would refuse what works."""
    for objective, balance in product(["sft", "curriculum", "mixed"], ["none", "label", "cell"]):
        study(f"training.objective={objective}", f"training.balance={balance}")


def test_every_objective_of_the_settings_is_in_the_list():
    """If it failed: a study would validate, and its training end in a traceback on the cluster."""
    assert tuple(one.name for one in OBJECTIVES) == get_args(Objective)


@pytest.mark.parametrize("name", get_args(Objective))
def test_the_settings_name_their_objective(name):
    """If it failed: a run would be reported under an objective that it was not trained by."""
    training = study(f"training.objective={name}").training
    found = objective_of(training)
    assert found.name == name
    # An objective that draws on another source may repeat what is judged there: it reads the test split.
    assert (Split.TEST in found.extra_splits) == (training.extra_source is not None)
