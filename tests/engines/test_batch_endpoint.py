"""What a user would lose here: a batch that is paid twice, answers of others, or a key in a log."""

import json
import logging
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from batch_server import BatchServer, batching

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.endpoint import OpenAiEngine
from monitorbench.config.reference import option
from monitorbench.engines.endpoint import limits as endpoint_limits
from monitorbench.engines.endpoint.batch import BatchEndpoint
from monitorbench.engines.endpoint.chat import CostLimit
from monitorbench.engines.protocol import ChatMessage, Decoding, Reply, Request

CONF = Path(__file__).parents[2] / "src" / "monitorbench" / "conf" / "engine"
KEY = "sk-secret-0123456789abcdef"
PRICES = {"prompt": 1.0, "cached_prompt": 0.1, "completion": 10.0}


@pytest.fixture(params=["openai", "anthropic"])
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchServer]:
    monkeypatch.setattr(endpoint_limits, "FIRST_BACKOFF_SECONDS", 0.002)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("TEST_KEY", KEY)
    with batching(lambda text: f"answer {text}") as running:
        yield running


def config(
    server: BatchServer, api: str, batch: dict[str, Any] | None = None, **changes: Any
) -> OpenAiEngine:
    given = option("engine", f"{api}_batch")
    given |= {"base_url": server.base_url, "model": "m", "api_key_env": "TEST_KEY", "max_retries": 2}
    given |= {"prices": None, "logprobs": False} | changes
    given["batch"] |= {"poll_seconds": 0.005} | (batch or {})
    return OpenAiEngine.model_validate(given)


def requests(*numbers: int) -> list[Request]:
    return [
        Request((ChatMessage("system", "judge"), ChatMessage("user", str(n))), key=f"{n:024x}")
        for n in numbers
    ]


def asked(endpoint: BatchEndpoint, *numbers: int) -> dict[int, Reply]:
    replies: dict[int, Reply] = {}
    try:
        for index, reply in endpoint.answers(requests(*numbers), Decoding(1)):
            assert numbers[index] not in replies
            replies[numbers[index]] = reply
    finally:
        endpoint.close()
    return replies


def test_each_answer_is_its_own_request_s(server: BatchServer, api: str, tmp_path: Path):
    """If it failed: answers that come back in any order would be booked on other samples."""
    replies = asked(BatchEndpoint(config(server, api, prices=PRICES), tmp_path), *range(20))
    assert {n: reply.text for n, reply in replies.items()} == {n: f"answer {n}" for n in range(20)}
    assert {reply.failure for reply in replies.values()} == {None}
    assert {reply.served_model for reply in replies.values()} == {"m"}
    assert sorted(server.keys) == sorted(request.key for request in requests(*range(20)))
    full = (1000 * 1.0 + 10.0) / 1e6
    if api == "anthropic":  # a tenth of its prompt was cached
        full = (900 * 1.0 + 100 * 0.1 + 10.0) / 1e6
    assert replies[0].cost == pytest.approx(full / 2), "at half the price"


def test_what_is_sent(server: BatchServer, api: str, tmp_path: Path):
    """If it failed: the judge would be asked something else than one by one."""
    asked(BatchEndpoint(config(server, api), tmp_path), 7)
    ((sent,),) = (batch["requests"] for batch in server.batches)
    user = {"role": "user", "content": "7"}
    if api == "anthropic":
        params = {"model": "m", "max_tokens": 1, "temperature": 0, "system": "judge", "messages": [user]}
        assert sent == {"custom_id": f"{7:024x}", "params": params}
        assert server.headers_seen[-1]["x-api-key"] == KEY
        assert server.headers_seen[-1]["anthropic-version"] == "2023-06-01"
        return
    turns = [{"role": "system", "content": "judge"}, user]
    body = {"model": "m", "max_completion_tokens": 1, "temperature": 0, "messages": turns}
    assert sent == {
        "custom_id": f"{7:024x}",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": body,
    }
    assert server.headers_seen[-1]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("when", ["waiting", "collecting", "before_its_id"])
