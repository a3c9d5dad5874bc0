"""What is said before an evaluation's first question: exact where it can be, marked where it is not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_verdicts import made_verdict

from monitorbench.config.study import Study
from monitorbench.engines.protocol import ChatMessage, Request
from monitorbench.judging.expected import Pace, expected, expected_seconds, in_words, measured_pace
from monitorbench.judging.identity import NO_SHOTS, JudgeSpec, judge_spec
from monitorbench.judging.judge import Question
from monitorbench.records import Label, Verdict
from monitorbench.runs.directory import RunDirectory
from monitorbench.runs.keyed_log import open_verdict_log

ENDPOINT = ("engine=openai_api", "monitor.name=m", "monitor.hub_id=m", "engine.concurrency=4")
PRICES = "engine.prices={prompt: 2.0, cached_prompt: null, completion: 10.0}"


def verdict(key: str, seconds: float, tokens: int, cost: float = 0.0) -> Verdict:
    of_cost = {"seconds": seconds, "prompt_tokens": tokens, "cost": cost}
    return made_verdict(Label.BENIGN, key=key, sample_id=key, **of_cost)


def spec_of(study: Study) -> JudgeSpec:
    return judge_spec(study.monitor, study.engine, study.prompt)


def logged(study: Study, name: str, judge: JudgeSpec, verdicts: list[Verdict], **more: Any) -> Path:
    run = RunDirectory(study.paths.runs / "evaluate", name, {"judge": dict(judge.identity), **more})
    with run.recording(study), open_verdict_log(run.path / "verdicts.jsonl") as log:
        for one in verdicts:
            log.append(one)
    return run.path


@pytest.fixture
def study(tmp_path: Path, compose_study: Callable[..., Study]) -> Study:
    return compose_study("evaluate", *ENDPOINT, PRICES, "tracking=none", f"paths.runs={tmp_path / 'runs'}")


def test_pace_is_the_mean_of_earlier_verdicts(study: Study) -> None:
    """A plan that promised minutes for what took hours; one more judge's runs must not mix in."""
    judge = spec_of(study)
    assert measured_pace(study.paths.runs, judge.identity) is None
    logged(study, "a", judge, [verdict("1", 2.0, 100, 0.1), verdict("2", 4.0, 300, 0.3)], data="x")
    logged(study, "b", judge, [verdict("3", 6.0, 200, 0.2), verdict("4", 0.0, 9000)], data="y")
    other = study.prompt.model_copy(update={"system": "something else"})
    logged(study, "c", judge_spec(study.monitor, study.engine, other), [verdict("5", 99.0, 1)], data="x")
    pace = measured_pace(study.paths.runs, judge.identity)
    assert pace is not None
    assert pace.n == 3  # what was too long was not asked
    assert pace[1:] == pytest.approx((4.0, 200.0, 1.0, 0.2))


def test_an_adapter_has_its_base_s_pace(study: Study) -> None:
    """Each new adapter would be planned without a time, though its base was timed."""
    judge = spec_of(study)
    logged(study, "a", judge, [verdict("1", 2.0, 100)])
    assert measured_pace(study.paths.runs, {**judge.identity, "adapter": "0a1b"}) is not None
    assert measured_pace(study.paths.runs, {**judge.identity, "weights": "others"}) is None


@pytest.mark.parametrize("damage", ["torn", "foreign", "no_manifest"])
def test_damaged_runs_stop_nothing(study: Study, damage: str) -> None:
    """An estimate is no reason to end an evaluation."""
    judge = spec_of(study)
    path = logged(study, "a", judge, [verdict("1", 2.0, 100), verdict("2", 2.0, 100)])
    log = path / "verdicts.jsonl"
    if damage == "torn":
        log.write_bytes(log.read_bytes()[:-20])
    elif damage == "foreign":
        log.write_bytes(b"no json\n")
    else:
        (path / "manifest.json").write_text("{")
    pace = measured_pace(study.paths.runs, judge.identity)
    assert (pace.n if pace else None) == (1 if damage == "torn" else None)


def questions(make_sample: Any, n: int, *, characters: int = 0, tokens: int = 0) -> list[Question]:
    request = Request((ChatMessage("user", "x" * characters),), tuple(range(tokens)))
    return [Question(str(i), make_sample(), request) for i in range(n)]


def test_an_endpoint_s_line(study: Study, make_sample: Any) -> None:
    """Somebody pays 40 times what was thought: prompts, most answers, the limit, and what is an estimate."""
    coming = expected(questions(make_sample, 30, characters=2997), spec_of(study))
    assert coming[:4] == (30, 30 * 1000, False, 30 * study.prompt.max_new_tokens)
    assert coming.most_cost == pytest.approx((30_000 * 2 + coming.most_completion_tokens * 10) / 1e6)
    engine = study.engine.model_copy(update={"max_cost": 0.05})
    line = in_words(coming, 40, Pace(1200, 8.0, 900.0, 1.0, 0.001), engine, spent=0.01)
    assert line == (
        "30 of 40 samples to judge (10 known): about 30,000 prompt tokens (estimated), at most 30 "
        "completion tokens; cost at most about 0.0603, 0.0300 at the measured pace; engine.max_cost=0.05 "
        "may end it before (0.0100 spent); about 0:01:00 by 1,200 verdicts of before"
    )


def test_token_ids_are_counted(compose_study: Callable[..., Study], make_sample: Any) -> None:
    """Rendered prompts are there already: a guess beside them would be a shame."""
    study = compose_study("evaluate", "prompt=evidence")
    judge = JudgeSpec(study.monitor, study.engine, study.prompt, NO_SHOTS, {})
    coming = expected(questions(make_sample, 3, tokens=7), judge)
    assert in_words(coming, 3, None, study.engine) == (
        f"3 samples to judge: 21 prompt tokens, at most {3 * study.prompt.max_new_tokens} completion tokens"
    )


def test_limits_by_the_minute_count(study: Study) -> None:
    """An account with 10 requests a minute takes an hour for 600, however fast each answer is."""
    pace = Pace(10, 1.0, 900.0, 100.0, 0.0)
    assert expected_seconds(pace, 600, study.engine) == 150
    slow = study.engine.model_copy(update={"requests_per_minute": 10})
    assert expected_seconds(pace, 600, slow) == 3600
    tokens = study.engine.model_copy(update={"tokens_per_minute": 5000})
    assert expected_seconds(pace, 600, tokens) == 7200
