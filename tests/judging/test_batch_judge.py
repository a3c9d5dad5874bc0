"""An evaluation through a batch API: the same verdicts, resumed, at half the price."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from batch_server import BatchServer, batching
from endpoint_server import Answer, chat, serving

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import Study
from monitorbench.engines.endpoint import limits as endpoint_limits
from monitorbench.judging.evaluate import evaluate
from monitorbench.judging.identity import judge_spec
from monitorbench.judging.open import open_prompt
from monitorbench.runs.directory import read_manifest
from monitorbench.runs.keyed_log import read_verdicts

PRICES = "engine.prices={prompt: 1, cached_prompt: null, completion: 0}"


def word(text: str) -> str:
    return "yes" if sum(text.encode()) % 2 else "no"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchServer]:
    monkeypatch.setattr(endpoint_limits, "FIRST_BACKOFF_SECONDS", 0.002)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    with batching(word) as running:
        running.model = "gpt-4o-mini"
        yield running


@pytest.fixture
def batched(study: Callable[..., Study], server: BatchServer) -> Callable[..., Study]:
    def made(*overrides: str) -> Study:
        url = f"engine.base_url={server.base_url}"
        quick = ("engine.batch.poll_seconds=0.01", "engine.logprobs=false", "engine.max_retries=1")
        return study("engine=openai_batch", "engine.model=gpt-4o-mini", url, *quick, PRICES, *overrides)

    return made


def test_it_gives_the_verdicts_of_asking_one_by_one(
    batched: Callable[..., Study], study: Callable[..., Study], server: BatchServer
):
    """If it failed: what costs half would be another judge."""
    run = evaluate(batched())
    verdicts = {verdict.sample_id: verdict for verdict in read_verdicts(run / "verdicts.jsonl")}
    assert len(server.batches) == 1
    assert read_manifest(run)["results"]["cost"] == pytest.approx(28 * 1000 / 1e6 / 2)
    with serving(lambda text, _: Answer(chat(word(text)))) as endpoint:
        url = f"engine.base_url={endpoint.base_url}"
        one_by_one = study("engine=openai_api", "engine.model=gpt-4o-mini", url, "engine.logprobs=false")
        other = {v.sample_id: v for v in read_verdicts(evaluate(one_by_one) / "verdicts.jsonl")}
    assert {i: v.label for i, v in verdicts.items()} == {i: v.label for i, v in other.items()}
    assert set(server.keys) == {verdict.key for verdict in verdicts.values()}
    spec = judge_spec(batched().monitor, batched().engine, batched().prompt)
    same = batched().engine.model_copy(update={"batch": None})
    assert judge_spec(batched().monitor, same, batched().prompt).identity == spec.identity


def test_an_interrupted_evaluation_goes_on_with_its_batch(batched: Callable[..., Study], server: BatchServer):
    """If it failed: the same command would pay for it all again."""
    server.trouble = lambda method, *_: "broken" if method == "GET" else ""
    with pytest.raises(UserError, match="the same command goes on"):
        evaluate(batched())
    server.trouble = lambda *_: ""
    run = evaluate(batched())
    assert len(read_verdicts(run / "verdicts.jsonl")) == 28
    assert len(server.batches) == 1
    evaluate(batched())
    assert len(server.batches) == 1, "a finished run hands in nothing"


def test_what_expired_is_handed_in_by_the_next_command(batched: Callable[..., Study], server: BatchServer):
    """If it failed: what ended without an answer would be fetched again and again, and never asked."""
    server.says = lambda text: "expired"
    with pytest.raises(UserError, match="incomplete, 28 of 28 samples"):
        evaluate(batched())
    server.says = word
    run = evaluate(batched())
    assert len(read_verdicts(run / "verdicts.jsonl")) == 28
    assert [len(batch["requests"]) for batch in server.batches] == [28, 28]


def test_an_agent_asks_one_by_one(batched: Callable[..., Study], tmp_path: Path):
    """If it failed: every move of a game would wait for a day."""
    made = batched()
    with pytest.raises(ConfigError, match=r"expected engine\.batch=null"):
        open_prompt(made.monitor, made.engine, made.prompt, tmp_path, "agent", words=("A", "B"))