def test_a_killed_process_resumes_the_same_batch(server: BatchServer, api: str, tmp_path: Path, when: str):
    """If it failed: every restart of a preempted job would pay for the whole batch again."""
    first = BatchEndpoint(config(server, api), tmp_path)
    if when == "collecting":
        answers = first.answers(requests(*range(5)), Decoding(1))
        next(answers)  # the process ends here: no generator is closed
        first.close()
        left = (1, 2, 3, 4)
    else:
        server.trouble = lambda method, *_: "broken" if method == "GET" else ""
        with pytest.raises(UserError, match="the same command goes on"):
            asked(first, *range(5))
        server.trouble = lambda *_: ""
        left = (0, 1, 2, 3, 4)
    if when == "before_its_id":
        state = json.loads((tmp_path / "batches.json").read_text())
        state["batches"][0] |= {"id": None, "state": "submitting"}
        (tmp_path / "batches.json").write_text(json.dumps(state))
    replies = asked(BatchEndpoint(config(server, api), tmp_path), *left)
    assert {n: reply.text for n, reply in replies.items()} == {n: f"answer {n}" for n in left}
    assert len(server.batches) == 1


def test_a_process_that_was_really_killed_leaves_its_batch(server: BatchServer, api: str, tmp_path: Path):
    """If it failed: what is written down would be written too late, or not whole."""
    server.polls_until_done = 10**9
    program = "\n".join(
        [
            "import sys",
            "from pathlib import Path",
            "from monitorbench.config.endpoint import OpenAiEngine",
            "from monitorbench.engines.endpoint.batch import BatchEndpoint",
            "from monitorbench.engines.protocol import ChatMessage, Decoding, Request",
            "config = OpenAiEngine.model_validate_json(sys.argv[1])",
            "asked = [Request((ChatMessage('user', str(n)),), key=f'{n:024x}') for n in range(5)]",
            "list(BatchEndpoint(config, Path(sys.argv[2])).answers(asked, Decoding(1)))",
        ]
    )
    given = config(server, api).model_dump_json()
    process = subprocess.Popen([sys.executable, "-c", program, given, str(tmp_path)])
    try:
        while not any(batch["polls"] for batch in server.batches):
            assert process.poll() is None
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    server.polls_until_done = 0
    assert len(asked(BatchEndpoint(config(server, api), tmp_path), *range(5))) == 5
    assert len(server.batches) == 1


@pytest.mark.parametrize("trouble", ["cut_after", "broken_after", "no_json"])
def test_a_lost_answer_to_a_submission_is_no_second_batch(
    server: BatchServer, api: str, tmp_path: Path, trouble: str
):
    """If it failed: a time-out at the worst moment would cost as much again."""
    server.trouble = lambda method, path, before: (
        trouble if method == "POST" and path.endswith("batches") and before == 0 else ""
    )
    assert len(asked(BatchEndpoint(config(server, api), tmp_path), *range(5))) == 5
    assert len(server.batches) == 1


@pytest.mark.parametrize("trouble", ["cut", "broken", "busy"])
def test_a_submission_that_did_not_arrive_is_made_again(
    server: BatchServer, api: str, tmp_path: Path, trouble: str
):
    """If it failed: a busy minute would end an evening's run."""
    server.trouble = lambda method, path, before: trouble if method == "POST" and before == 0 else ""
    assert len(asked(BatchEndpoint(config(server, api), tmp_path), *range(5))) == 5
    assert len(server.batches) == 1


def test_somebody_else_s_batch_is_not_taken(server: BatchServer, tmp_path: Path):
    """If it failed: a colleague's batch of the same size would be waited for, and ours never be handed in."""
    theirs = [{"custom_id": f"x{n}", "params": {"messages": [{"content": "x"}]}} for n in range(3)]
    server.add(theirs, {})
    lost = {
        "nonce": "n",
        "keys": [request.key for request in requests(0, 1, 2)],
        "submitted": server.batches[0]["at"],
        "most_cost": 0,
        "id": None,
        "state": "submitting",
    }
    (tmp_path / "batches.json").write_text(json.dumps({"batches": [lost]}))
    replies = asked(BatchEndpoint(config(server, "anthropic"), tmp_path), 0, 1, 2)
    assert {n: reply.text for n, reply in replies.items()} == {n: f"answer {n}" for n in range(3)}
    assert len(server.batches) == 2


