"""The judging server over a socket: what it answers, what it refuses, and what it survives."""

import http.client
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_verdicts import made_verdict

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.training import Position
from monitorbench.conversations.read import NoChat
from monitorbench.judging.judge import sample_of
from monitorbench.judging.serving.asked import AskedExchange, asked_in, json_in, sample_asked
from monitorbench.judging.serving.http import MOST_BYTES, HttpServer
from monitorbench.judging.serving.pair_server import JudgedByBoth, listening, open_both
from monitorbench.judging.serving.vllm_server import serve
from monitorbench.records import Label, Message, Role, Sample
from monitorbench.runs.directory import read_manifest

JSON = {"Content-Type": "application/json"}


def by_words(sample: Sample) -> JudgedByBoth:
    """A judge without a model: its score says how many words it was shown."""
    words = sample.response[-1].content.split()
    if words == ["fail"]:
        raise RuntimeError("the model failed")
    n = len(words)
    return JudgedByBoth(
        made_verdict(Label.BENIGN, n / 1000, prompt_tokens=n), made_verdict(Label.MISBEHAVIOR, 0.75)
    )


@contextmanager
def running(judges: Any = by_words, key: str | None = None) -> Iterator[int]:
    """The port of a server that answers."""
    with listening(judges, "127.0.0.1", 0, key) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.port
        finally:
            server.shutdown()
            thread.join()


def post(port: int, body: bytes | str, path: str = "/judge", **headers: str) -> tuple[int, dict[str, Any]]:
    """Status and answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", path, body, JSON | {k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def asks(response: Any, request: Any = "Why?") -> str:
    return json.dumps({"request": request, "response": response})


def test_a_verdict_has_the_model_and_the_probe():
    """If it failed: a guardrail would have nothing to decide by."""
    with running() as port:
        status, answer = post(port, asks("three words here"))
    assert status == 200
    assert answer.pop("seconds") >= 0
    assert answer == {
        "label": "benign",
        "unscored": None,
        "detail": "",
        "score": 0.003,
        "probe": {"label": "misbehavior", "score": 0.75},
        "prompt_tokens": 3,
    }


def test_requests_at_once_get_each_their_own_answer():
    """If it failed: one user's text would be flagged for another's."""
    with running() as port, ThreadPoolExecutor(8) as clients:
        numbers = list(range(1, 41))
        found = list(clients.map(lambda n: post(port, asks("w " * n))[1]["score"], numbers))
    assert found == [n / 1000 for n in numbers]


def test_messages_are_taken_as_they_are():
    """If it failed: an agent's tool calls would be judged as plain text, or not at all."""
    turns = [{"role": "assistant", "content": "one"}, {"role": "tool", "content": "two words"}]
    sample = sample_asked(asked_in(json.loads(asks(turns)), "refuse").exchange, None)
    assert [one.role for one in sample.response] == ["assistant", "tool"]
    assert sample.request == (Message(role=Role.USER, content="Why?"),)


@pytest.mark.parametrize(
    ("body", "path", "headers", "status", "said"),
    [
        ("{", "/judge", {}, 400, "body: no JSON"),
        (asks("a")[:-1] + ', "request": "b"}', "/judge", {}, 400, "'request' twice"),
        ('{"request": "a"}', "/judge", {}, 400, "response: missing"),
        (asks("a")[:-1] + ', "threshold": 1}', "/judge", {}, 400, "threshold"),
        (asks([]), "/judge", {}, 400, "response"),
        (asks("a"), "/v1/chat/completions", {}, 404, "expected POST /judge"),
        (asks("a"), "/judge", {"Content_Type": "text/plain"}, 415, "application/json"),
        (asks("a"), "/judge", {"Content_Length": str(MOST_BYTES + 1)}, 413, "at most"),
        (asks("a"), "/judge", {"Content_Length": "-1"}, 400, "no HTTP request"),
    ],
)
def test_what_is_no_request_is_refused_in_one_line(
    body: str, path: str, headers: dict[str, str], status: int, said: str, monkeypatch: pytest.MonkeyPatch
):
    """If it failed: a client's bug would be an empty verdict, or a body fill the memory."""
    monkeypatch.setattr("monitorbench.judging.serving.http.SECONDS_TO_LINGER", 0.1)
    with running() as port:
        got, answer = post(port, body, path, **headers)
        assert (got, list(answer)) == (status, ["error"])
        assert said in answer["error"]
        assert "\n" not in answer["error"]
        assert post(port, asks("a"))[0] == 200


