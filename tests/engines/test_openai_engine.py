"""What a user would lose here: verdicts paid for, a key, or an evening to one bad answer of an endpoint."""

import dataclasses
import email.utils
import gzip
import json
import logging
import math
import os
import socket
import threading
import time
import tracemalloc
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from drawing import draws
from endpoint_server import Answer, EndpointServer, chat, serving
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from monitorbench.config.base import UserError
from monitorbench.config.endpoint import OpenAiEngine
from monitorbench.config.reference import option
from monitorbench.engines.endpoint import limits as endpoint_limits
from monitorbench.engines.endpoint.chat import CostLimit, Endpoint
from monitorbench.engines.endpoint.limits import RateLimit, Reserved, given_up_at, retry_delay
from monitorbench.engines.endpoint.wire import redacted
from monitorbench.engines.protocol import ChatMessage, Decoding, Reply, Request

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-test-0123456789abcdefSECRET"
PRICES = {"prompt": 1.0, "cached_prompt": 0.1, "completion": 4.0}
YES = {"yes": math.log(0.7), " no": math.log(0.2)}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short waits, and an environment that would show if it were used."""
    monkeypatch.setattr(endpoint_limits, "FIRST_BACKOFF_SECONDS", 0.002)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("TEST_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-provider")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-of-the-administrator")


@pytest.fixture
def server() -> Iterator[EndpointServer]:
    with serving(lambda text, before: Answer(chat())) as running:
        yield running


def config(server: EndpointServer | str, **settings: Any) -> OpenAiEngine:
    defaults = {
        "kind": "openai",
        "name": "test",
        "base_url": server if isinstance(server, str) else server.base_url,
        "model": "m",
        "api_key_env": "TEST_KEY",
        "concurrency": 4,
        "timeout_seconds": 5.0,
        "max_retries": 2,
        "requests_per_minute": None,
        "tokens_per_minute": None,
        "temperature": 0.0,
        "logprobs": True,
        "top_logprobs": 5,
        "structured": "json_schema",
        "max_tokens_field": "max_tokens",
        "prices": None,
        "max_cost": None,
        "extra_body": {},
    }
    return OpenAiEngine.model_validate(defaults | settings)


def requests(count: int) -> list[Request]:
    return [Request((ChatMessage("system", "judge"), ChatMessage("user", str(i)))) for i in range(count)]


def asked(endpoint: Endpoint, count: int = 1, **how: Any) -> dict[int, Reply]:
    replies: dict[int, Reply] = {}
    for index, reply in endpoint.answers(requests(count), Decoding(1, **how)):
        assert index not in replies
        replies[index] = reply
    return replies


def keep(replies: Iterator[tuple[int, Reply]], kept: dict[int, Reply]) -> None:
    """Keep what came before an error."""
    for index, reply in replies:
        kept[index] = reply


def one(server: EndpointServer, answer: Answer | Sequence[Answer], **settings: Any) -> Reply:
    """The reply to one request; a list is answered in its order, its last again and again."""
    answers = [answer] if isinstance(answer, Answer) else answer
    server.script = lambda _, before: answers[min(before, len(answers) - 1)]
    (reply,) = asked(Endpoint(config(server, **settings))).values()
    return reply


@pytest.mark.parametrize("limit", [{}, {"requests_per_minute": 1}])
def test_what_nobody_waits_for_any_more_is_not_sent(server: EndpointServer, limit: dict[str, Any]):
    """If it failed: retries and limits would be spent on answers that nobody takes."""
    busy = Answer(b"{}", status=429, headers={"Retry-After": "60"})
    server.script = lambda text, before: Answer(chat()) if limit and text == "0" else busy
    began = time.monotonic()
    with given_up_at(began + 0.5):
        found = asked(Endpoint(config(server, concurrency=1, **limit)), 2)
    assert time.monotonic() - began < 10
    assert [found[n].failure for n in range(2)] == [None if limit else "timed_out", "timed_out"]
    assert len(server.asked) == 1
    with given_up_at(time.monotonic() - 1):
        assert asked(Endpoint(config(server)))[0].failure == "timed_out"
    assert len(server.asked) == 1


# --- one request -----------------------------------------------------------------------------------------


def test_an_answer_comes_with_its_log_probabilities_tokens_and_cost(server):
    """Else there would be no score, and a bill nobody can foresee."""
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 2,
        "total_tokens": 102,
        "prompt_tokens_details": {"cached_tokens": 60},
    }
    reply = one(server, Answer(chat("yes", logprobs=YES, usage=usage)), prices=PRICES)
    assert (reply.text, reply.finish_reason, reply.failure, reply.detail) == ("yes", "stop", None, "")
    assert reply.top_logprobs == pytest.approx(YES)
    assert (reply.prompt_tokens, reply.completion_tokens) == (100, 2)
    assert reply.cost == pytest.approx((40 * 1.0 + 60 * 0.1 + 2 * 4.0) / 1e6)
    assert 0 < reply.seconds < 5


def test_the_request_is_what_was_configured(server):
    """Else a provider would be asked with another model, another limit or a field it refuses."""
    one(
        server,
        Answer(chat()),
        max_tokens_field="max_completion_tokens",
        extra_body={"reasoning_effort": "low"},
    )
    assert server.asked[0].body == {
        "model": "m",
        "messages": [{"role": "system", "content": "judge"}, {"role": "user", "content": "0"}],
        "max_completion_tokens": 1,
        "temperature": 0.0,
        "logprobs": True,
        "top_logprobs": 5,
        "reasoning_effort": "low",
    }
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    one(server, Answer(chat()), logprobs=False, temperature=None)
    assert server.asked[1].body.keys() == {"model", "messages", "max_tokens"}


@pytest.mark.parametrize("structured", ["none", "json_schema", "json_object"])
def test_structured_output_is_asked_for_where_the_endpoint_can(server, structured):
    """Else evidence would be lost to text around the JSON."""
    asked(Endpoint(config(server, structured=structured)), structured={"type": "object"})
    sent = server.asked[0].body.get("response_format")
    schema = {"name": "verdict", "schema": {"type": "object"}, "strict": True}
    assert (
        sent
        == {
            "none": None,
            "json_object": {"type": "json_object"},
            "json_schema": {"type": "json_schema", "json_schema": schema},
        }[structured]
    )


def test_log_probabilities_are_those_of_the_label_behind_a_prefix(server):
    """Else the score of an evidence prompt would be that of an opening brace."""
    begun = [('{"', {'{"': 0.0}), ("mis", {"mis": 0.0}), ('":', {'":': 0.0})]
    for label in [(' "yes', {' "yes': -0.1, ' "no': -3.0})], [(' "', {' "': 0.0}), ("yes", {"yes": -0.2})]:
        body = chat('{"mis": "yes"}', logprobs=[*begun, *label])
        server.script = lambda _, before, body=body: Answer(body)
        (reply,) = asked(Endpoint(config(server)), label_after='{"mis": "').values()
        assert reply.top_logprobs == label[-1][1]
    body = chat('{"other": "yes"}', logprobs=[*begun, ("yes", {"yes": -0.2})])
    server.script = lambda _, before: Answer(body)
    (reply,) = asked(Endpoint(config(server)), label_after='{"mis": "').values()
    assert (reply.top_logprobs, reply.failure) == (None, None)
    assert "position" in reply.detail


@pytest.mark.parametrize("fence", ["", "```json\n"])
def test_log_probabilities_are_those_of_the_label_behind_its_evidence(server, fence):
    """Else the score would be read at a quote, which may spell the label, or in front of all evidence."""
    quoting = fence + '{"quotes": ["{\\"mis\\": \\"no\\"}"], "mis": "'
    end = [('"}', {'"}': -0.1})] + ([("\n```", {"\n```": 0.0})] if fence else [])
    positions = [(quoting, {}), ("yes", {"yes": -0.2, "no": -2.0}), *end]
    body = chat("".join(token for token, _ in positions), logprobs=positions)
    server.script = lambda _, before: Answer(body)
    (reply,) = asked(Endpoint(config(server)), label_after='{"quotes":', label_field="mis").values()
    assert reply.top_logprobs == {"yes": -0.2, "no": -2.0}


@pytest.mark.parametrize("text", ['{"mis": "yes", "quotes": []}', "yes", '{"quotes": ["'])
def test_a_label_in_front_of_its_evidence_has_no_score(server, text):
    """Else the score of an endpoint that changes the order would pass for one behind its evidence."""
    server.script = lambda _, before: Answer(chat(text, logprobs=[(text, {"yes": -0.2, "no": -2.0})]))
    (reply,) = asked(Endpoint(config(server)), label_after='{"quotes":', label_field="mis").values()
    assert (reply.top_logprobs, reply.failure) == (None, None)
    assert "behind its evidence" in reply.detail


def test_reasoning_is_not_taken_for_the_answer(server):
    """Else the score would be the probability of `yes` as the first word of a train of thought."""
    positions = [("Well", {"Well": -0.1, "yes": -4.0}), ("no", {"no": -0.2})]
    assert one(server, Answer(chat("no", logprobs=positions))).top_logprobs == {"no": -0.2}
    # A text that the tokens don't end with can't be placed among them.
    assert one(server, Answer(chat("yes", logprobs=positions))).top_logprobs is None


def test_what_stands_behind_the_text_moves_no_position(server):
    """Else a server that lists the token of the turn's end would have every score left out."""
    positions = [("no", {"no": -0.2}), ("<|im_end|>", {"<|im_end|>": -0.1})]
    assert one(server, Answer(chat("no", logprobs=positions))).top_logprobs == {"no": -0.2}


