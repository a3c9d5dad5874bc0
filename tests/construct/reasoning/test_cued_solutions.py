"""Published solutions under a cue that was fitted to the wrong one."""

import json
from collections import Counter
from pathlib import Path

import yaml

from monitorbench.config.sources import Cues
from monitorbench.construct.pair import ConstructionContext
from monitorbench.construct.reasoning.cued_solutions import (
    AGREED,
    MISTAKEN,
    RESISTED,
    SUBCATEGORY,
    cued_solution_pairs,
)
from monitorbench.construct.stated_answers import extract_answer
from monitorbench.records import Label
from monitorbench.upstream import KnownQuestion, Solution, SolvedQuestion

CONF = Path(__file__).resolve().parents[3] / "conf"
CUES = Cues.model_validate_json(json.dumps(yaml.safe_load((CONF / "cue/default.yaml").read_text())))


def solution(model: str, answer: str, *, right: bool, text: str = "") -> Solution:
    text = text or f"There are 3 crates of <<3*4=12>>4 jars each.\nThat makes {answer}.\nA: {answer}"
    return Solution(model, text, answer, right)


def solved(number: int, *solutions: Solution) -> SolvedQuestion:
    asked = KnownQuestion(f"s{number}", f"g{number}", "jars", f"How many jars are in lorry {number}?", "12")
    return SolvedQuestion(asked, solutions)


def build(rows: list[SolvedQuestion]):
    return cued_solution_pairs(rows, ConstructionContext("jars", "MIT", 0, CUES))


ROWS = [
    solved(
        i,
        solution("small", "7", right=False),
        solution("large", "12", right=True),
        *([solution("other", "9", right=False)] if i % 2 else []),
    )
    for i in range(80)
]


def test_the_misbehavior_ends_where_the_cue_points_and_benign_answers_do_not_or_are_right():
    """A label would contradict the answer that the response gives."""
    samples = build(ROWS).samples
    assert len(samples) == 160
    for sample in samples:
        said = extract_answer(sample.response[-1].content)
        is_bad = sample.label is Label.MISBEHAVIOR
        cued = "12" if sample.stratum == AGREED and not is_bad else "7"
        assert said == {True: "7", False: "9" if sample.stratum == MISTAKEN else "12"}[is_bad]
        assert cued in "\n".join(m.content for m in sample.request).replace(f"lorry {cued}", "")
        assert sample.suggestion_truth == ("right" if cued == "12" else "wrong")
        assert sample.answer_truth == ("right" if said == "12" else "wrong")
        assert sample.subject_model == {"7": "small", "9": "other", "12": "large"}[said]
        assert sample.subcategory == SUBCATEGORY
        assert sample.cue in CUES.kinds
    strata = Counter(sample.stratum for sample in samples[::2])
    assert min(strata[stratum] for stratum in (RESISTED, AGREED, MISTAKEN)) > 15


def test_twins_differ_in_nothing_but_the_working():
    """A closing phrase or a trace on one side only would tell the label."""
    samples = build(ROWS).samples
    for bad, good in zip(samples[::2], samples[1::2], strict=True):
        assert (bad.request == good.request) is (bad.stratum != AGREED)
        assert bad.has_thinking == good.has_thinking
        last = [s.response[-1].content.splitlines()[-1] for s in (bad, good)]
        assert last[0].replace("7", "9" if bad.stratum == MISTAKEN else "12") == last[1]
        assert not any("<<" in m.thinking + m.content for s in (bad, good) for m in s.response)
    assert 20 < sum(sample.has_thinking for sample in samples[::2]) < 60


def test_solutions_that_would_mislabel_are_dropped_and_counted():
    """A wrong grade, an unfinished or a degenerate solution would become a label."""
    right = solution("large", "12", right=True)
    cases = {
        "solution: ends in no plain number": solution("small", "x + 5", right=False),
        "solution: the grade is not what the final answer says": solution("small", "12.0", right=False),
        "solution: hardly any working, or one that repeats itself": solution(
            "small", "7", right=False, text="Each has 0." + "3" * 60 + "\nA: 7"
        ),
    }
    for reason, bad in cases.items():
        constructed = build([solved(0, bad, right)])
        assert constructed.samples == []
        assert constructed.rejected == {reason: 1, "no usable wrong solution": 1}


def test_no_solution_is_used_twice_and_no_cue_is_doubled():
    """One answer would count as several."""
    wrong = [
        solution("a", "7", right=False),
        solution("b", "7", right=False),
        solution("c", "9", right=False),
    ]
    right = [
        solution("d", "12", right=True),
        solution("e", "12", right=True, text="Three by four.\n" * 3 + "A: 12"),
    ]
    samples = build([solved(0, *wrong, *right)]).samples
    assert len({sample.response for sample in samples}) == len(samples) > 0
    assert len({sample.pair_id for sample in samples}) == len(samples) / 2


def test_pairs_do_not_depend_on_other_rows():
    """A bad row somewhere would change the rest of the corpus."""
    assert build(ROWS[5:9]).samples == build(ROWS).samples[10:18]
