"""The model that an endpoint says it is: written down, and the same one for all of a run."""

import logging
from collections.abc import Callable, Iterator

import pytest
from endpoint_server import Answer, EndpointServer, chat, serving

from monitorbench.config.base import UserError
from monitorbench.config.study import Study
from monitorbench.judging.evaluate import evaluate
from monitorbench.runs.directory import read_manifest
from monitorbench.runs.keyed_log import read_failures, read_verdicts


def by(version: str) -> Answer:
    return Answer(chat("yes").replace(b"@asked", f"smollm2_135m-{version}".encode()))


@pytest.fixture
def server() -> Iterator[EndpointServer]:
    with serving(lambda *_: by("2026-01-01")) as running:
        yield running


@pytest.fixture
def endpoint(study: Callable[..., Study], server: EndpointServer) -> Callable[..., Study]:
    def made(*overrides: str) -> Study:
        base = ("engine=openai", f"engine.base_url={server.base_url}", "engine.concurrency=1")
        return study(*base, "engine.max_retries=0", *overrides)

    return made


def from_number(server: EndpointServer, n: int, later: Answer) -> None:
    """Have the answers from the n-th request on be another one."""
    server.script = lambda *_: by("2026-01-01") if len(server.asked) <= n else later


def test_the_name_is_in_the_manifest(endpoint: Callable[..., Study]):
    """If it failed: nobody could say which version a published figure is of."""
    run = evaluate(endpoint())
    assert read_manifest(run)["results"]["served_models"] == {"smollm2_135m-2026-01-01": 28}


def test_a_change_during_a_run_ends_it(endpoint: Callable[..., Study], server: EndpointServer):
    """If it failed: one table would mix two models."""
    from_number(server, 10, by("2026-02-02"))
    with pytest.raises(UserError, match=r"-2026-02-02, not smollm2_135m-2026-01-01; .*model_may_change=true"):
        evaluate(endpoint())
    (log,) = endpoint().paths.runs.rglob("verdicts.jsonl")
    assert {verdict.served_model for verdict in read_verdicts(log)} == {"smollm2_135m-2026-01-01"}
    (paid,) = read_failures(log.with_name("failures.jsonl")).values()
    assert (paid.label, paid.prompt_tokens) == (None, 10), "it was paid for, so its cost is counted"


def test_a_change_against_a_resumed_run_ends_it(endpoint: Callable[..., Study], server: EndpointServer):
    """If it failed: the half that is asked a month later would be another model's."""
    from_number(server, 10, Answer(b"{}", status=401))
    with pytest.raises(UserError, match="HTTP 401"):
        evaluate(endpoint())
    server.script = lambda *_: by("2026-02-02")
    with pytest.raises(UserError, match="answered by model smollm2_135m-2026-02-02"):
        evaluate(endpoint())
    server.script = lambda *_: by("2026-01-01")
    assert read_manifest(evaluate(endpoint()))["results"]["served_models"] == {"smollm2_135m-2026-01-01": 28}


def test_a_change_that_is_allowed_is_said(
    endpoint: Callable[..., Study], server: EndpointServer, caplog: pytest.LogCaptureFixture
):
    """If it failed: the warning would be missing, or come with every answer."""
    from_number(server, 10, by("2026-02-02"))
    with caplog.at_level(logging.WARNING):
        run = evaluate(endpoint("engine.model_may_change=true"))
    assert sum("answered by model" in record.message for record in caplog.records) == 1
    named = read_manifest(run)["results"]["served_models"]
    assert named == {"smollm2_135m-2026-01-01": 10, "smollm2_135m-2026-02-02": 18}


@pytest.mark.parametrize(
    ("engine", "monitor", "model"),
    [
        ("deepseek", "deepseek_v4_flash", "deepseek-v4-flash"),
        ("gemini", "gemini_2_5_flash", "gemini-2.5-flash"),
        ("openai_api", "gpt_4o_mini", "gpt-4o-mini"),
        ("anthropic", "claude_haiku_4_5", "claude-haiku-4-5"),
    ],
)
def test_a_provider_s_monitor_brings_its_prices(
    compose_study: Callable[..., Study], engine: str, monitor: str, model: str
):
    """If it failed: max_cost could not be set, or a price would be of no known day."""
    made = compose_study("evaluate", f"engine={engine}", f"monitor={monitor}", "engine.max_cost=1")
    assert (made.engine.kind, made.engine.model) == ("openai", model)
    assert made.engine.prices == made.monitor.prices
    assert made.engine.prices.looked_up == "2026-11-24"
    own = compose_study(
        "evaluate",
        f"engine={engine}",
        f"monitor={monitor}",
        "engine.prices={prompt: 9, cached_prompt: null, completion: 9}",
    )
    assert own.engine.prices.prompt == 9
    assert compose_study("evaluate", f"engine={engine}").engine.prices is None


def test_no_provider_s_model_thinks(compose_study: Callable[..., Study]):
    """If it failed: an answer of one token would be spent on a thought, and be empty."""
    gemini = compose_study("evaluate", "engine=gemini", "monitor=gemini_2_5_flash")
    assert gemini.engine.extra_body == {"reasoning_effort": "none"}
    deepseek = compose_study("evaluate", "engine=deepseek", "monitor=deepseek_v4_flash")
    assert deepseek.engine.extra_body == {"thinking": {"type": "disabled"}}
