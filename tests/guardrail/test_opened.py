"""Which judge is opened, by whose answers it goes, and that nobody is asked for a request that is over."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from endpoint_server import Answer, EndpointServer, chat, serving

from monitorbench.config.base import UserError
from monitorbench.config.endpoint import Served
from monitorbench.config.study import Study
from monitorbench.guardrail import calibrated
from monitorbench.guardrail.calibrated import ServedJudge, open_part
from monitorbench.guardrail.runner import Runner, Unjudged
from monitorbench.judging.identity import judge_spec
from monitorbench.judging.judge import TRIAL
from monitorbench.judging.serving import served
from monitorbench.judging.serving.served import Address, address_file, reach, write_address

LOGPROBS = {"yes": -0.5, "no": -1.0}


def by(version: str) -> Answer:
    return Answer(chat("yes", logprobs=LOGPROBS).replace(b"@asked", f"smollm2_135m-{version}".encode()))


@pytest.fixture
def server() -> Iterator[EndpointServer]:
    with serving(lambda *_: by("2026-01-01")) as running:
        yield running


@pytest.fixture
def endpoint(study: Callable[..., Study], server: EndpointServer) -> Callable[..., ServedJudge]:
    def made(*overrides: str, models: tuple[str, ...] = ()) -> ServedJudge:
        one = study("engine=openai", f"engine.base_url={server.base_url}", *overrides)
        return ServedJudge(judge_spec(one.monitor, one.engine, one.prompt), one, models)

    return made


def runner_of(part: ServedJudge, seconds: float = 30) -> Runner:
    return Runner("judge", partial(open_part, part, seconds), None, threads=4)


def ask(runner: Runner, seconds: float = 30) -> float | None:
    return runner.result(runner.begin(TRIAL, time.monotonic() + seconds)).score


def test_a_server_that_came_back_with_another_model_is_not_opened(
    study: Callable[..., Study], monkeypatch: pytest.MonkeyPatch
):
    """If it failed: another adapter or dtype would be served at a threshold that says nothing of it."""
    monkeypatch.setattr(served, "_why_not", lambda address: "")
    found = ("engine.server=mine", "engine.server_seconds=0", "engine.by_token_ids=false")
    one = study("engine=served", *found)
    file = address_file(one.paths.runs, "mine")

    def serves(weights: str, adapter: str, dtype: str) -> None:
        what = Served(weights=weights, adapter=adapter, dtype=dtype, training=None)
        url = "http://127.0.0.1:9/v1"
        write_address(
            file, Address(url=url, model="m", adapter=adapter or None, serves=what, key=None, pid=1)
        )

    serves("w", "", "float32")
    one = reach(one, waits=False)
    part = ServedJudge(judge_spec(one.monitor, one.engine, one.prompt), one)
    open_part(part, 1).close()
    for other, named in (
        (("w2", "", "float32"), "weights"),
        (("w", "a", "float32"), "adapter"),
        (("w", "", "float16"), "dtype"),
    ):
        serves(*other)
        with pytest.raises(UserError, match=f"engine.server=mine: no longer the judge .*other {named}"):
            open_part(part, 1)
    serves("w", "", "float32")
    open_part(part, 1).close()


def test_a_provider_that_answers_by_another_model_gives_no_judgement(
    endpoint: Callable[..., ServedJudge], server: EndpointServer
):
    """If it failed: a provider's new model would be taken at the old one's threshold, day and night."""
    first, told = runner_of(endpoint()), runner_of(endpoint(models=("smollm2_135m-2025-12-31",)))
    assert ask(first) == pytest.approx(0.622, abs=0.01)
    with pytest.raises(Unjudged, match=r"bad_response.*-2026-01-01, not smollm2_135m-2025-12-31"):
        ask(told)
    server.script = lambda *_: by("2026-02-02")
    with pytest.raises(Unjudged, match=r"-2026-02-02, not smollm2_135m-2026-01-01; .*model_may_change=true"):
        ask(first)
    assert first.is_failing
    server.script = lambda *_: by("2026-01-01")
    assert ask(first) is not None
    assert not first.is_failing
    may = runner_of(endpoint("engine.model_may_change=true", models=("smollm2_135m-2025-12-31",)))
    assert ask(may) is not None
    for one in (first, told, may):
        one.close()


def test_the_calibrated_runs_models_are_those_expected(
    study: Callable[..., Study], monkeypatch: pytest.MonkeyPatch, server: EndpointServer, tmp_path: Path
):
    """If it failed: after a restart the first answer would be taken for the calibrated model's."""
    one = study("engine=openai", f"engine.base_url={server.base_url}")
    spec = judge_spec(one.monitor, one.engine, one.prompt)
    manifest = {
        "identity": {"judge": spec.identity},
        "results": {"data": "d", "served_models": {"smollm2_135m-2025-12-31": 3}},
    }
    monkeypatch.setattr(calibrated, "read_finished", lambda run: manifest)
    name = f"a/b/{calibrated.content_hash(spec.identity)}"
    assert calibrated._judge(one, tmp_path, name, as_typed=True).served_models == ("smollm2_135m-2025-12-31",)


@pytest.mark.parametrize("limits", [(), ("engine.requests_per_minute=1",)])
def test_an_endpoint_is_not_asked_for_who_is_gone(
    limits: tuple[str, ...], endpoint: Callable[..., ServedJudge], server: EndpointServer
):
    """If it failed: one 429 would leave threads that wait and retry, and the next requests without one."""
    busy = Answer(b"{}", status=429, headers={"Retry-After": "60"})
    server.script = lambda *_: by("2026-01-01") if limits and len(server.asked) == 1 else busy
    runner = runner_of(endpoint(*limits))
    if limits:
        assert ask(runner) is not None  # the minute's only one
    asked = runner.begin(TRIAL, time.monotonic() + 0.5)
    with pytest.raises(Unjudged, match="timed_out"):
        runner.result(asked)
    began = time.monotonic()
    asked.future.exception(timeout=30)
    assert time.monotonic() - began < 5, "the thread goes on waiting"
    assert len(server.asked) == 1
    runner.close()


def test_an_endpoint_is_not_waited_for_in_the_end(
    endpoint: Callable[..., ServedJudge], server: EndpointServer
):
    """If it failed: the server would not end before an endpoint's last answer."""
    server.script = lambda *_: Answer(chat("yes"), after=30)
    runner = runner_of(endpoint())
    asked = runner.begin(TRIAL, time.monotonic() + 60)
    while not server.asked:
        time.sleep(0.01)
    began = time.monotonic()
    runner.close()
    assert time.monotonic() - began < 10
    with pytest.raises(Unjudged, match="the server is ending"):
        runner.result(asked)
