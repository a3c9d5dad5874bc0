"""The library's numbers are those of scikit-learn, scipy and statsmodels, whatever holds the columns."""

import math
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import binom, binomtest
from sklearn.metrics import roc_auc_score
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import proportion_confint

from monitorbench import auroc, calibrate, compare, decide, rates
from monitorbench.intervention.outcomes import read_outcomes

RNG = np.random.default_rng(3)
N = 240
LABELS = [int(one) for one in RNG.integers(0, 2, N)]
SCORES = [None if i % 40 == 0 else float(round(s, 2)) for i, s in enumerate(RNG.beta(2, 3, N))]
OTHER = [
    None if i % 50 == 0 else float(min(1, round(0.3 * y + 0.7 * s, 2)))
    for i, (y, s) in enumerate(zip(LABELS, RNG.beta(2, 3, N), strict=True))
]
FLAGGED = [None if s is None else s > 0.4 for s in SCORES]
OTHER_FLAGGED = [None if s is None else s > 0.4 for s in OTHER]
GROUPS = [f"question {i // 2}" for i in range(N)]

KINDS = {
    "list": list,
    "numpy": lambda values: np.array(values, dtype=object if None in values else None),
    "pandas": pd.Series,
    "polars": pl.Series,
    "pyarrow": pa.array,
    "chunked": lambda values: pa.chunked_array([pa.array(values)]),
}


def test_rates_are_wilsons_over_what_was_scored():
    found = rates(LABELS, FLAGGED)
    scored = [(y, f) for y, f in zip(LABELS, FLAGGED, strict=True) if f is not None]
    missed, bad = sum(y and not f for y, f in scored), sum(y for y, _ in scored)
    alarms, good = sum(f and not y for y, f in scored), sum(not y for y, _ in scored)
    assert found.n_unscored == N - len(scored) == FLAGGED.count(None)
    assert found.miss_rate.value == missed / bad
    assert found.false_alarm_rate.value == alarms / good
    for estimate, k, n in ((found.miss_rate, missed, bad), (found.false_alarm_rate, alarms, good)):
        assert estimate.interval == pytest.approx(proportion_confint(k, n, method="wilson"))
    narrow = rates(LABELS, FLAGGED, confidence=0.5).miss_rate.interval
    assert narrow == pytest.approx(binomtest(missed, bad).proportion_ci(0.5, method="wilson"))


def test_auroc_is_scikit_learns_and_samples_without_a_score_are_left_out():
    found = auroc(LABELS, SCORES, GROUPS)
    kept = [(y, s) for y, s in zip(LABELS, SCORES, strict=True) if s is not None]
    assert found.auroc.value == pytest.approx(roc_auc_score(*zip(*kept, strict=True)))
    assert found.n == len(kept)
    assert found.n_unscored == N - len(kept)
    assert found.auroc.interval.low < found.auroc.value < found.auroc.interval.high
    benign = {g for y, s, g in zip(LABELS, SCORES, GROUPS, strict=True) if not y and s is not None}
    assert (found.partial_auroc_5 is not None) == (len(benign) >= 59)


def test_partial_auroc_is_scikit_learns_and_needs_59_benign_questions():
    labels, scores = [i % 2 for i in range(200)], [((i * 37) % 101 + 40 * (i % 2)) / 150 for i in range(200)]
    found = auroc(labels, scores)
    assert found.partial_auroc_5.value == pytest.approx(roc_auc_score(labels, scores, max_fpr=0.05))
    assert "partial AUROC" in repr(found)
    assert auroc(labels[:100], scores[:100]).partial_auroc_5 is None


def test_a_threshold_keeps_what_the_binomial_says():
    found = calibrate(LABELS, SCORES, alpha=0.1, delta=0.05)
    benign = sorted(math.inf if s is None else s for s, y in zip(SCORES, LABELS, strict=True) if not y)
    n = len(benign)
    rank = next(k for k in range(1, n + 1) if binom.sf(k - 1, n, 0.9) <= 0.05)
    limit = benign[rank - 1]
    assert limit < found.threshold < limit + 1e-4, "in the gap above the score, as calibrate has it"
    assert found.attained == pytest.approx(binom.sf(rank - 1, n, 0.9))
    assert found.flag([0.0, None, 1.0, limit]) == [False, None, True, False]
    with pytest.raises(ValueError, match=r"scores\[1\]: 7 is outside"):
        found.flag([0.2, 7.0])  # else nearly all would be alarms, in silence


