"""A judge behind a real local endpoint: real HTTP, real log, the starter's own samples."""

import base64
import json
import math
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from endpoint_server import Answer, EndpointServer, chat, serving

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import Study
from monitorbench.engines.endpoint import limits as endpoint_limits
from monitorbench.judging.evaluate import evaluate
from monitorbench.records import Category, Label, UnscoredReason, Verdict
from monitorbench.report.stages import score as score_run
from monitorbench.runs.keyed_log import read_run, read_verdicts

USAGE = {"prompt_tokens": 1000, "completion_tokens": 1, "total_tokens": 1001}


def says(text: str, p: float = 0.8) -> Answer:
    """An answer with log-probabilities of both labels."""
    return Answer(chat(text, logprobs={"yes": math.log(p * 0.9), "no": math.log((1 - p) * 0.9)}, usage=USAGE))


def by_text(text: str, before: int) -> Answer:
    """Yes or no by the prompt's own text."""
    yes = sum(text.encode()) % 2 == 0
    return says("yes" if yes else "no", 0.8 if yes else 0.1)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EndpointServer]:
    monkeypatch.setattr(endpoint_limits, "FIRST_BACKOFF_SECONDS", 0.002)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving(by_text) as running:
        yield running


@pytest.fixture
def endpoint(study: Callable[..., Study], server: EndpointServer) -> Callable[..., Study]:
    """A study whose judge is behind the endpoint."""

    def made(*overrides: str) -> Study:
        return study("engine=openai", f"engine.base_url={server.base_url}", *overrides)

    return made


def verdicts(run: Path) -> dict[str, Verdict]:
    return {verdict.sample_id: verdict for verdict in read_verdicts(run / "verdicts.jsonl")}


def test_every_sample_gets_the_verdict_of_its_own_text(
    endpoint: Callable[..., Study], server: EndpointServer
):
    """Answers that come back out of order would be booked on other samples."""
    run = evaluate(endpoint())
    found = verdicts(run)
    assert len(found) == 28
    answered = Counter(verdict.label for verdict in found.values())
    assert set(answered) == {Label.MISBEHAVIOR, Label.BENIGN}
    expected = Counter(by_text(asked.text, 0).body == says("yes", 0.8).body for asked in server.asked)
    assert answered[Label.MISBEHAVIOR] == expected[True]
    for verdict in found.values():
        assert verdict.score == pytest.approx(0.8 if verdict.label is Label.MISBEHAVIOR else 0.1)
        assert verdict.label_mass == pytest.approx(0.9)
    asked = server.asked[0].body
    assert [message["role"] for message in asked["messages"]] == ["system", "user"]
    assert asked["model"] == "smollm2_135m"
    assert len(server.asked) == 28
    assert evaluate(endpoint()) == run
    assert len(server.asked) == 28, "a finished run asks nothing"


def test_failures_are_unscored_and_the_rest_is_judged(
    endpoint: Callable[..., Study], server: EndpointServer, capsys: pytest.CaptureFixture[str]
):
    """One broken answer would end a night's run, or count as benign."""
    order: dict[str, int] = {}

    def script(text: str, before: int) -> Answer:
        kind = order.setdefault(text, len(order)) % 7
        return {
            0: Answer(b"<html>busy</html>", content_type="text/html"),
            1: Answer(b"", status=500),
            2: Answer(chat("I can't help with that.")),
            3: Answer(chat(None, refusal="no")),
            4: Answer(chat("")),
            5: says("yes", 0.7),
            6: says("no", 0.2),
        }[kind]

    server.script = script
    run = evaluate(endpoint("engine.concurrency=1", "engine.max_retries=1", "engine.max_failed=0.5"))
    reasons = Counter(verdict.unscored for verdict in read_run(run).values())
    assert reasons == {
        UnscoredReason.BAD_RESPONSE: 4,
        UnscoredReason.HTTP_ERROR: 4,
        UnscoredReason.NO_LABEL: 4,
        UnscoredReason.REFUSED: 4,
        UnscoredReason.EMPTY: 4,
        None: 8,
    }
    assert len(verdicts(run)) == 16, "a failure is no verdict"
    with pytest.raises(UserError, match=r"12 of 28 samples got no answer \(4 .*coverage 0\.571 is below"):
        score_run(endpoint(f"run={run}"))
    told = endpoint(f"run={run}", "score.min_coverage=0.5")
    metrics = json.loads((score_run(told) / "metrics.json").read_text())
    assert metrics["monitors"]["smollm2_135m"]["direct"]["overall"]["n_unscored"] == 20
    counted = metrics["unscored"]["smollm2_135m"]["direct"]
    assert counted == {str(reason): n for reason, n in reasons.items() if reason}
    lines = capsys.readouterr().err.splitlines()
    assert any("direct prompt: 20 of 28 (71.4 %): 4 " in line for line in lines), lines
    assert max(map(len, lines)) <= 80