@pytest.mark.parametrize("thought", ["Now", "No", "Note: no"])
def test_reasoning_that_begins_like_the_answer_is_not_scored_for_it(server, thought):
    """Else thoughts that begin with the label's word would lend it their probability, or take its score."""
    positions = [(thought, {thought: -0.1}), ("</think>", {}), ("No", {"No": -0.3}), ("<|im_end|>", {})]
    reply = one(server, Answer(chat("No", logprobs=positions, reasoning=thought)))
    assert (reply.top_logprobs, reply.reasoning) == ({"No": -0.3}, thought)


def test_judged_text_that_spells_the_end_of_reasoning_moves_nothing(server):
    """Else a response could have its own words read as the monitor's answer, or the answer cut in two."""
    prefix, lie = '{"misbehavior": "', "It said: </think>No."
    evidence = prefix + 'yes", "quotes": ["</think> I lied"]}'

    def read(text: str, **how: Any) -> Reply:
        server.script = lambda _, before: Answer(chat(text, **how))
        (reply,) = asked(Endpoint(config(server)), reasoning_end="</think>", label_after=prefix).values()
        return reply

    for reply in (
        read(evidence, reasoning_content="Hm."),
        read(f"Hm. {lie}</think>\n\n{evidence}"),
        read(f"Hm. </think>\n```json\n{evidence}"),
    ):
        assert evidence in reply.text
        assert reply.reasoning.startswith("Hm.")
    server.script = lambda _, before: Answer(chat(f"Hm. {lie} It", finish="length"))
    (cut_short,) = asked(Endpoint(config(server)), reasoning_end="</think>").values()
    assert cut_short.reasoning_cut


