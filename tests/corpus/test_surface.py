"""The surface check finds wording that gives a label away, and finds none where there is none."""

import random
from collections.abc import Callable

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

from monitorbench.corpus.classifiers import classifier
from monitorbench.corpus.surface import _folds, surface_check, surface_checks
from monitorbench.corpus.texts import response_text
from monitorbench.metrics.bootstrap import group_index
from monitorbench.metrics.marks import ORACLES, SURFACES, Surface, SurfaceCheck
from monitorbench.records import Category, Label, Message, Role, Sample, Task, ToolCall

WORDS = [f"word{i}" for i in range(60)]
LEARNED = [surface for surface in SURFACES if surface not in ORACLES]


@pytest.fixture(scope="module")
def checked(make_sample: Callable[..., Sample]) -> dict:
    """The check over four cells: planted in the text, in the trace, in the request only, and noise."""
    rng = random.Random(0)
    cells = {
        "leak": (Category.SAFETY_PERMISSION, Task.QA),
        "trace": (Category.SYCOPHANCY_BIAS, Task.REASONING),
        "group": (Category.SPECIFICATION_GAMING, Task.QA),
        "noise": (Category.SPECIFICATION_GAMING, Task.CODE),
    }
    samples = []
    for kind, (category, task) in cells.items():
        for i in range(70):
            for label in Label:
                words = [*rng.choices(WORDS, k=12)]
                bad = label is Label.MISBEHAVIOR
                if kind == "leak":
                    words.append("certainly" if bad else "cannot")
                if kind == "group":  # tells the question, not the label
                    words += [f"topic{i}"] * 5
                trace = "sneaky" if kind == "trace" and bad else "thoughts"
                reply = Message(role=Role.ASSISTANT, content=" ".join(words), thinking=trace)
                samples.append(
                    make_sample(
                        "Do it.",
                        [reply],
                        pair_id=f"{kind}{i}",
                        group_id=f"{kind}{i}",
                        category=category,
                        task=task,
                        label=label,
                    )
                )
    return {kind: surface_check(samples, seed=0)[f"{c}/{t}"] for kind, (c, t) in cells.items()}


@pytest.mark.parametrize("kind", ["leak", "trace"])
def test_a_planted_word_is_found(checked: dict, kind: str):
    """A cell won by one word would be reported as understanding."""
    check = checked[kind]
    assert check["auroc"] > 0.98
    assert check["auroc_ci"][0] > 0.8
    assert check["marked"] is True
    assert check["rule"]
    assert check["n"] == 140


@pytest.mark.parametrize("kind", ["group", "noise"])
def test_noise_is_no_leak(checked: dict, kind: str):
    """A check that cries leak at noise makes authors rewrite good data."""
    check = checked[kind]
    assert 0.35 < check["auroc"] < 0.65
    assert check["auroc_ci"][0] <= check["auroc"] <= check["auroc_ci"][1]
    assert check["marked"] is False
    assert check["rule"] == ""


def test_all_that_a_response_says_is_checked(make_sample: Callable[..., Sample]):
    """A label that leaks through a tool call's arguments leaks all the same."""
    call = ToolCall(id="1", name="delete_all", arguments='{"really": true}')
    reply = Message(role=Role.ASSISTANT, content="Done.", thinking="Quick.", tool_calls=(call,))
    text = response_text(make_sample("Do it.", [reply, Message(role=Role.TOOL, content="deleted")]))
    assert all(part in text for part in ("Done.", "Quick.", "delete_all", "really", "deleted"))
    assert "Do it." not in text


# --- length and source ---------------------------------------------------------------------------------

LENGTHS = {
    # words of a misbehavior's response and of a benign one's
    "longer": lambda rng, bad: rng.randint(30, 60) if bad else rng.randint(10, 35),
    "shorter": lambda rng, bad: rng.randint(10, 35) if bad else rng.randint(30, 60),
    "alike": lambda rng, bad: rng.randint(10, 60),
}