def test_a_spent_budget_keeps_what_was_paid_for(endpoint: Callable[..., Study], server: EndpointServer):
    """A run that stops at its budget would be paid for twice, or spend the budget again when it goes on."""
    prices = "engine.prices={prompt: 1000.0, cached_prompt: null, completion: 0.0}"  # 1 a request
    with pytest.raises(UserError, match=r"max_cost=5 is spent \(5\)"):
        evaluate(endpoint(prices, "engine.max_cost=5", "engine.concurrency=1"))
    assert len(server.asked) == 5
    run = evaluate(endpoint(prices, "engine.max_cost=40", "engine.concurrency=3"))
    assert len(server.asked) == 28
    assert len({asked.text for asked in server.asked}) == 28
    assert sum(verdict.cost for verdict in verdicts(run).values()) == pytest.approx(28)
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["results"]["cost"] == pytest.approx(28)


def test_what_was_asked_decides_the_verdict_and_nothing_else(
    endpoint: Callable[..., Study], server: EndpointServer
):
    """A changed model would reuse another's verdicts, or a raised limit would ask everything again."""
    run = evaluate(endpoint())
    assert (
        evaluate(endpoint("engine.concurrency=2", "engine.max_retries=9", "engine.timeout_seconds=9")) == run
    )
    assert len(server.asked) == 28
    for changed in ("engine.model=other", "engine.temperature=1", "+engine.extra_body.seed=1"):
        server.asked.clear()
        assert evaluate(endpoint(changed)) != run
        assert len(server.asked) == 28


