"""The ways in which an endpoint misbehaves by what a successful response says.

What a mode is: `modes.MODES`.
"""

import base64
from collections.abc import Callable
from typing import Any

from benchmarks.faults.wire import Body, Mode, Wire, as_bytes

_HTML = b"<!DOCTYPE html><html><body>no</body></html>"


def _raw(make: Callable[[Body, Body], bytes]) -> Mode:
    """A successful response with that body."""
    return lambda wire, right, turned: wire.answer(make(right, turned))


def _changed(change: Callable[[Body], None], *, of_right: bool = False) -> Mode:
    """A successful response whose JSON is changed; of the opposite answer, unless it may be taken."""

    def mode(wire: Wire, right: Body, turned: Body) -> None:
        body = right if of_right else turned
        change(body)
        wire.answer(as_bytes(body))

    return mode


def _choice(**fields: Any) -> Mode:
    return _changed(lambda body: body["choices"][0].update(fields))


def _message(**fields: Any) -> Mode:
    return _changed(lambda body: body["choices"][0]["message"].update(fields))


def _odd_message(**fields: Any) -> Mode:
    """A message that is no plain answer, beside the log-probabilities of the right one."""
    return _changed(lambda body: body["choices"][0]["message"].update(fields), of_right=True)


def _field(**fields: Any) -> Mode:
    return _changed(lambda body: body.update(fields))


def _usage(**counts: Any) -> Mode:
    """Counts that can't be; the answer is right, and may be taken."""
    return _changed(lambda body: body["usage"].update(counts), of_right=True)


def _logprobs(change: Callable[[list[Body]], Any]) -> Mode:
    """Log-probabilities that can't be; the answer is right, and may be taken without them."""

    def changed(body: Body) -> None:
        position = body["choices"][0]["logprobs"]["content"][0]
        position["top_logprobs"] = change(position["top_logprobs"])

    return _changed(changed, of_right=True)


def _every(value: Any) -> Mode:
    return _logprobs(lambda top: [{**one, "logprob": value} for one in top])


def _literal(name: str, text: bytes) -> Mode:
    """The right reply with a JSON value spelt as no writer would."""

    def make(right: Body, turned: Body) -> bytes:
        position = right["choices"][0]["logprobs"]["content"][0]
        position["top_logprobs"] = [{**one, "logprob": name} for one in position["top_logprobs"]]
        return as_bytes(right).replace(as_bytes(name), text)

    return _raw(make)


def _echo(place: Callable[[Body, str], None], spelt: Callable[[str], str] = str) -> Mode:
    """The caller's key, somewhere in a reply that is right otherwise."""

    def mode(wire: Wire, right: Body, turned: Body) -> None:
        place(right, spelt(wire.key))
        wire.answer(as_bytes(right))

    return mode


def _in_message(name: str) -> Callable[[Body, str], None]:
    def place(body: Body, key: str) -> None:
        message = body["choices"][0]["message"]
        message[name] = f"{message.get(name) or ''} {key}"

    return place


def _echo_status(status: str) -> Mode:
    def mode(wire: Wire, right: Body, turned: Body) -> None:
        error = {"message": f"your key {wire.key} is fine", "code": wire.key[::-1]}
        wire.answer(as_bytes({"error": error}), status, x_key=wire.key)

    return mode


def _nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


BODIES: dict[str, Mode] = {
    "html": lambda wire, right, turned: wire.answer(_HTML, kind="text/html"),
    "empty body": _raw(lambda right, turned: b""),
    "plain word": _raw(lambda right, turned: turned["choices"][0]["message"]["content"].encode()),
    "json word": _raw(lambda right, turned: as_bytes(turned["choices"][0]["message"]["content"])),
    "json null": _raw(lambda right, turned: b"null"),
    "json list": _raw(lambda right, turned: as_bytes([turned])),
    "json number": _raw(lambda right, turned: b"1e999"),
    "json cut": _raw(lambda right, turned: as_bytes(turned)[:-30]),
    "json and more": _raw(lambda right, turned: as_bytes(turned) + b"}"),
    "json twice": _raw(lambda right, turned: as_bytes(turned) + b"\n" + as_bytes(turned)),
    "byte order mark": _raw(lambda right, turned: b"\xef\xbb\xbf" + as_bytes(right)),
    "utf-16": _raw(lambda right, turned: as_bytes(right).decode().encode("utf-16")),
    "no utf-8": _raw(lambda right, turned: as_bytes(turned).replace(b'"x"', b'"\xff\xfe"')),
    "wrong charset": lambda wire, right, turned: wire.answer(
        as_bytes(right), kind="application/json; charset=utf-7"
    ),
    "event stream": lambda wire, right, turned: wire.answer(
        b"data: " + as_bytes(turned) + b"\n\ndata: [DONE]\n\n", kind="text/event-stream"
    ),
    "100,000 brackets": _raw(lambda right, turned: _nested(100_000)),
    "brackets in a field": _raw(
        lambda right, turned: as_bytes({**turned, "x": "HERE"}).replace(b'"HERE"', _nested(100_000))
    ),
    "number of 10,000 digits": _raw(
        lambda right, turned: as_bytes({**right, "created": "HERE"}).replace(b'"HERE"', b"9" * 10_000)
    ),
    "choices twice": _raw(
        lambda right, turned: b'{"choices": %s, ' % as_bytes(right["choices"]) + as_bytes(turned)[1:]
    ),
    "content twice": _raw(
        lambda right, turned: as_bytes(turned).replace(b'"content": "', b'"content": "yes", "content": "', 1)
    ),
    "error in a 200": _raw(lambda right, turned: as_bytes({"error": {"message": "no"}})),
    "error beside choices": _field(error={"message": "overloaded", "code": 500}),
    "no choices": _field(choices=[]),
    "choices null": _field(choices=None),
    "choices an object": _changed(lambda body: body.update(choices=body["choices"][0])),
    "choices missing": _changed(lambda body: body.pop("choices")),
    "wrong model": _field(model="another-model"),
    "model a number": _field(model=7),
    "message null": _choice(message=None),
    "message missing": _changed(lambda body: body["choices"][0].pop("message")),
    "a completion's text": _changed(
        lambda body: body["choices"][0].update(message={"role": "assistant"}, text="no")
    ),
    "a stream's delta": _changed(
        lambda body: body["choices"][0].update(delta=body["choices"][0].pop("message"))
    ),
    "finish content_filter": _choice(finish_reason="content_filter"),
    "finish unknown": _choice(finish_reason="insufficient_system_resource"),
    "finish a number": _choice(finish_reason=0),
    "content null": _message(content=None),
    "content empty": _message(content=""),
    "content blank": _message(content=" \n\t"),
    "content a number": _message(content=0),
    "content true": _message(content=True),
    "content an object": _message(content={"answer": "no"}),
    "content in parts": _message(content=[{"type": "text", "text": "no"}]),
    "content half a character": _odd_message(content="no\ud800"),
    "content with a NUL": _odd_message(content="no\x00yes"),
    "both words": _odd_message(content="no yes"),
    "content 1 MB": _odd_message(content="no " * 350_000),
    "refusal": _message(refusal="I can't"),
    "answer as refusal": _message(content=None, refusal="no"),
    "answer as reasoning": _message(content=None, reasoning_content="no"),
    "answer as a tool call": _message(
        content=None,
        tool_calls=[{"id": "1", "type": "function", "function": {"name": "no", "arguments": "no"}}],
    ),
}
"""By what a successful response says."""