def test_too_few_questions_give_a_reason_and_no_threshold():
    found = calibrate([0] * 58, [0.1] * 58)
    assert found.threshold is None
    assert "59 needed" in found.reason
    with pytest.raises(ValueError, match="no threshold: 58 benign questions"):
        found.flag([0.5])
    assert calibrate([0] * 28, [0.1] * 28, method="conformal_risk").threshold == pytest.approx(0.1, abs=1e-4)


def test_labels_come_first_and_swapped_columns_are_refused():
    scores = [i / 80 for i in range(80)]
    with pytest.raises(ValueError, match="more than two values, as scores have; expected labels first"):
        calibrate(scores, [i % 2 for i in range(80)])
    with pytest.raises(ValueError, match="labels: numbers of more than two values"):
        auroc(scores, [i % 2 for i in range(80)])
    with pytest.raises(ValueError, match=r"labels\[1\]: 2 is no label"):  # an annotator's "unsure"
        auroc([0, 2, 1], [0.1, 0.2, 0.3])


def test_a_result_says_what_attained_is_and_that_nothing_is_flagged():
    scores = [i / 100 for i in range(60)] + [0.9] * 60
    shown = repr(calibrate([0] * 60 + [1] * 60, scores, alpha=0.1))
    assert "chance   0.014  (that FAR is above 0.1 all the same; asked for: at most 0.05)" in shown
    nothing = calibrate([0] * 60 + [1] * 60, [0.5] * 120)
    assert nothing.flags_nothing
    assert "none of the given scores is above it" in repr(nothing)
    never = calibrate([0] * 20 + [1] * 20, [1.0] * 10 + [0.0] * 10 + [1.0] * 20)
    assert "more questions do not change that" in never.reason


def test_inverted_scores_are_told():
    """If it failed: "Flag above" of a monitor that flags the benign samples."""
    falling = calibrate(
        [0] * 60 + [1] * 60, [0.5 + i / 200 for i in range(60)] + [i / 200 for i in range(60)]
    )
    assert falling.warning.startswith("The scores of this monitor are inverted: benign samples score higher")
    assert "warning" in repr(falling)
    assert not calibrate([0] * 60 + [1] * 60, [i / 120 for i in range(120)]).warning


def test_a_threshold_for_one_of_ten_keeps_a_tenth_of_delta():
    one, ten = (calibrate([0] * 400, [i / 400 for i in range(400)], n_candidates=k) for k in (1, 10))
    assert one.threshold < ten.threshold
    assert ten.attained <= 0.005 < one.attained
    assert "allowing for the choice among 10 monitors" in ten.promise
    risk = calibrate([0] * 400, [i / 400 for i in range(400)], method="conformal_risk", n_candidates=10)
    assert risk.attained <= 0.01


def test_columns_of_pandas_belong_together_by_their_index():
    order = RNG.permutation(N)
    labels, scores, groups = pd.Series(LABELS), pd.Series(SCORES), pd.Series(GROUPS)
    other = pd.Series(OTHER)
    assert calibrate(labels.iloc[order], scores, groups) == calibrate(LABELS, SCORES, GROUPS)
    assert auroc(labels, scores.iloc[order], groups).auroc == auroc(LABELS, SCORES, GROUPS).auroc
    assert rates(labels, pd.Series(FLAGGED).iloc[order], groups) == rates(LABELS, FLAGGED, GROUPS)
    assert compare(labels, scores, other.iloc[order], groups) == compare(LABELS, SCORES, OTHER, GROUPS)
    with pytest.raises(ValueError, match="scores: other rows than labels by their index"):
        auroc(labels, scores.set_axis(range(1, N + 1)))
    # Otherwise: a monitor beside its own copy, sorted, has an AUROC of .51 and differs with p < .001.
    with pytest.raises(ValueError, match="b: rows in another order by their index, and labels have no index"):
        compare(LABELS, scores, scores.sort_values())
    with pytest.raises(ValueError, match="labels: set; expected a list"):
        auroc({0, 1}, [0.1, 0.2])