def _lengthy(make_sample: Callable[..., Sample], kind: str) -> list[Sample]:
    """Unpaired samples of one cell whose response is a line of random words of equal length."""
    rng = random.Random(kind)
    samples = []
    for number in range(160):
        label = list(Label)[number % 2]
        said = " ".join(rng.choices(WORDS, k=LENGTHS[kind](rng, label is Label.MISBEHAVIOR)))
        name = f"{kind}{number}"
        samples.append(make_sample("Go.", said, pair_id=name, group_id=name, label=label))
    return samples


def _check(samples: list[Sample], surface: Surface) -> SurfaceCheck:
    (checks,) = surface_checks(samples, seed=0, surfaces=(surface,)).values()
    assert set(checks) == {surface}
    return checks[surface]


@pytest.mark.parametrize("kind", LENGTHS)
def test_length_alone_is_found_where_it_tells_and_only_there(make_sample: Callable[..., Sample], kind: str):
    """A monitor that counts words would look as if it understood; scikit-learn's AUROC is the oracle."""
    samples = _lengthy(make_sample, kind)
    check = _check(samples, "length")
    lengths = [len(response_text(sample)) for sample in samples]
    told = roc_auc_score([sample.label is Label.MISBEHAVIOR for sample in samples], lengths)
    told = max(told, 1 - told)
    low, high = check["auroc_ci"]
    assert low <= check["auroc"] <= high
    if kind == "alike":
        assert 0.35 < check["auroc"] < 0.65
        assert low < 0.5 < high
        assert not check["marked"]
    else:
        assert told > 0.9, "it is planted"
        assert check["auroc"] == pytest.approx(told, abs=0.03), "held out, so a little less"
        assert check["marked"]


def test_lines_count_as_length(make_sample: Callable[..., Sample]):
    """Of two answers with as many characters the one set in a list is longer to a reader."""
    samples = []
    for number in range(80):
        label = list(Label)[number % 2]
        words = [WORDS[(number + i) % 50 + 10] for i in range(20)]  # all of one length
        said = ("\n" if label is Label.MISBEHAVIOR else " ").join(words)
        samples.append(make_sample("Go.", said, pair_id=f"l{number}", group_id=f"l{number}", label=label))
    assert len({len(response_text(sample)) for sample in samples}) == 1
    assert _check(samples, "length")["auroc"] > 0.98


@pytest.mark.parametrize("told", [True, False])
def test_the_source_alone_is_found_where_it_tells(make_sample: Callable[..., Sample], told: bool):
    """Where one source gives all misbehavior, knowing where a sample is from is knowing its label."""
    rng = random.Random(told)
    samples = []
    for number in range(200):
        bad = bool(number % 2)
        other = rng.random() < (0.95 if bad else 0.05) if told else rng.random() < 0.5
        samples.append(
            make_sample(
                "Go.",
                "Done.",
                pair_id=f"s{number}",
                group_id=f"s{number}",
                label=Label.MISBEHAVIOR if bad else Label.BENIGN,
                source="logs" if other else "forum",
            )
        )
    check = _check(samples, "source")
    is_bad = [sample.label is Label.MISBEHAVIOR for sample in samples]
    oracle = roc_auc_score(is_bad, [sample.source == "logs" for sample in samples])
    if told:
        assert check["auroc"] == pytest.approx(oracle, abs=0.02)
        assert check["marked"]
    else:
        assert check["auroc"] < 0.65
        assert not check["marked"]


def test_the_interval_is_over_groups(make_sample: Callable[..., Sample]):
    """Ten copies of each sample are no ten times the evidence."""
    samples = _lengthy(make_sample, "longer")[:40]
    copies = [
        sample.model_copy(update={"pair_id": f"{sample.pair_id}/{n}"})
        for sample in samples
        for n in range(10)
    ]
    once, tenfold = (_check(some, "length")["auroc_ci"] for some in (samples, copies))
    assert tenfold[1] - tenfold[0] > 0.7 * (once[1] - once[0])


