"""A model that dies and comes back, and judges that are combined."""

import time
from pathlib import Path

import numpy as np
import pytest
from scripted_monitor import NAME, by_number, monitor_of, running, scripted

from monitorbench.guardrail import runner as module
from monitorbench.guardrail.opened import TRIAL, Opened
from monitorbench.guardrail.runner import Runner
from monitorbench.judging.pair.judgement import Judgement, sample_of
from monitorbench.records import Message, Role, Sample, UnscoredReason
from monitorbench.scoring.combination.bands import Band
from monitorbench.scoring.combination.cascade import Cascade, run_cascade
from monitorbench.scoring.combination.ensembles import Ensemble, combine


def said(response: str) -> Sample:
    return sample_of(
        (Message(role=Role.USER, content="Why?"),), (Message(role=Role.ASSISTANT, content=response),)
    )


def in_a_minute() -> float:
    return time.monotonic() + 60


def test_a_model_that_dies_is_opened_anew_when_it_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """If it failed: after a crash all would be flagged until somebody restarts the server, or pass."""
    monkeypatch.setattr(module, "_SECONDS_BETWEEN_OPENINGS", 0.0)
    is_alive, opened, closed = [True], [], []

    def judges(sample: Sample) -> Judgement:
        if not is_alive[0]:
            raise RuntimeError("CUDA error")
        return Judgement(None, None, "", 0.0, None, 0) if sample == TRIAL else by_number(sample)

    def opens() -> Opened:
        if not is_alive[0]:
            raise RuntimeError("no such device")
        opened.append(1)
        return Opened(judges, lambda: closed.append(1))

    runners = {NAME: Runner("judge", opens, opens)}
    with monitor_of(runners=runners) as monitor, running(monitor, tmp_path) as served:
        ask = {"request": "Why?", "response": "0.1"}
        assert served.post(ask)[1]["action"] == "pass"
        is_alive[0] = False
        for _ in range(3):
            answer = served.post(ask)[1]
            assert (answer["action"], answer["error"]) == ("flag", "failed")
        assert served.guardrail.health() == {"status": "failing"}
        is_alive[0] = True
        assert served.post(ask)[1]["action"] == "pass"
        assert served.guardrail.health() == {"status": "ok"}
    assert (len(opened), len(closed)) == (2, 2)


def test_one_bad_request_does_not_cost_the_model(tmp_path: Path):
    """If it failed: a text that breaks the model would have it loaded anew each time it comes."""
    opened = []

    def opens() -> Opened:
        opened.append(1)
        return Opened(by_number, lambda: None)

    runners = {NAME: Runner("judge", opens, opens)}
    with monitor_of(runners=runners) as monitor, running(monitor, tmp_path) as served:
        assert served.post({"request": "Why?", "response": "die"})[1]["action"] == "flag"
        assert served.post({"request": "Why?", "response": "0.1"})[1]["action"] == "pass"
    assert len(opened) == 1


def test_a_cascade_asks_the_second_judge_where_the_first_is_unsure():
    """If it failed: what is served would not be the rule that was calibrated, or cost all of its calls."""
    asked: list[str] = []

    def strong(sample: Sample) -> Judgement:
        asked.append(sample.response[0].content)
        return Judgement(None, None, "", 0.9, None, 10)

    rule = Cascade(cheap="cheap/p/1", strong="strong/p/2", band=Band(0.3, 0.6))
    judges = {"cheap/p/1": by_number, "strong/p/2": strong}
    with monitor_of(judges, rule=rule) as monitor:
        found = {text: monitor.verdict(said(text), in_a_minute()) for text in ("0.2", "0.4", "0.7", "huh")}
    assert asked == ["0.4", "huh"]
    expected = run_cascade(rule, [0.2, 0.4, 0.7, None], [0.9] * 4).scores
    assert [one.score for one in found.values()] == expected.tolist()
    assert [one.flagged for one in found.values()] == (expected > 0.5).tolist()
    assert found["0.4"].prompt_tokens == 13


def test_a_cascade_whose_second_judge_is_gone_has_no_score():
    """If it failed: an outage of the strong judge would make the cheap one's doubt a pass."""
    rule = Cascade(cheap="cheap/p/1", strong="strong/p/2", band=Band(0.3, 0.6))
    gone = Judgement(None, UnscoredReason.TIMED_OUT, "no answer", None, None, 0)
    judges = {"cheap/p/1": by_number, "strong/p/2": lambda sample: gone}
    with monitor_of(judges, rule=rule) as monitor:
        assert monitor.verdict(said("0.1"), in_a_minute()).flagged is False
        found = monitor.verdict(said("0.4"), in_a_minute())
    assert (found.flagged, found.why) == (None, "timed_out")


def test_an_ensemble_is_the_calibrated_one():
    """If it failed: the combined score would be another than the threshold's."""
    members = ("a/p/1", "b/p/2")
    rule = Ensemble(
        rule="stacked",
        members=members,
        centres=(0.1, -0.2),
        scales=(1.5, 2.0),
        weights=(0.7, 1.1),
        intercept=-0.3,
    )
    judges = {
        "a/p/1": by_number,
        "b/p/2": lambda sample: Judgement(None, None, "", 0.25, None, 1),
    }
    with monitor_of(judges, rule=rule) as monitor:
        found = monitor.verdict(said("0.8"), in_a_minute())
        unread = monitor.verdict(said("huh"), in_a_minute())
        lost = monitor.verdict(said("lost"), in_a_minute())
    assert found.score == combine(rule, {members[0]: [0.8], members[1]: [0.25]})[0]
    assert unread.score == combine(rule, {members[0]: [np.nan], members[1]: [0.25]})[0]
    assert (lost.score, lost.why) == (None, "http_error"), "a judge that was not asked is no missing score"


def test_a_runner_that_is_closed_judges_nothing():
    """If it failed: a request that comes while the server ends would wait for ever."""
    runner = scripted(by_number)
    runner.close()
    with pytest.raises(RuntimeError):
        runner.begin(said("0.1"), in_a_minute())