def test_rates_of_two_monitors_are_compared_by_mcnemar():
    found = compare(LABELS, FLAGGED, OTHER_FLAGGED)
    for one, label in ((found.miss_rate, 1), (found.false_alarm_rate, 0)):
        table = np.zeros((2, 2), dtype=int)
        for y, a, b in zip(LABELS, FLAGGED, OTHER_FLAGGED, strict=True):
            if y == label and a is not None and b is not None:
                table[int(a != y), int(b != y)] += 1
        assert one.p == pytest.approx(mcnemar(table, exact=True).pvalue)
        assert one.n == table.sum()
        assert one.a == table[1].sum() / one.n
        assert one.b == table[:, 1].sum() / one.n
        assert one.difference.value == pytest.approx(one.b - one.a)
    assert found.auroc is None


def test_scores_are_compared_over_what_both_scored():
    found = compare(LABELS, SCORES, OTHER, GROUPS).auroc
    both = [
        (y, a, b) for y, a, b in zip(LABELS, SCORES, OTHER, strict=True) if a is not None and b is not None
    ]
    y, a, b = zip(*both, strict=True)
    assert found.difference.value == pytest.approx(roc_auc_score(y, b) - roc_auc_score(y, a))
    assert found.n == len(both)
    assert found.n_left_out == N - len(both)
    assert found.p < 0.001
    assert found.difference.interval.low > 0


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_column_gives_the_same(kind):
    of = KINDS[kind]
    labels, scores, flagged, groups = of(LABELS), of(SCORES), of(FLAGGED), of(GROUPS)
    assert rates(labels, flagged) == rates(LABELS, FLAGGED)
    assert auroc(labels, scores, groups) == auroc(LABELS, SCORES, GROUPS)
    assert calibrate(labels, scores, groups) == calibrate(LABELS, SCORES, GROUPS)
    assert compare(labels, scores, of(OTHER), groups) == compare(LABELS, SCORES, OTHER, GROUPS)
    assert compare(labels, flagged, of(OTHER_FLAGGED)) == compare(LABELS, FLAGGED, OTHER_FLAGGED)


@pytest.mark.parametrize(
    "labels", [[bool(y) for y in LABELS], [float(y) for y in LABELS], np.array(LABELS, dtype=np.int8)]
)
def test_labels_are_words_or_numbers(labels):
    words = ["misbehavior" if y else "benign" for y in LABELS]
    assert rates(labels, FLAGGED) == rates(words, FLAGGED)
    assert rates(words, [None if f is None else int(f) for f in FLAGGED]) == rates(words, FLAGGED)


def test_a_blank_around_a_groups_name_is_none_of_it():
    labels, scores = [1, 1, 0, 0, 1, 0], [0.9, 0.4, 0.3, 0.2, 0.7, 0.6]
    plain = auroc(labels, scores, ["a", "b", "a", "b", "c", "c"])
    assert auroc(labels, scores, ["a", "b", "a ", " b", "c", "c\n"]) == plain
    assert plain.n_groups == 3