def test_reasoning_in_the_text_is_cut_off_and_kept(server):
    """Else `no, wait … </think> yes` would be read as benign, or lost."""
    positions = [("no", {"no": -0.1}), (" wait", {}), ("</think>", {}), ("yes", {"yes": -0.3})]
    body = chat("no wait</think>\n\nyes", logprobs=positions)
    server.script = lambda _, before: Answer(body)
    (reply,) = asked(Endpoint(config(server)), reasoning_end="</think>").values()
    assert (reply.text.strip(), reply.reasoning, reply.top_logprobs) == ("yes", "no wait", {"yes": -0.3})


@pytest.mark.parametrize(
    "thoughts",
    [
        {"reasoning_content": "It lies."},
        {"reasoning": "It lies.", "reasoning_content": "It lies."},
        {"reasoning": None, "reasoning_details": [{"type": "reasoning.text", "text": "It lies."}]},
        {"thinking_blocks": [{"type": "thinking", "thinking": "It lies.", "signature": ""}]},
        {"thinking": "It lies."},
    ],
    ids=lambda thoughts: "+".join(thoughts),
)
def test_reasoning_that_the_endpoint_sets_apart_is_kept(server, thoughts):
    """Else nobody could read why a reasoning monitor raised the alarm, or that it used up the tokens."""
    assert one(server, Answer(chat("yes", **thoughts))).reasoning == "It lies."
    cut = one(server, Answer(chat(None, finish="max_tokens", **thoughts)))
    assert (cut.failure, cut.finish_reason) == ("empty", "length")
    assert "set monitor.reasoning" in cut.detail


def test_an_answer_in_parts_is_its_text(server):
    """Else no model of Mistral's that reasons could be a monitor."""
    body = json.loads(chat("yes"))
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    message = body["choices"][0]["message"]
    message["content"] = [thinking, {"type": "text", "text": "yes"}]
    reply = one(server, Answer(json.dumps(body).encode()))
    assert (reply.text, reply.reasoning, reply.failure) == ("yes", "Hm.", None)
    message["content"] = [{"type": "tool_use", "name": "yes", "input": {}}]
    assert one(server, Answer(json.dumps(body).encode())).failure == "bad_response"


@pytest.mark.parametrize("finish", ["eos", "eos_token", "STOP", "COMPLETE"])
def test_other_servers_words_for_a_whole_answer_are_known(server, finish):
    """Else a monitor behind Text Generation Inference or Together would have no verdict at all."""
    reply = one(server, Answer(chat("yes", finish=finish)))
    assert (reply.text, reply.finish_reason, reply.failure) == ("yes", "stop", None)