def test_partial_failures_come_last_and_are_handed_in_again(server: BatchServer, api: str, tmp_path: Path):
    """If it failed: an expired half would be lost, or cost the answered half again."""
    kinds = {"0": "expired", "1": "canceled", "2": "errored", "3": "refused"}
    server.says = lambda text: kinds.get(text, f"answer {text}")
    replies = asked(BatchEndpoint(config(server, api), tmp_path), *range(6))
    assert list(replies)[:2] == [4, 5], "failures come last"
    assert [replies[n].failure for n in range(6)] == [
        *("timed_out", "http_error", "http_error", "refused"),
        *(None, None),
    ]
    assert "HTTP 400" in replies[2].detail
    server.says = lambda text: f"answer {text}"
    again = asked(BatchEndpoint(config(server, api), tmp_path), 0, 1)
    assert {n: reply.text for n, reply in again.items()} == {0: "answer 0", 1: "answer 1"}
    assert [len(batch["requests"]) for batch in server.batches] == [6, 2]


def test_lines_may_be_torn_twice_there_or_missing(server: BatchServer, api: str, tmp_path: Path):
    """If it failed: one bad line would lose the whole batch, or become a label."""

    def spoil(lines: list[bytes]) -> list[bytes]:
        by = {json.loads(line)["custom_id"]: line for line in lines}
        key = {n: f"{n:024x}" for n in range(6)}
        other = by[key[1]].replace(b"answer 1", b"answer 9")
        stranger = by[key[0]].replace(key[0].encode(), b"e" * 24)
        torn = by[key[3]][: len(by[key[3]]) // 2]
        long = by[key[4]].replace(b"answer 4", b"a" * 3_000_000)
        mixed = [
            by[key[0]],
            by[key[0]],
            by[key[1]],
            other,
            torn,
            long,
            by[key[5]],
            stranger,
            b"[]",
            b"7",
            b"",
        ]
        random.Random(3).shuffle(mixed)
        return mixed

    server.spoil = spoil
    replies = asked(BatchEndpoint(config(server, api), tmp_path), *range(6))
    assert {n: (reply.text, reply.failure) for n, reply in replies.items()} == {
        0: ("answer 0", None),
        1: ("", "bad_response"),
        2: ("", "bad_response"),
        3: ("", "bad_response"),
        4: ("", "bad_response"),
        5: ("answer 5", None),
    }


def test_a_download_that_breaks_off_is_fetched_again(server: BatchServer, api: str, tmp_path: Path):
    """If it failed: half of the answers would count as missing, and be paid again."""
    server.trouble = lambda method, path, before: (
        "half" if path.endswith(("content", "results")) and before == 0 else ""
    )
    replies = asked(BatchEndpoint(config(server, api), tmp_path), *range(20))
    assert {reply.failure for reply in replies.values()} == {None}
    assert len(server.batches) == 1


@pytest.mark.parametrize("limit", [{"most_requests": 4}, {"most_megabytes": 0.001}])
def test_no_batch_is_beyond_its_limits(server: BatchServer, api: str, tmp_path: Path, limit: dict[str, Any]):
    """If it failed: a large study would be refused as a whole."""
    replies = asked(BatchEndpoint(config(server, api, limit), tmp_path), *range(10))
    assert len(replies) == 10
    sizes = [len(batch["requests"]) for batch in server.batches]
    assert (sum(sizes), len(sizes) > 1) == (10, True)
    if "most_megabytes" in limit:
        form = 500 if api == "openai" else 0  # what is around an uploaded file
        assert server.largest_body <= 1000 + form
    if "most_requests" in limit:
        assert sizes == [4, 4, 2]
    assert len(server.keys) == len(set(server.keys))


def test_the_providers_limits_are_known(server: BatchServer, tmp_path: Path):
    """If it failed: 60,000 samples would be handed in as one batch."""
    openai = BatchEndpoint(config(server, "openai"), tmp_path)._api
    anthropic = BatchEndpoint(config(server, "anthropic"), tmp_path)._api
    assert (openai.most_requests, openai.most_megabytes) == (50_000, 200)
    assert (anthropic.most_requests, anthropic.most_megabytes) == (100_000, 256)


def test_no_batch_is_handed_in_that_could_cost_more(server: BatchServer, api: str, tmp_path: Path):
    """If it failed: a batch can't be stopped, so the cap would be passed by all of it."""
    # One request is reserved at most (1 + 6 // 3) * 1 + 10 = 13 (system and user have 6 characters), at half.
    settings = {"prices": PRICES, "max_cost": 3.5 * 6.5e-6}
    endpoint = BatchEndpoint(config(server, api, **settings), tmp_path)
    with pytest.raises(CostLimit, match=r"7 requests could cost more .* raise engine.max_cost"):
        asked(endpoint, *range(10))
    assert [len(batch["requests"]) for batch in server.batches] == [3]
    more = config(server, api, prices=PRICES, max_cost=1)
    assert len(asked(BatchEndpoint(more, tmp_path, spent=0.01), *range(3, 10))) == 7
    with pytest.raises(CostLimit):
        asked(BatchEndpoint(more, tmp_path, spent=1.0), 11)


@pytest.mark.parametrize(
    ("status", "match"), [(400, "HTTP 400.*bad field"), (401, "HTTP 401: the key in TEST_KEY")]
)
def test_a_refused_batch_says_why_without_the_key(
    server: BatchServer, api: str, tmp_path: Path, status: int, match: str, caplog: pytest.LogCaptureFixture
):
    """If it failed: the reason would be a traceback, or the key be in a log."""
    server.refuses = (status, json.dumps({"error": {"message": f"bad field, key {KEY}"}}))
    with caplog.at_level(logging.DEBUG), pytest.raises(UserError, match=match) as caught:
        asked(BatchEndpoint(config(server, api), tmp_path), 1)
    assert KEY not in str(caught.value) + caplog.text + (tmp_path / "batches.json").read_text()
    server.refuses = None
    assert len(asked(BatchEndpoint(config(server, api), tmp_path), 1)) == 1, "nothing stays behind"


def test_a_key_that_is_echoed_is_in_no_reply(server: BatchServer, api: str, tmp_path: Path):
    """If it failed: it would be published with the verdicts."""
    server.says = lambda _: f"the key is {KEY}"
    (reply,) = asked(BatchEndpoint(config(server, api), tmp_path), 1).values()
    assert reply.text == "the key is ***"


def test_a_batch_that_fails_as_a_whole_says_why(server: BatchServer, tmp_path: Path):
    """If it failed: the command would wait for it for ever, or hand the same in again and again."""
    server.fails = "line 3 is no JSON"
    with pytest.raises(UserError, match="batch batch-0 failed: line 3 is no JSON"):
        asked(BatchEndpoint(config(server, "openai"), tmp_path), *range(3))
    server.fails = ""
    assert len(asked(BatchEndpoint(config(server, "openai"), tmp_path), *range(3))) == 3


def test_results_elsewhere_are_not_fetched_with_the_key(server: BatchServer, tmp_path: Path):
    """If it failed: whoever can write a URL into an answer would be sent the key."""
    endpoint = BatchEndpoint(config(server, "anthropic"), tmp_path)
    with pytest.raises(UserError, match="elsewhere"):
        endpoint._wire.lines("http://localhost.example/results", 100, 1)


def test_what_can_t_work_is_refused(server: BatchServer, tmp_path: Path):
    """If it failed: answers could not be told apart, or lack the log-probabilities."""
    with pytest.raises(ConfigError, match="keys of their own"):
        list(BatchEndpoint(config(server, "openai"), tmp_path).answers([Request()], Decoding(1)))
    with pytest.raises(ValueError, match="expected logprobs=false"):
        config(server, "anthropic", logprobs=True)
    with pytest.raises(ValueError, match="by_token_ids=false"):
        config(server, "openai", by_token_ids=True)
    (tmp_path / "batches.json").write_text("{")
    with pytest.raises(UserError, match="paid for"):
        BatchEndpoint(config(server, "openai"), tmp_path)
