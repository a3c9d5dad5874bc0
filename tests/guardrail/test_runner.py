"""A model that dies and comes back, and judges that are combined."""

import threading
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from scripted_monitor import NAME, ScriptedJudge, by_number, monitor_of, running, scripted, verdict

from monitorbench.config.base import UserError
from monitorbench.guardrail import runner as module
from monitorbench.guardrail.runner import PendingQuestion, Runner, Unjudged
from monitorbench.judging.judge import TRIAL, Judge, sample_of
from monitorbench.records import Message, Role, Sample, UnscoredReason, Verdict
from monitorbench.scoring.combination.cascade import Band, Cascade, run_cascade
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

    def judges(sample: Sample) -> Verdict:
        if not is_alive[0]:
            raise RuntimeError("CUDA error")
        return verdict(0.0) if sample == TRIAL else by_number(sample)

    def opens() -> Judge:
        if not is_alive[0]:
            raise RuntimeError("no such device")
        opened.append(1)
        judge = ScriptedJudge(judges)
        judge.closing.callback(closed.append, 1)
        return judge

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


def test_why_a_judge_is_not_opened_again_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """If it failed: nobody would learn that another model came back, or of nothing else any more."""
    monkeypatch.setattr(module, "_SECONDS_BETWEEN_OPENINGS", 0.0)

    def dies(sample: Sample) -> Verdict:
        raise RuntimeError("gone")

    def another() -> Judge:
        raise UserError("no longer the judge that was calibrated")

    runner = Runner("judge", lambda: ScriptedJudge(dies), another)
    for _ in range(4):
        with pytest.raises(Unjudged):
            runner.result(runner.begin(said("0.1"), in_a_minute()))
    runner.close()
    assert caplog.text.count("no longer the judge that was calibrated") == 1


def test_one_bad_request_does_not_cost_the_model(tmp_path: Path):
    """If it failed: a text that breaks the model would have it loaded anew each time it comes."""
    opened = []

    def opens() -> Judge:
        opened.append(1)
        return ScriptedJudge(by_number)

    runners = {NAME: Runner("judge", opens, opens)}
    with monitor_of(runners=runners) as monitor, running(monitor, tmp_path) as served:
        assert served.post({"request": "Why?", "response": "die"})[1]["action"] == "flag"
        assert served.post({"request": "Why?", "response": "0.1"})[1]["action"] == "pass"
    assert len(opened) == 1


def test_a_cascade_asks_the_second_judge_where_the_first_is_unsure():
    """If it failed: what is served would not be the rule that was calibrated, or cost all of its calls."""
    asked: list[str] = []

    def strong(sample: Sample) -> Verdict:
        asked.append(sample.response[0].content)
        return verdict(0.9, tokens=10)

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
    gone = verdict(None, UnscoredReason.TIMED_OUT, "no answer")
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
        "b/p/2": lambda sample: verdict(0.25, tokens=1),
    }
    with monitor_of(judges, rule=rule) as monitor:
        found = monitor.verdict(said("0.8"), in_a_minute())
        unread = monitor.verdict(said("huh"), in_a_minute())
        lost = monitor.verdict(said("lost"), in_a_minute())
    assert found.score == combine(rule, {members[0]: [0.8], members[1]: [0.25]})[0]
    assert unread.score == combine(rule, {members[0]: [np.nan], members[1]: [0.25]})[0]
    assert (lost.score, lost.why) == (None, "http_error"), "a judge that was not asked is no missing score"


def test_a_judge_that_hangs_keeps_no_text_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """If it failed: nothing would show that nobody is judged, until the queue has filled the memory."""
    goes_on, judged = threading.Event(), []

    def hangs(sample: Sample) -> Verdict:
        judged.append(sample.response[0].content)
        goes_on.wait()
        return by_number(sample)

    opened = ScriptedJudge(hangs)
    runner = Runner("judge", lambda: opened, None, most_waiting=3)
    begun: list[PendingQuestion] = []
    begin = runner.begin

    def noted(sample: Sample, deadline: float) -> PendingQuestion:
        begun.append(begin(sample, deadline))
        return begun[-1]

    monkeypatch.setattr(runner, "begin", noted)
    with (
        monitor_of(runners={NAME: runner}) as monitor,
        running(monitor, tmp_path, timeout_seconds=0.1) as served,
        ExitStack() as stack,
    ):
        stack.callback(goes_on.set)
        answers = [served.post({"request": "Why?", "response": "0.1"})[1] for _ in range(6)]
        assert [one["error"] for one in answers] == ["timed_out"] * 4 + ["overloaded"] * 2
        assert {one["action"] for one in answers} == {"flag"}
        assert served.guardrail.health() == {"status": "failing"}
        assert [one.sample for one in begun] == [None] * 4
        goes_on.set()
        again = (served.post({"request": "Why?", "response": "0.2"})[1] for _ in range(50))
        assert next(one for one in again if one["error"] is None)["action"] == "pass"
        assert served.guardrail.health() == {"status": "ok"}
    assert judged.count("0.1") == 1, "what nobody waits for is not begun"


def test_where_one_judge_of_several_is_gone_the_others_are_not_asked():
    """If it failed: each request would cost the other judges theirs, for nobody."""
    goes_on, is_busy, judged = threading.Event(), threading.Event(), []

    def first(sample: Sample) -> Verdict:
        is_busy.wait()
        return by_number(sample)

    def slow(sample: Sample) -> Verdict:
        is_busy.set()
        goes_on.wait()
        judged.append(sample.response[-1].content)
        return verdict(0.5)

    rule = Ensemble(rule="mean", members=("a/p/1", "b/p/2"), centres=(), scales=(), weights=(), intercept=0)
    with monitor_of({"a/p/1": first, "b/p/2": slow}, rule=rule) as monitor:
        assert monitor.verdict(said("lost"), in_a_minute()).why == "http_error"
        assert monitor.verdict(said("die"), in_a_minute()).why == "failed"
        goes_on.set()
    assert "die" not in judged


def test_a_runner_that_is_closed_judges_nothing():
    """If it failed: a request that comes while the server ends would wait for ever."""
    runner = scripted(by_number)
    runner.close()
    with pytest.raises(RuntimeError):
        runner.begin(said("0.1"), in_a_minute())


def test_what_is_much_longer_than_any_calibrated_text_says_so():
    """If it failed: a promise of short texts would stand, without a word, behind a session's decision."""
    with monitor_of(longest=1) as monitor:
        found = monitor.verdict(said("0.7"), in_a_minute())
    assert found.flagged is True
    assert found.detail.startswith("read up to 3 tokens, calibrated on up to 1")
    with monitor_of(longest=2) as monitor:
        assert monitor.verdict(said("0.7"), in_a_minute()).detail == ""
