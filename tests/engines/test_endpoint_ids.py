"""Completions by token ids: what is sent, and that nothing but the asked-for ids becomes a verdict."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from endpoint_server import Answer, EndpointServer, serving

from monitorbench.config.endpoint import OpenAiEngine
from monitorbench.config.reference import option
from monitorbench.engines.endpoint.chat import Endpoint
from monitorbench.engines.protocol import Decoding, Reply, Request

CONF = Path(__file__).parents[2] / "src" / "monitorbench" / "conf" / "engine" / "openai.yaml"
DECODING = Decoding(1, (2,), (7, 8))
SCORES = {"token_id:7": -0.5, "token_id:8": -1.5, "token_id:4": -0.1}


@pytest.fixture
def server() -> Iterator[EndpointServer]:
    with serving(lambda *_: Answer(completion())) as running:
        yield running


def completion(**changes: Any) -> bytes:
    choice = {
        "index": 0,
        "text": " yes",
        "finish_reason": "length",
        "stop_reason": None,
        "token_ids": [7],
        "logprobs": {"top_logprobs": [SCORES], "tokens": ["token_id:7"], "token_logprobs": [-0.5]},
    } | changes
    return json.dumps({"object": "text_completion", "model": "@asked", "choices": [choice]}).encode()


def config(server: EndpointServer, **changes: Any) -> OpenAiEngine:
    given = option("engine", "openai") | {
        "base_url": server.base_url,
        "model": "m",
        "max_retries": 0,
        "by_token_ids": True,
    }
    return OpenAiEngine.model_validate(given | changes)


def asked(server: EndpointServer, decoding: Decoding = DECODING) -> Reply:
    endpoint = Endpoint(config(server), tokenizer=object())
    ((_, reply),) = endpoint.answers([Request(token_ids=(5, 6))], decoding)
    return reply


def test_the_ids_are_sent_as_they_are(server: EndpointServer):
    """If it failed: the server would render a prompt of its own, and judge as another monitor."""
    reply = asked(server)
    body = dict(server.asked[0].body)
    assert body == {
        "model": "m",
        "prompt": [5, 6],
        "max_tokens": 1,
        "temperature": 0,
        "stop_token_ids": [2],
        "skip_special_tokens": False,
        "return_token_ids": True,
        "logprobs": 1,
        "logprob_token_ids": [7, 8],
        "return_tokens_as_token_ids": True,
    }
    assert (reply.token_ids, reply.logprobs, reply.failure) == ((7,), {7: -0.5, 8: -1.5}, None)
    assert (reply.prompt_tokens, reply.completion_tokens, reply.served_model) == (2, 1, "m")


def test_the_stop_token_is_cut_off_as_in_process(server: EndpointServer):
    """If it failed: an answer would not equal its label's token, and be unscored."""
    server.script = lambda *_: Answer(completion(token_ids=[7, 2], finish_reason="stop", stop_reason=2))
    reply = asked(server, Decoding(4, (2,), (7, 8)))
    assert (reply.token_ids, reply.stop_token_id) == ((7,), 2)
    server.script = lambda *_: Answer(completion(token_ids=[7, 0], finish_reason="stop"))
    reply = asked(server, Decoding(4, (2,), (7, 8)))
    assert (reply.token_ids, reply.stop_token_id) == ((7,), 0), "the model's own end"


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"choices": []}',
        completion(token_ids=None),
        completion(token_ids=["7"]),
        completion(logprobs=None),
        completion(logprobs={"top_logprobs": [{"token_id:7": -0.5}]}),
        completion(logprobs={"top_logprobs": [SCORES | {"token_id:8": 3.0}]}),
        completion(finish_reason="abort"),
        completion(finish_reason=None),
        completion().replace(b"@asked", b"another"),
    ],
)
def test_what_is_no_answer_is_no_verdict(server: EndpointServer, body: bytes):
    """If it failed: a server that ignores the ids, or leaves a label's score out, would count as benign."""
    server.script = lambda *_: Answer(body)
    if b"abort" in body:
        server.script = lambda _, before: Answer(body if before == 0 else completion())
        endpoint = Endpoint(config(server, max_retries=1), tokenizer=object())
        ((_, reply),) = endpoint.answers([Request(token_ids=(5, 6))], DECODING)
        assert (reply.failure, len(server.asked)) == (None, 2), "a server that ends is asked again"
        return
    reply = asked(server)
    assert (reply.failure, reply.logprobs if reply.failure is None else {}) == ("bad_response", {})


@pytest.mark.parametrize("changes", [{"temperature": None}, {"extra_body": {"seed": 1}}])
def test_it_decodes_as_in_process(server: EndpointServer, changes: dict[str, Any]):
    """If it failed: verdicts would differ from those in process, under the same key."""
    with pytest.raises(ValueError, match="by_token_ids decodes as in process"):
        config(server, **changes)