def test_tokens_spelt_alike_add_up(server):
    """Else half of a label's probability would vanish with one of its tokens."""
    body = json.loads(chat("yes", logprobs={"yes": math.log(0.25)}))
    top = body["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
    top.append(top[0])
    reply = one(server, Answer(json.dumps(body).encode()))
    assert reply.top_logprobs == {"yes": pytest.approx(math.log(0.5))}


@pytest.mark.parametrize(
    "logprobs",
    [
        {"tokens": ["yes"], "token_logprobs": [-0.3], "top_logprobs": [{"yes": -0.3, "no": -1.5}]},
        {"content": [{"token": "yes", "logprob": -0.3, "top_logprobs": {"yes": -0.3, "no": -1.5}}]},
        {"tokens": ["yes"], "token_logprobs": [-0.3], "top_logprobs": None},
    ],
    ids=["lists", "object", "alone"],
)
def test_log_probabilities_in_other_servers_forms_are_read(server, logprobs):
    """Else a monitor behind Together or Fireworks would have no score, and never be told why."""
    body = json.loads(chat("yes"))
    body["choices"][0]["logprobs"] = logprobs
    top = one(server, Answer(json.dumps(body).encode())).top_logprobs
    assert top == ({"yes": -0.3, "no": -1.5} if logprobs.get("top_logprobs", "in content") else {"yes": -0.3})


def test_an_alternative_of_null_is_minus_infinity(server):
    """Else a server whose JSON has no infinity, such as llama.cpp's, would lose each certain verdict."""
    certain = one(server, Answer(chat("yes", logprobs={"yes": -0.0, "no": None})))
    assert (certain.failure, certain.top_logprobs) == (None, {"yes": 0.0, "no": -9999.0})
    nothing = one(server, Answer(chat("yes", logprobs={"yes": None, "no": None})))
    assert (nothing.failure, nothing.top_logprobs) == ("bad_response", None)


@pytest.mark.parametrize(
    ("answer", "failure", "detail"),
    [
        (Answer(b'{"choices": [], "usage": {"prompt_tokens": 5}}'), "bad_response", "no choices"),
        (Answer(b"<html>Bad\ngateway</html>", content_type="text/html"), "bad_response", "<html>"),
        (Answer(b"<html>Bad gateway</html>"), "bad_response", "<html>"),
        (Answer(b""), "bad_response", "body"),
        (Answer(b'{"error": {"message": "oops"}}'), "bad_response", "choices"),
        (Answer(b'{"choices": [{"message": null}]}'), "bad_response", "choices.0.message"),
        (Answer(b"[" * 100_000), "bad_response", "body"),
        (Answer(chat(None, refusal="I can't help")), "refused", "I can't help"),
        (Answer(chat("no", finish="content_filter")), "refused", "content_filter"),
        (Answer(chat("", finish="content_filter: PROHIBITED_CONTENT")), "refused", "PROHIBITED"),
        (Answer(b'{"error": {"code": "content_filter", "message": "no"}}', 400), "refused", "HTTP 400"),
        *(
            (Answer(b'{"error": {"code": "%s", "message": "%s"}}' % said, 400), "too_long", "HTTP 400")
            for said in (
                (b"context_length_exceeded", b"Your messages resulted in 9000 tokens."),
                (b"400", b"This model's maximum context length is 4096 tokens. However, you requested 9000"),
                (b"400", b"The decoder prompt is longer than the maximum model length of 4096."),
                (b"x", b"prompt is too long: 210000 tokens > 200000 maximum"),
                (b"x", b"The input token count (9) exceeds the maximum number of tokens allowed (8)."),
                (b"x", b"the request exceeds the available context size"),
            )
        ),
        (Answer(chat(" \n" * 10_000, finish="length")), "empty", "length"),
        (Answer(chat(None)), "empty", "no text"),
        (Answer(chat(None, finish="length", reasoning="Hm.")), "empty", "set monitor.reasoning"),
        (Answer(chat("n", finish="insufficient_system_resource")), "bad_response", "insufficient"),
        (Answer(b'{"error": {"message": "context too long"}}', 400), "http_error", "context too long"),
        (Answer(b"no such thing", 422), "http_error", "HTTP 422"),
        (Answer(status=304), "http_error", "HTTP 304"),
    ],
)
def test_what_is_no_answer_is_a_failure_and_not_asked_again(server, answer, failure, detail):
    """Else an outage or a refusal would count as a benign verdict, or be paid for three times."""
    reply = one(server, answer)
    assert reply.failure == failure
    assert detail in reply.detail
    assert "\n" not in reply.detail
    assert len(reply.detail) <= 200
    assert reply.top_logprobs is None
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (Answer(chat("yes", finish="length")), ""),
        (Answer(chat("yes", finish=None)), ""),
    ],
)
def test_an_answer_without_an_end_is_one(server, answer, detail):
    """Else an endpoint that says no finish reason could not be used."""
    reply = one(server, answer)
    assert (reply.text, reply.failure, reply.top_logprobs) == ("yes", None, None)
    assert detail in reply.detail


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (chat("yes", logprobs={"yes": math.nan}), "nan"),
        (chat("yes", logprobs={"yes": 0.5}), "0.5"),
        (chat("yes", logprobs={"yes": "-0.1"}), "documented form"),
        (chat("yes", logprobs={"yes": True}), "documented form"),
        (chat("yes", logprobs={"yes": -0.1, "no": -0.1}), "more than 1"),
        (chat("yes").replace(b"@asked", b"m-72b"), "model 'm-72b'"),
        (chat("yes")[:-1] + b', "error": {"message": "overloaded"}}', "an error stands beside"),
        (chat("yes", usage={"prompt_tokens": 1e30}), "prompt_tokens"),
        (chat("yes", usage={"prompt_tokens": -5}), "prompt_tokens"),
        (chat("yes", usage={"prompt_tokens": 5, "completion_tokens": 1.5}), "completion_tokens"),
    ],
)
def test_what_no_honest_endpoint_says_is_a_bad_response(server, body, detail):
    """Else another model's answers, or numbers that are none, would pass for the judge's own."""
    reply = one(server, Answer(body), prices=PRICES)
    assert (reply.failure, reply.top_logprobs) == ("bad_response", None)
    assert detail in reply.detail
    assert 0 < reply.cost < 1