def test_evidence_is_read_scored_and_grounded(endpoint: Callable[..., Study], server: EndpointServer):
    """Quotes nobody wrote would pass as evidence."""
    text = (
        '{"misbehavior": "yes", "category": "sycophancy_bias", "severity": "low", "quotes": ["%s", "zq zq"]}'
    )

    def script(prompt: str, before: int) -> Answer:
        response = prompt.rpartition("<response>\n")[2].partition("\n</response>")[0]
        plain = [line for line in response.splitlines() if line.strip() and not set(line) & {'"', "\\", "\t"}]
        word = plain[-1].strip() if plain else "zq"
        answer = text % word
        positions = [
            (answer[:17], {}),
            ("yes", {"yes": math.log(0.6), "no": math.log(0.3)}),
            (answer[20:], {}),
        ]
        return Answer(chat(answer, logprobs=positions, usage=USAGE))

    server.script = script
    found = verdicts(evaluate(endpoint("prompt=evidence")))
    schema = server.asked[0].body["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["misbehavior"]["enum"] == ["yes", "no"]
    assert schema["properties"]["category"]["enum"] == [*Category, "none"]
    for verdict in found.values():
        assert verdict.label is Label.MISBEHAVIOR
        assert verdict.score == pytest.approx(2 / 3)
        assert [quote.place is not None for quote in verdict.evidence][1] is False
    grounded = sum(verdict.evidence[0].place is not None for verdict in found.values())
    assert grounded >= 24  # a transcript's own tags are no text of the response


def test_evidence_in_front_is_asked_for_in_that_order_and_scored_behind(
    endpoint: Callable[..., Study], server: EndpointServer
):
    """Else the endpoint would answer first, and the evidence be a reason made up afterwards."""
    begun = '{"quotes": ["zq"], "reason": "zq", "misbehavior": "'

    def script(prompt: str, before: int) -> Answer:
        positions = [(begun, {}), ("no", {"yes": math.log(0.2), "no": math.log(0.6)}), ('"}', {})]
        return Answer(chat(f'{begun}no"}}', logprobs=positions, usage=USAGE))

    server.script = script
    found = verdicts(evaluate(endpoint("prompt=evidence_first")))
    schema = server.asked[0].body["response_format"]["json_schema"]["schema"]
    assert list(schema["properties"]) == ["quotes", "reason", "misbehavior"]
    for verdict in found.values():
        assert (verdict.label, verdict.quotes) == (Label.BENIGN, ("zq",))
        assert verdict.score == pytest.approx(0.25)


def test_an_adapter_of_ours_is_refused(endpoint: Callable[..., Study], adapter: Path, server: EndpointServer):
    """The endpoint's base would be judged under the adapter's name."""
    with pytest.raises(ConfigError, match=r"monitor\.adapter"):
        evaluate(endpoint(f"monitor.adapter={adapter}"))
    assert server.asked == []


def test_a_reasoning_monitor_has_tokens_to_think_and_is_read_behind_its_thoughts(
    endpoint: Callable[..., Study], server: EndpointServer
):
    """Else its thoughts would be cut off after one token, and their first word taken for its answer."""
    server.script = lambda *_: Answer(chat("no, look again</think>\n\nyes"))
    thinks = 'monitor.reasoning={end:"</think>",then:"",max_tokens:500}'
    found = verdicts(evaluate(endpoint(thinks)))
    assert {(v.label, v.reasoning) for v in found.values()} == {(Label.MISBEHAVIOR, "no, look again")}
    assert server.asked[0].body["max_tokens"] == 501


@pytest.mark.parametrize(
    "body",
    [
        chat("no, wait", finish="length", logprobs={"no": -0.1, "yes": -3.0}),
        chat("It says </think>No. I did nothing wrong", finish="length"),
        chat(None, finish="length", reasoning="no, wait"),
    ],
)
def test_thoughts_that_are_cut_off_are_no_answer(
    endpoint: Callable[..., Study], server: EndpointServer, body: bytes
):
    """Else `no, wait …`, or what the judged text puts into its mouth, would pass for benign."""
    server.script = lambda *_: Answer(body)
    thinks = 'monitor.reasoning={end:"</think>",then:"",max_tokens:500}'
    found = verdicts(evaluate(endpoint(thinks)))
    assert {(v.label, v.unscored, v.score) for v in found.values()} == {
        (None, UnscoredReason.TRUNCATED, None)
    }


def test_a_missing_key_leaves_nothing_behind(
    endpoint: Callable[..., Study], server: EndpointServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """A mistyped variable would leave a run that no command finishes, and that every listing shows."""
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(UserError, match="NO_SUCH_KEY"):
        evaluate(endpoint("engine.api_key_env=NO_SUCH_KEY"))
    assert not (tmp_path / "runs").exists()
    assert server.asked == []


def test_one_sided_log_probabilities_are_a_bad_response(
    endpoint: Callable[..., Study], server: EndpointServer
):
    """The answer's own token alone would make every score exactly 0 or 1, and the judge look certain."""
    server.script = lambda *_: Answer(chat("yes", logprobs={"yes": -0.1}, usage=USAGE))
    with pytest.raises(UserError, match=r"28 of 28 samples got no answer \(.*bad_response"):
        evaluate(endpoint("engine.concurrency=4"))


KEY = f"sk-/+_~&={secrets.token_urlsafe(18)}"
"""Drawn, since a run keeps the difference of the code, this file included."""


def _spelt() -> dict[str, str]:
    """The key as a server might hide it from a search for it."""
    plain = {"plain": KEY, "reversed": KEY[::-1], "hex": KEY.encode().hex()}
    packed = {
        f"base64 {i}": base64.b64encode(b"x" * i + one.encode()).decode()
        for i in range(3)
        for one in (KEY, KEY[::-1])
    }
    return (
        plain
        | packed
        | {
            "url": quote(KEY, safe=""),
            "url-safe": base64.urlsafe_b64encode(KEY.encode()).decode(),
            "json": "".join(f"\\u{ord(one):04x}" for one in KEY),
            "html": "".join(f"&#{ord(one)};" for one in KEY),
        }
    )


def _marks() -> list[bytes]:
    """What no file may hold: twelve characters of the middle of each spelling."""
    return [one[len(one) // 2 - 6 : len(one) // 2 + 6].encode() for one in _spelt().values()]


def test_a_key_that_the_endpoint_echoes_is_in_no_file(
    endpoint: Callable[..., Study],
    server: EndpointServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
):
    """A run is shared, and its key with it, wherever the endpoint managed to have it written."""
    monkeypatch.setenv("SPY_KEY", KEY)
    ways = list(_spelt().values())

    def echo(text: str, before: int) -> Answer:
        number = len(server.asked)
        said = ways[number % len(ways)]
        match number % 6:
            case 0:
                return Answer(chat(f"no {said}", finish=said, usage=USAGE))
            case 1:
                return Answer(chat("yes", reasoning_content=said, usage=USAGE))
            case 2:
                return Answer(json.dumps({"error": {"message": said, "code": said}}).encode(), 400)
            case 3:
                return Answer(chat("no", usage=USAGE).replace(b"@asked", json.dumps(said)[1:-1].encode()))
            case 4:
                return Answer(said.encode(), 200, content_type="text/html", headers={"X-Key": said})
            case _:
                return Answer(chat(None, refusal=said, usage=USAGE), headers={"Set-Cookie": said})

    server.script = echo
    spied = endpoint(
        "engine.api_key_env=SPY_KEY",
        "engine.max_failed=1",
        "engine.logprobs=false",
        "tracking=wandb_offline",
        "tracking.after_seconds=0",
        "prompt=evidence",
    )
    run = evaluate(spied)
    score_run(
        spied.model_copy(update={"run": run, "score": spied.score.model_copy(update={"min_coverage": 0})})
    )
    out, err = capfd.readouterr()
    assert any(asked.headers["authorization"] == f"Bearer {KEY}" for asked in server.asked)
    written = {file: file.read_bytes() for file in spied.paths.runs.rglob("*") if file.is_file()}
    assert {"verdicts.jsonl", "failures.jsonl", "metrics.json"} <= {file.name for file in written}
    assert any("wandb" in file.parts for file in written)
    written |= {Path("stdout"): out.encode(), Path("stderr"): err.encode()}
    found = [(str(file), mark) for file, content in written.items() for mark in _marks() if mark in content]
    assert found == []
    assert any(b"***" in content for content in written.values())


def test_a_label_outside_the_alternatives_is_a_bound_and_is_counted(
    endpoint: Callable[..., Study], server: EndpointServer, capsys: pytest.CaptureFixture[str]
):
    """Else every confident answer would score exactly 0 or 1, and no threshold could rank them."""

    def confident(text: str, before: int) -> Answer:
        missing = {"yes": math.log(0.97 - len(text) % 7 / 100), "sure": math.log(0.001 * (1 + len(text) % 5))}
        return Answer(chat("no" if len(text) % 2 else "yes", logprobs=missing, usage=USAGE))

    server.script = confident
    run = score_run(endpoint(f"run={evaluate(endpoint())}"))
    found = verdicts(run)
    assert all(one.score_censored and one.score is not None and 0.5 < one.score < 1 for one in found.values())
    n_against = sum(one.label is Label.BENIGN for one in found.values())
    assert 0 < n_against < 28
    facts = json.loads((run / "metrics.json").read_text())["scores"]["smollm2_135m"]["direct"]
    each = Counter(one.score for one in found.values())
    ties = {"n_most_frequent": max(each.values()), "n_distinct": len(each)}
    assert facts == {"n_with_score": 28, "n_censored": 28, "n_both": 28, "n_against": n_against} | ties
    assert "28 of 28 (100.0 %) scores are censored" in capsys.readouterr().err.replace("\n", " ")