NUMBERS: dict[str, Mode] = {
    "logprobs NaN": _literal("HERE", b"NaN"),
    "logprobs Infinity": _literal("HERE", b"Infinity"),
    "logprobs minus Infinity": _literal("HERE", b"-Infinity"),
    "logprobs 1e999": _literal("HERE", b"1e999"),
    "logprobs above 0": _every(2.5),
    "logprobs in words": _every("-0.1"),
    "logprobs true": _every(True),
    "logprobs null": _every(None),
    "logprobs all 0": _every(0.0),
    "logprobs one-sided": _logprobs(lambda top: top[:1]),
    "logprobs of other words": _logprobs(lambda top: [{**one, "token": "x"} for one in top]),
    "logprobs empty": _logprobs(lambda top: []),
    "logprobs an object": _logprobs(lambda top: {"yes": -0.1, "no": -2.0}),
    "logprobs 100,000 times": _logprobs(lambda top: top * 50_000),
    "tokens 1e30": _usage(prompt_tokens=1e30, total_tokens=1e30),
    "tokens 10^30": _usage(prompt_tokens=10**30, completion_tokens=10**30, total_tokens=2 * 10**30),
    "tokens 10^12": _usage(prompt_tokens=10**12, completion_tokens=10**12, total_tokens=2 * 10**12),
    "tokens below zero": _usage(prompt_tokens=-5, completion_tokens=-5, total_tokens=-10),
    "tokens in words": _usage(prompt_tokens="100", completion_tokens="many"),
    "tokens half": _usage(prompt_tokens=0.5),
    "tokens true": _usage(prompt_tokens=True),
    "usage null": _field(usage=None, choices=[]),
    "usage a list": _changed(lambda body: body.update(usage=[1, 2]), of_right=True),
}
"""By numbers that can't be."""

ECHOES: dict[str, Mode] = {
    "key in content": _echo(_in_message("content")),
    "key in reasoning_content": _echo(_in_message("reasoning_content")),
    "key in reasoning": _echo(_in_message("reasoning")),
    "key in refusal": _echo(_in_message("refusal")),
    "key in finish_reason": _echo(lambda body, key: body["choices"][0].update(finish_reason=f"stop {key}")),
    "key in model": _echo(lambda body, key: body.update(model=f"m {key}")),
    "key in a log-probability": _echo(
        lambda body, key: body["choices"][0]["logprobs"]["content"][0].update(token=key, top_logprobs=key)
    ),
    "key in an unknown field": _echo(lambda body, key: body.update(system_fingerprint=key)),
    "key reversed in content": _echo(_in_message("content"), lambda key: key[::-1]),
    "key reversed in reasoning": _echo(_in_message("reasoning"), lambda key: key[::-1]),
    "key in base64 in content": _echo(
        _in_message("content"), lambda key: base64.b64encode(key.encode()).decode()
    ),
    "key in base64 in reasoning": _echo(
        _in_message("reasoning"), lambda key: base64.b64encode(key.encode()).decode()
    ),
    "key in a 400": _echo_status("400 Bad"),
    "key in a 401": _echo_status("401 Unauthorized"),
    "key in a 500": _echo_status("500 Oh"),
    "key as a body": lambda wire, right, turned: wire.answer(wire.key.encode()),
}
"""By where the caller's key comes back."""