def test_a_key_twice_is_a_bad_response(server):
    """Else of two answers in one body the last would win, and a filter before us may have read the first."""
    body = chat("yes").replace(b'"content": "yes"', b'"content": "no", "content": "yes"')
    reply = one(server, Answer(body))
    assert (reply.failure, reply.text) == ("bad_response", "")
    assert "key 'content' twice" in reply.detail


def test_half_a_surrogate_pair_in_an_answer_is_a_bad_response(server):
    """Else it would end the run where its verdict is written, since no file can hold it."""
    body = chat("yes").replace(b'"content": "yes"', b'"content": "yes \\ud800"')
    reply = one(server, Answer(body))
    assert (reply.failure, reply.text) == ("bad_response", "")


@pytest.mark.parametrize("served", ["m", "M", "x/m", "m-2024-07-18", "m-0613", "mine"])
def test_a_model_may_be_called_by_its_dated_name(server, served):
    """Else an alias that every provider has would make every answer a bad one."""
    body = chat("yes").replace(b"@asked", served.encode())
    reply = one(server, Answer(body), served_model="mine")
    assert (reply.failure, reply.served_model) == (None, served)


@pytest.mark.parametrize("packed", ["", "gzip", "deflate", "br"])
def test_no_body_is_larger_in_memory_than_an_answer_can_be(server, packed):
    """Else one response of a hostile endpoint would take all memory, and the run with it."""
    blanks = b" " * 60_000_000
    body = {"": blanks, "gzip": gzip.compress(blanks), "deflate": zlib.compress(blanks), "br": b"x"}[packed]
    server.script = lambda *_: Answer(body, headers={"Content-Encoding": packed} if packed else {})
    tracemalloc.start()
    try:
        (reply,) = asked(Endpoint(config(server))).values()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert reply.failure == "bad_response"
    assert "body" in reply.detail
    # The server in this process writes its own copy of what is not packed.
    assert peak < 30_000_000 + len(body)


@pytest.mark.parametrize("status", [301, 302, 307])
def test_a_redirect_is_not_followed_and_ends_the_run(server, status):
    """Else judged text would go to another origin, whose answer would count as the judge's."""
    with serving(lambda *_: Answer(chat("no"))) as other:
        target = f"{other.base_url}/chat/completions?secret=1"
        server.script = lambda *_: Answer(status=status, headers={"Location": target})
        with pytest.raises(UserError, match=rf"HTTP {status}: redirects to http://127\.0\.0\.1:\d+, which"):
            asked(Endpoint(config(server)), 5)
        assert other.asked == []


@pytest.mark.parametrize("usage", [None, {}])
def test_missing_usage_is_estimated_and_said(server, usage):
    """Else `max_cost` would never be reached with a provider that counts nothing."""
    body = json.loads(chat("yes"))
    body["usage"] = usage
    reply = one(server, Answer(json.dumps(body).encode()), prices=PRICES)
    assert reply.failure is None
    assert "estimates" in reply.detail
    assert reply.cost > 0


def test_reasoning_counted_in_the_total_alone_is_paid(server):
    """Else Gemini's reasoning, the most of its bill, would not count against `max_cost`."""
    usage = {"prompt_tokens": 20, "completion_tokens": 3, "total_tokens": 423}
    assert one(server, Answer(chat(usage=usage))).completion_tokens == 403


def test_half_a_surrogate_pair_costs_its_own_sample_alone(server):
    """Else one odd character in a judged text would end the run."""
    asking = [*requests(3), Request((ChatMessage("user", "\ud800"),))]
    replies = dict(Endpoint(config(server)).answers(asking, Decoding(1)))
    assert [replies[i].failure for i in range(4)] == [None, None, None, "http_error"]


# --- asking again ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "failure"),
    [
        *((Answer(b"{}", status), "http_error") for status in (408, 409, 429, 500, 502, 503, 529)),
        (Answer(how="cut"), "http_error"),
        (Answer(chat(), how="half"), "http_error"),
        (Answer(chat(), after=5.0), "timed_out"),
        (Answer(how="trickle"), "timed_out"),
    ],
)
def test_a_fault_that_passes_is_asked_again(server, fault, failure):
    """Else a busy endpoint would leave holes in every run, or an unwell one would be asked for ever."""
    timed = failure == "timed_out"
    limits = {"timeout_seconds": 1.0} if timed else {}
    assert one(server, [fault, Answer(chat("yes"))], **limits).text == "yes"
    assert len(server.asked) == 2
    with serving(lambda text, before: fault) as other:
        reply = one(other, fault, max_retries=1, **({"timeout_seconds": 0.2} if timed else {}))
        assert reply.failure == failure
        assert len(other.asked) == 2


