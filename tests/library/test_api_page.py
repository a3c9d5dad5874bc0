"""docs/api.md, read as it stands: every function's signature and an example that gives what it says."""

import doctest
import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import monitorbench

PAGE = Path(__file__).parents[2] / "docs" / "api.md"


def signature(function: Callable[..., object]) -> str:
    """The call without its types, as `rates(labels, flagged, groups=None, *, confidence=0.95)`."""
    found = inspect.signature(function)
    plain = [each.replace(annotation=each.empty) for each in found.parameters.values()]
    return f"{function.__name__}{found.replace(parameters=plain, return_annotation=found.empty)}"


@pytest.mark.parametrize("name", monitorbench.__all__)
def test_the_page_has_every_signature(name: str):
    """A reader would pass an argument that is no more."""
    assert f"```\n{signature(getattr(monitorbench, name))}\n```" in PAGE.read_text(encoding="utf-8")


def test_labels_come_first_and_groups_last_among_what_is_given_by_place():
    """With two orders in one library, scores are taken for labels."""
    for name in ("rates", "auroc", "calibrate", "compare"):
        by_place = [
            each.name
            for each in inspect.signature(getattr(monitorbench, name)).parameters.values()
            if each.kind is each.POSITIONAL_OR_KEYWORD
        ]
        assert (by_place[0], by_place[-1]) == ("labels", "groups")


def test_the_examples_give_what_the_page_says():
    """A number on the page that the code does not give is worse than none."""
    results = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert results.attempted >= 10
    assert results.failed == 0


def test_scores_in_the_place_of_labels_are_refused():
    """`calibrate(scores, labels)` returned "Flag above 1" without a word."""
    labels, scores = ["misbehavior", "benign"] * 30, [i / 60 for i in range(60)]
    for name in ("auroc", "calibrate", "rates"):
        with pytest.raises(ValueError, match=r"labels: numbers of more than two values.*labels first"):
            getattr(monitorbench, name)(scores, labels)
    text = re.sub(r"\s+", " ", PAGE.read_text(encoding="utf-8"))
    assert "the labels, then answers or scores, then groups" in text


def test_a_promise_by_question_beside_what_it_comes_to_by_sample():
    """One question with sixty samples: 5 % of questions are promised, and 13 % of samples are flagged."""
    scores = [i / 1000 for i in range(400)] + [0.999] * 60
    groups = [f"q{i}" for i in range(400)] + ["long"] * 60
    found = monitorbench.calibrate([0] * 460, scores, groups, alpha=0.05)
    assert (found.n_questions, found.n_samples) == (401, 460)
    flagged = sum(score > found.threshold for score in scores)
    assert found.n_samples_above == flagged
    assert flagged / 460 > 0.13
    assert f"{flagged} of 460 here  (benign samples flagged; the promise is of questions)" in repr(found)