def test_without_the_key_nothing_is_judged():
    """If it failed: whoever reaches the port would use the model, and learn what it flags."""
    with running(key="secret") as port:
        assert post(port, asks("a"))[0] == 401
        assert post(port, asks("a"), Authorization="Bearer wrong")[0] == 401
        assert post(port, asks("a"), Authorization="Bearer secret")[0] == 200
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/health")
        assert connection.getresponse().status == 200
        connection.close()


def test_one_failure_is_one_answer(caplog: pytest.LogCaptureFixture):
    """If it failed: one request would take the server from all others, or pass for a verdict."""
    with running() as port:
        status, answer = post(port, asks("fail"))
        assert (status, list(answer)) == (500, ["error"])
        assert "the model failed" not in answer["error"]
        assert post(port, asks("a"))[0] == 200
    assert "the model failed" in caplog.text


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: asks(text).encode("utf-8", "replace")))
def test_any_body_is_asked_or_refused(body: bytes):
    """If it failed: a body would end a connection without a word."""
    try:
        found: object = asked_in(json_in(body), "refuse")
    except NoChat as error:
        found = str(error)
    assert isinstance(found, AskedExchange) or "\n" not in str(found)


@pytest.mark.slow
def test_the_stage_serves_a_pair_and_leaves_no_address(
    asked: Any, heads: dict[Position, Path], tmp_path: Path, monkeypatch: Any, capsys: Any
):
    """If it failed: nobody would find the server, or a client ask one that is gone."""
    study = asked(f"monitor.head_beside={heads['last']}", f"paths.runs={tmp_path}")
    seen: dict[str, Any] = {}

    serve_forever = HttpServer.serve_forever

    def once(self: HttpServer) -> None:
        (file,) = tmp_path.glob("serve/*/server.json")
        seen.update(json.loads(file.read_text()), run=file.parent)
        thread = threading.Thread(target=serve_forever, args=(self,))
        thread.start()
        seen["answer"] = post(int(seen["url"].rpartition(":")[2]), asks("No."))
        self.shutdown()
        thread.join()
        raise KeyboardInterrupt

    monkeypatch.setattr(HttpServer, "serve_forever", once)
    run = serve(study)
    assert run == seen["run"]
    assert capsys.readouterr().out.splitlines() == [str(run)]
    assert not (run / "server.json").exists()
    assert read_manifest(run)["status"] == "done"
    assert (seen["key"], seen["adapter"]) == (None, None)
    status, answer = seen["answer"]
    assert status == 200
    with open_both(study.monitor, study.engine, study.prompt, study.paths.models) as judges:
        direct = judges(
            sample_of(
                (Message(role=Role.USER, content="Why?"),), (Message(role=Role.ASSISTANT, content="No."),)
            )
        )
    assert answer["score"] == pytest.approx(direct.verdict.score, abs=1e-6)
    assert answer["probe"]["score"] == pytest.approx(direct.probe.score, abs=1e-6)


def test_what_serves_no_probe_says_so(asked: Any, tmp_path: Path):
    """If it failed: the model would be served alone under the probe's name."""
    head = tmp_path / "head.safetensors"  # refused before it is read
    for setting in ("monitor.head", "monitor.head_beside"):
        with pytest.raises(ConfigError, match="engine=vllm: a probe reads hidden states; expected engine=tr"):
            serve(asked("engine=vllm", f"{setting}={head}"))
    with pytest.raises(ConfigError, match="expected no adapters"):
        serve(asked(f"monitor.head={head}", f"adapters=[{tmp_path}]"))
    with running() as port, pytest.raises(UserError, match=f"engine.port={port}: can't be had"):
        serve(asked(f"monitor.head={head}", f"engine.port={port}"))