def test_the_order_of_samples_does_not_matter():
    order = RNG.permutation(N)
    shuffled = [[column[i] for i in order] for column in (LABELS, SCORES, GROUPS)]
    assert auroc(*shuffled).auroc == auroc(LABELS, SCORES, GROUPS).auroc


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rates([1, 0], [True]), "flagged: 1 entries, but 2 labels"),
        (lambda: rates([], []), "labels: empty"),
        (lambda: rates([1, "bad"], [True, True]), r"labels\[1\]: 'bad' is no label; expected misbehavior"),
        (lambda: rates([1, None], [True, True]), r"labels\[1\]: None is no label"),
        (
            lambda: rates([1, 0], [True, math.nan]),
            r"flagged\[1\]: nan is no label.*without an answer is None",
        ),
        (lambda: rates([1, 0], [True, 0.7]), r"flagged\[1\]: 0.7 is no label"),
        (lambda: rates("misbehavior", [True]), "labels: str; expected a list"),
        (lambda: rates(pd.DataFrame({"a": [1]}), [True]), "labels: a whole data frame; expected one column"),
        (lambda: rates(np.ones((2, 2)), [True]), "labels: an array of 2 dimensions"),
        (lambda: auroc([1, 0], [0.1, math.nan]), r"scores\[1\]: nan is no score"),
        (lambda: auroc([1, 0], [0.1, math.inf]), r"scores\[1\]: inf is no score"),
        (lambda: auroc([1, 0], [0.1, "x"]), r"scores\[1\]: 'x' is no number"),
        (lambda: auroc([1, 1], [0.1, 0.2]), "with a score are misbehavior only"),
        (lambda: auroc([1, 0], [0.1, None]), "with a score are misbehavior only"),
        (lambda: auroc([1, 0], [0.1, 0.2], ["a", None]), "groups: an entry is missing"),
        (lambda: calibrate([1], [0.1]), "misbehavior only; a threshold is set on benign"),
        (lambda: calibrate([0], [1.1]), r"scores\[0\]: 1\.1 is outside \[0, 1\]"),
        (lambda: calibrate([0], [0.1], alpha=2), "alpha=2: expected a number in"),
        (lambda: calibrate([0], [0.1], delta=0), "delta=0: expected a number in"),
        (lambda: calibrate([0], [0.1], method="guess"), "method='guess': expected neyman_pearson or"),
        (lambda: compare([1, 0], [0.1, 0.2], [True, False]), "b: answers, but a: scores"),
        (lambda: decide({"A": 1}), "expected the counts A, B, C, D"),
        (lambda: decide({"A": 1, "B": -1, "C": 0, "D": 0}), "B=-1; expected a whole number"),
        (lambda: decide([{"task": "a"}]), r"outcomes\[0\]: missing field 'seed'"),
        (lambda: decide({"A": 9, "B": 1, "C": 5, "D": 9}, margin=-1), "margin: Input should be greater"),
        (lambda: decide("nowhere.jsonl"), "nowhere.jsonl: no such file"),
        (lambda: decide(7), "outcomes: int; expected a file"),
    ],
)
def test_bad_input_is_one_line(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_decision_from_a_file_rows_a_frame_or_counts(examples):
    file = examples / "outcomes.jsonl"
    found = decide(file)
    assert found.decision == "intervene"
    assert found.counts == {"A": 13, "B": 1, "C": 10, "D": 140}
    assert found.delta_success.value == pytest.approx(9 / 164)
    rows = [one._asdict() for one in read_outcomes(file)]
    for same in (
        rows,
        pd.DataFrame(rows),
        pl.DataFrame(rows),
        pa.Table.from_pylist(rows),
        read_outcomes(file),
    ):
        assert decide(same) == found
    counted = decide(found.counts)
    assert (counted.p.value, counted.r.value, counted.d.value) == (23 / 164, 10 / 23, 1 / 141)
    assert counted.decision == found.decision


def test_results_show_themselves_and_escape_what_comes_from_data():
    hostile = "<script>alert(1)</script>"
    rows = [
        {"task": f"t{i}", "seed": 0, "agent": hostile, "condition": condition, "success": i % 2 == 0}
        | {"interventions": 0, "steps": 1, "tokens": 0}
        for i in range(8)
        for condition in ("none", "append")
    ]
    html = decide(rows)._repr_html_()
    assert hostile not in html
    assert "&lt;script&gt;" in html
    shown = repr(rates(LABELS, FLAGGED))
    assert "miss rate" in shown
    assert "unscored" in shown


def test_importing_the_package_imports_nothing_heavy():
    code = (
        "import sys, monitorbench; assert 'rates' in dir(monitorbench); "
        "print([m for m in ('numpy', 'pyarrow', 'torch', 'sklearn', 'scipy', 'pydantic', 'narwhals') "
        "if m in sys.modules]); "
        "from monitorbench import rates, auroc, calibrate, compare, decide, read_runs; "
        "print([m for m in ('torch', 'sklearn', 'transformers', 'matplotlib', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "[]"]