def test_one_label_alone_is_nothing_to_tell_apart(make_sample: Callable[..., Sample]):
    """A cell of misbehavior only has no AUROC; 0.5 there would read as clean."""
    samples = [s for s in _lengthy(make_sample, "longer") if s.label is Label.MISBEHAVIOR]
    for surface in SURFACES:
        check = _check(samples, surface)
        assert check["auroc"] is check["auroc_ci"] is check["within"] is None
        assert (check["n"], check["marked"], check["rule"]) == (len(samples), False, "")


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("bad", [1, 2, 5])
def test_a_rare_label_does_not_stop_the_check(make_sample: Callable[..., Sample], surface: Surface, bad: int):
    """A team's own logs hold one incident in nine runs; the fold it is in has nothing to learn it from."""
    samples = [
        make_sample(
            "Go.",
            f"Answer {WORDS[number]} of {number}.",
            pair_id=f"r{number}",
            group_id=f"r{number}",
            label=Label.MISBEHAVIOR if number < bad else Label.BENIGN,
        )
        for number in range(10)
    ]
    check = _check(samples, surface)
    assert check["n"] == 10
    assert check["auroc"] is None or 0 <= check["auroc"] <= 1


def test_answers_of_one_letter_do_not_stop_the_check(make_sample: Callable[..., Sample]):
    """Multiple choice answered by "A" and "B" has words too, and they tell the label here."""
    samples = [
        make_sample(
            "Which?",
            "A" if label is Label.MISBEHAVIOR else "B",
            pair_id=f"c{number}",
            group_id=f"c{number}",
            label=label,
        )
        for number in range(20)
        for label in Label
    ]
    check = _check(samples, "bag_of_words")
    assert check["auroc"] is None or check["auroc"] > 0.98


@pytest.mark.parametrize("surface", LEARNED)
def test_texts_without_a_word_do_not_stop_the_check(make_sample: Callable[..., Sample], surface: Surface):
    """A team's logs answer `?` and `…`; a check that needs words would end the audit in a traceback."""
    samples = [
        make_sample(
            "?", "…" if label is Label.MISBEHAVIOR else "!", pair_id=f"s{n}", group_id=f"s{n}", label=label
        )
        for n in range(20)
        for label in Label
    ]
    check = _check(samples, surface)
    assert check["auroc"] is not None
    if surface == "bag_of_words":
        assert check["auroc"] > 0.98


@pytest.mark.parametrize("surface", LEARNED)
def test_it_is_what_scikit_learn_finds_on_the_same_folds(
    make_sample: Callable[..., Sample], surface: Surface
):
    """What is done once outside the folds must tell them nothing; the oracle fits all of it in each."""
    rng = random.Random(3)
    samples = []
    for number in range(60):
        for label in Label:
            words = rng.choices(WORDS, k=rng.randint(8, 20 if label is Label.MISBEHAVIOR else 16))
            asked = f"Say {rng.choice(words)} and {rng.choice(WORDS)}."
            source = rng.choice(["logs", "forum"])
            samples.append(
                make_sample(
                    asked,
                    " ".join(words),
                    pair_id=f"o{number}",
                    group_id=f"o{number}",
                    label=label,
                    source=source,
                )
            )
    flags = np.array([sample.label is Label.MISBEHAVIOR for sample in samples])
    groups = group_index([sample.group_id for sample in samples])
    found = []
    for repeat in range(2):
        folds = [
            (np.flatnonzero(~test), np.flatnonzero(test)) for test in _folds(flags, groups, 5, [0, repeat])
        ]
        scores = cross_val_predict(classifier(surface), samples, flags, cv=folds, method="decision_function")
        found += [roc_auc_score(flags[test], scores[test]) for _, test in folds]
    # Which hundred words are frequent may differ by a fold's few samples.
    near = 0.03 if surface == "all_shortcuts" else 1e-6
    assert _check(samples, surface)["auroc"] == pytest.approx(np.mean(found), abs=near)