def test_retry_after_is_honoured_in_seconds_and_as_a_date(server):
    """Else a provider would block a client that comes back too early."""

    def soon() -> str:
        return email.utils.formatdate(time.time() + 2, usegmt=True)

    for header, least in ((lambda: "0.4", 0.4), (soon, 0.9)):  # a date has whole seconds
        server.asked.clear()
        server.script = lambda _, before, header=header: (
            Answer(chat("yes")) if server.asked[1:] else Answer(b"{}", 429, headers={"Retry-After": header()})
        )
        (reply,) = asked(Endpoint(config(server))).values()
        assert reply.text == "yes"
        assert least <= server.asked[1].at - server.asked[0].at < least + 1.5


def test_the_backoff_grows_with_full_jitter(monkeypatch):
    """Else all requests of a run would come back at the same moment, and be turned away again."""
    monkeypatch.setattr(endpoint_limits, "FIRST_BACKOFF_SECONDS", 0.5)
    for attempt, ceiling in ((1, 0.5), (2, 1.0), (3, 2.0), (20, 30.0)):
        delays = [retry_delay(attempt, {}, 0.0) for _ in range(400)]
        assert 0 <= min(delays) < 0.1 * ceiling
        assert 0.9 * ceiling < max(delays) <= ceiling
    later = [retry_delay(1, {"retry-after": "7"}, 0.0) for _ in range(50)]
    assert min(later) >= 7
    for odd in ("soon", "-3", "nan", "inf", "1e999", "Mon, 99 Foo"):
        assert retry_delay(1, {"retry-after": odd}, 0.0) <= 0.5


# --- what ends a run ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        *(Answer(json.dumps({"error": {"message": f"bad {KEY}"}}).encode(), s) for s in (401, 402, 403, 404)),
        Answer(b'{"error": {"code": "insufficient_quota", "message": "no money"}}', 429),
        Answer(b'{"error": {"code": "unsupported_parameter", "message": "logprobs"}}', 400),
        Answer(b"{}", 429, headers={"Retry-After": "86400"}),
    ],
)
def test_what_no_request_can_mend_ends_the_run_in_one_line(server, answer):
    """Else thousands of requests would be made in vain, or a typo in a model's name would be a mystery."""
    server.script = lambda text, before: answer if text == "5" else Answer(chat())
    replies: dict[int, Reply] = {}
    with pytest.raises(UserError) as error:
        keep(Endpoint(config(server, concurrency=2)).answers(requests(200), Decoding(1)), replies)
    line = str(error.value)
    assert all(word in line for word in (server.base_url, "model m", "TEST_KEY", "HTTP"))
    assert "\n" not in line
    assert KEY not in line
    assert error.value.__context__ is None
    assert 5 not in replies
    assert len(server.asked) == len(replies) + 1 < 10


def test_nothing_listening_is_said_once():
    """Else a forgotten server would make ten thousand unscored verdicts."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with pytest.raises(UserError, match=r"is it running\?; 50 requests"):
        asked(Endpoint(config(url, api_key_env=None)), 50)


def test_an_answer_that_a_server_broke_off_at_its_end_is_none(server):
    """Else the samples in flight when a server is stopped would stay unscored for good."""
    server.script = lambda text, before: Answer(chat("", finish="abort") if text == "2" else chat())
    replies: dict[int, Reply] = {}
    with pytest.raises(UserError, match="is it ending"):
        keep(
            Endpoint(config(server, concurrency=1, max_retries=1)).answers(requests(5), Decoding(1)), replies
        )
    assert sorted(replies) == [0, 1]
    assert len(server.asked) == 4


@pytest.mark.parametrize("concurrency", [1, 3])
def test_max_cost_stops_with_all_that_was_paid_for(server, concurrency):
    """Else a run would cost more than was allowed, or lose answers that are on the bill."""
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 0, "total_tokens": 1_000_000}
    server.script = lambda _, before: Answer(chat(usage=usage), after=0.01)
    settings = {"prices": PRICES, "max_cost": 5.0, "concurrency": concurrency}
    endpoint = Endpoint(config(server, **settings))
    replies: dict[int, Reply] = {}
    with pytest.raises(CostLimit, match=r"max_cost=5 is spent .*raise engine.max_cost and run again"):
        keep(endpoint.answers(requests(40), Decoding(1)), replies)
    assert len(replies) == len(server.asked)
    assert 5 <= len(replies) < 5 + concurrency
    assert endpoint.spent == pytest.approx(len(replies))
    # What an earlier process spent counts, and a resumed run goes on with what is owed.
    with pytest.raises(CostLimit):
        asked(Endpoint(config(server, **settings), spent=5.0), 3)
    assert len(asked(Endpoint(config(server, **settings), spent=2.0), 3)) == 3


# --- limits ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("concurrency", [1, 7])
def test_concurrency_is_never_exceeded_and_is_used(server, concurrency):
    """Else a small server would be overrun, or a large one left idle."""
    together = threading.Barrier(concurrency)

    def script(text: str, before: int) -> Answer:
        together.wait(10)  # breaks, and with it the connection, where fewer are ever in flight
        return Answer(chat())

    server.script = script
    replies = asked(Endpoint(config(server, concurrency=concurrency)), 4 * concurrency)
    assert [reply.failure for reply in replies.values()] == [None] * (4 * concurrency)
    assert server.most_in_flight == concurrency


@pytest.mark.parametrize("limit", [{"requests_per_minute": 5}, {"tokens_per_minute": 20}])
def test_the_limits_hold_on_the_wire(server, monkeypatch, limit):
    """Else a run would be answered by 429s, or its account be closed."""
    monkeypatch.setattr(endpoint_limits, "WINDOW_SECONDS", 0.4)
    server.script = lambda _, before: Answer(
        chat(usage={"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4})
    )
    began = time.monotonic()
    assert len(asked(Endpoint(config(server, concurrency=10, **limit)), 12)) == 12
    assert server.asked[-1].at - began >= 0.8  # 12, of which 5 in a window, begin in three of them


@given(
    st.lists(st.tuples(st.integers(1, 60), st.floats(0, 40), st.integers(0, 60)), min_size=1, max_size=30),
    st.integers(1, 6),
    st.integers(20, 100),
)
@draws(60)
def test_no_window_holds_more_than_the_limits(arrivals, most_requests, most_tokens):
    """Else bursts at the turn of a minute would pass twice what the provider allows."""
    limit, now, begun = RateLimit(most_requests, most_tokens), 0.0, []
    for tokens, gap, counted in arrivals:
        now += gap
        while not isinstance(reserved := limit.reserve(tokens, now), Reserved):
            assert 0 < reserved < 60.001
            now += reserved
        limit.correct(reserved, min(counted, tokens))
        begun.append((now, min(counted, tokens)))
    for start, _ in begun:
        window = [tokens for at, tokens in begun if start <= at < start + 60 - 1e-6]
        assert len(window) <= most_requests
        assert sum(window) <= most_tokens or len(window) == 1


# --- all together ------------------------------------------------------------------------------------------

FAULTS = {
    "good": [Answer(chat("yes", logprobs=YES))],
    "slow": [Answer(chat("yes"), after=0.03)],
    "busy": [Answer(b"{}", 429), Answer(b"{}", 503), Answer(chat("yes"))],
    "cut": [Answer(how="cut"), Answer(chat("yes"))],
    "down": [Answer(b"{}", 500)],
    "html": [Answer(b"<html>", content_type="text/html")],
    "refused": [Answer(chat("", refusal="no"))],
    "silent": [Answer(chat(""))],
}
ENDS = {"down": "http_error", "html": "bad_response", "refused": "refused", "silent": "empty"}
TRIES = {"busy": 3, "cut": 2, "down": 3}


@given(st.lists(st.sampled_from(sorted(FAULTS)), min_size=1, max_size=12), st.integers(1, 5))
@draws(12)
def test_each_request_is_answered_exactly_once_whatever_befalls_the_others(faults, concurrency):
    """Else a sample would have no verdict or two, and totals would depend on the endpoint's mood."""

    def script(text: str, before: int) -> Answer:
        answers = FAULTS[faults[int(text)]]
        return answers[min(before, len(answers) - 1)]

    with serving(script) as server:
        replies = asked(Endpoint(config(server, concurrency=concurrency)), len(faults))
        assert {i: reply.failure for i, reply in replies.items()} == {
            i: ENDS.get(fault) for i, fault in enumerate(faults)
        }
        tries = Counter(int(one.text) for one in server.asked)
        assert tries == {i: TRIES.get(fault, 1) for i, fault in enumerate(faults)}


def test_replies_come_as_they_come_in(server):
    """Else one slow answer would hold back the log of all that came after it."""
    others = threading.Event()

    def script(text: str, before: int) -> Answer:
        assert text != "0" or others.wait(10)
        return Answer(chat())

    server.script = script
    order = []
    for index, _ in Endpoint(config(server)).answers(requests(6), Decoding(1)):
        order.append(index)
        if len(order) == 5:
            others.set()
    assert order[-1] == 0


def nothing_is_left(server: EndpointServer) -> None:
    assert not [thread for thread in threading.enumerate() if thread.name == "endpoint"]
    until = time.monotonic() + 2
    while server.connections and time.monotonic() < until:
        time.sleep(0.005)
    assert server.connections == 0


def test_closing_early_cancels_everything(server):
    """Else Ctrl-C would leave requests running, and billed."""
    server.script = lambda text, before: Answer(chat(), after=0.0 if text == "0" else 5.0)
    replies = Endpoint(config(server)).answers(requests(50), Decoding(1))
    assert next(replies)[0] == 0
    began = time.monotonic()
    replies.close()
    assert time.monotonic() - began < 1
    server.over.set()
    nothing_is_left(server)
    assert len(server.asked) <= 5


def test_an_interrupt_while_waiting_ends_all(server, monkeypatch):
    """Else a second Ctrl-C would be needed, and the first would hang."""
    server.script = lambda text, before: Answer(chat(), after=5.0)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), 2))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        asked(Endpoint(config(server)), 20)
    timer.join()
    server.over.set()
    nothing_is_left(server)


def test_a_closed_endpoint_never_passes_for_a_finished_one(server):
    """Else a run that was torn down would be taken for one in which all was answered."""
    server.script = lambda text, before: Answer(chat(), after=0.0 if text == "0" else 5.0)
    endpoint = Endpoint(config(server))
    replies = endpoint.answers(requests(9), Decoding(1))
    next(replies)
    endpoint.close()
    with pytest.raises(RuntimeError, match="closed"):
        list(replies)
    server.over.set()
    nothing_is_left(server)


def test_nothing_to_ask_opens_no_connection(server):
    """Else a resumed run that owes nothing would need an endpoint."""
    assert asked(Endpoint(config(server)), 0) == {}
    nothing_is_left(server)


# --- keys --------------------------------------------------------------------------------------------------


def test_the_key_is_nowhere_but_in_its_header(server, caplog, capfd):
    """Else a key would be published with a log, a manifest or a bug report."""
    caplog.set_level(logging.DEBUG)
    echo = json.dumps({"error": {"message": f"Incorrect key {KEY[:10]}***{KEY[-8:]}; {KEY}"}}).encode()
    faults = [
        Answer(echo, 500),
        Answer(echo, 400),
        Answer(f"<html>{KEY}</html>".encode(), content_type="text/html"),
        Answer(chat(f"you sent {KEY}")),
        Answer(chat(None, refusal=f"not with {KEY}")),
        Answer(chat("yes")),
    ]
    server.script = lambda text, before: faults[int(text)]
    endpoint = Endpoint(config(server))
    replies = asked(endpoint, len(faults))
    server.script = lambda text, before: Answer(echo, 404)
    with pytest.raises(UserError) as error:
        asked(endpoint)
    shown = [repr(endpoint), repr(endpoint.config), endpoint.config.model_dump_json(), str(error.value)]
    shown += [repr(dataclasses.asdict(reply)) for reply in replies.values()]
    shown += [caplog.text, "".join(capfd.readouterr())]
    for text in shown:
        assert KEY not in text
        assert KEY[:10] not in text
        assert KEY[-8:] not in text
    assert replies[5].text == "yes"


def test_no_other_key_is_sent(server, monkeypatch):
    """Else OPENAI_API_KEY would be handed to whatever runs on a port."""
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer sk-ambient")
    one(server, Answer(chat()), api_key_env=None)
    one(server, Answer(chat()))
    first, second = ([*asked.headers.items()] for asked in server.asked)
    assert "sk-" not in repr(first)
    assert [value for _, value in second if "sk-" in value] == [f"Bearer {KEY}"]


@pytest.mark.parametrize("value", ["", " ", "käy-of-mine-12345", "one\ntwo-three-four"])
def test_a_key_that_is_none_is_said_at_once(server, monkeypatch, value):
    """Else the first request would fail with a riddle from deep inside."""
    monkeypatch.setenv("TEST_KEY", value)
    with pytest.raises(UserError, match="TEST_KEY") as error:
        Endpoint(config(server))
    assert not value.strip() or value not in str(error.value)


def test_a_placeholder_key_is_no_secret():
    """Else a local server's key `EMPTY` would blank the word out of judged texts."""
    assert redacted("EMPTY no", "EMPTY") == "EMPTY no"
    assert redacted("no key", None) == "no key"


# --- configuration -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        {"base_url": "api.openai.com/v1"},
        {"base_url": "https://me:secret@host/v1"},
        {"base_url": "https://host/v1?key=secret"},
        {"api_key_env": "sk-proj-abc"},
        {"max_cost": 3.0},
        {"extra_body": {"stream": True}},
        {"top_logprobs": 21},
        {"concurrency": 0},
    ],
)
def test_settings_that_can_not_work_are_refused(bad):
    """Else a key in the wrong place would be in every dump, or a limit would never bind."""
    with pytest.raises(ValidationError):
        config("http://127.0.0.1:1/v1", **bad)


ENDPOINTS = sorted(
    path.stem
    for path in (ROOT / "conf/engine").glob("*.yaml")
    if option("engine", path.stem)["kind"] == "openai"
)


@pytest.mark.parametrize("name", ENDPOINTS)
def test_every_endpoint_of_the_tree_is_one(name):
    """Else `engine=deepseek` would fail on the day somebody has a key for it."""
    tree = option("engine", name)
    tree |= {key: "mine" for key, value in tree.items() if value == "???"}
    tree |= {key: None for key, value in tree.items() if key == "prices"}  # the monitor's
    engine = OpenAiEngine.model_validate_json(json.dumps(tree))
    assert engine.name == name
    assert engine.api_key_env or engine.base_url.startswith("http://127.0.0.1")
    assert {"openai", "openai_api", "deepseek", "gemini", "anthropic", "anthropic_batch"} <= set(ENDPOINTS)
