"""What a guardrail answers and logs: at its threshold, where it can't judge, in shadow, over a socket."""

import http.client
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_monitor import NAME, by_number, monitor_of, running, threshold

from monitorbench.config.base import UserError
from monitorbench.config.deployment import Serve
from monitorbench.guardrail.decision import (
    EVENT,
    AppendedLog,
    DecisionLine,
    event_of,
    open_appended,
    read_lines,
)
from monitorbench.guardrail.service import Guardrail, serving
from monitorbench.interop import litellm
from monitorbench.judging.serving.http import HttpAnswer, Refusal
from monitorbench.records import Sample, Verdict
from monitorbench.scoring.operating_point import threshold_point


def asks(response: Any, **more: Any) -> dict[str, Any]:
    return {"request": "Why?", "response": response, **more}


def test_flag_above_the_threshold_and_pass_at_it(tmp_path: Path):
    """If it failed: the alarm would not be the one that was calibrated, which is *above* its threshold."""
    with monitor_of() as monitor, running(monitor, tmp_path) as served:
        found = [served.post(asks(score, id=score)) for score in ("0.500001", "0.5", "0.1")]
    assert [(status, answer["action"]) for status, answer in found] == [
        (200, "flag"),
        (200, "pass"),
        (200, "pass"),
    ]
    answer = found[0][1]
    assert (answer["score"], answer["threshold"], answer["monitor"]) == (0.500001, 0.5, NAME)
    assert {
        name: answer[name] for name in answer.keys() - {"id", "action", "score", "threshold", "monitor"}
    } == {
        "error": None,
        "seconds": answer["seconds"],
        "shadow": False,
    }
    lines = read_lines(tmp_path / "decisions.jsonl")
    assert [line["sample_id"] for line in lines] == ["0.500001", "0.5", "0.1"]
    assert [line["flagged"] for line in lines] == [True, False, False]
    assert {line["monitor"] for line in lines} == {NAME}
    assert not {"label", "request", "response"} & set(lines[0])


def test_many_at_once_each_get_their_own_answer(tmp_path: Path):
    """If it failed: one user's text would be flagged for another's, or a decision be in no log."""
    with (
        monitor_of() as monitor,
        running(monitor, tmp_path, timeout_seconds=60) as served,
        ThreadPoolExecutor(200) as clients,
    ):
        scores = [f"{n / 200:.4f}" for n in range(200)]
        found = list(clients.map(lambda score: served.post(asks(score, id=score)), scores))
        assert [(status, answer["id"], answer["score"]) for status, answer in found] == [
            (200, score, float(score)) for score in scores
        ]
        assert served.guardrail.counts == {"flag": 99, "pass": 101}
    assert sorted(line["sample_id"] for line in read_lines(tmp_path / "decisions.jsonl")) == scores


def test_the_key_may_be_a_gateways(tmp_path: Path):
    """If it failed: LiteLLM, which sends x-api-key, could not be let in, or everybody were."""
    with monitor_of() as monitor, running(monitor, tmp_path, key="secret") as served:
        assert served.post(asks("0.1"))[0] == 401
        assert served.post(asks("0.1"))[1]["action"] == "flag"
        assert served.post(asks("0.1"), headers={"x-api-key": "secreT"})[0] == 401
        assert served.post(asks("0.1"), headers={"x-api-key": "secret"})[0] == 200
        assert served.post(asks("0.1"), headers={"Authorization": "Bearer secret"})[0] == 200
    assert not (tmp_path / "refusals.jsonl").read_bytes(), "who has no key fills no disk"


def test_a_log_whose_file_is_gone_says_so(tmp_path: Path):
    """If it failed: a decision that is not in the log would be answered with 500, and no action."""
    with (tmp_path / "x").open("ab") as stream:
        log = AppendedLog(tmp_path / "x", stream.fileno())
    with pytest.raises(UserError, match="x: can't be written"):
        log.append("{}")


def test_after_the_end_nothing_is_logged_or_judged(tmp_path: Path):
    """If it failed: a kept connection would have decisions written into whatever file is opened next."""
    with monitor_of() as monitor:
        with running(monitor, tmp_path, telemetry=True) as served:
            connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)

            def ask() -> tuple[int, dict[str, Any]]:
                body = json.dumps(asks("0.1")).encode()
                connection.request("POST", "/guardrail", body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                return answer.status, json.loads(answer.read())

            assert ask()[0] == 200
        others = [tmp_path / f"other-{n}" for n in range(6)]
        with ExitStack() as stack:
            for other in others:
                stack.enter_context(other.open("ab"))
            with pytest.raises((OSError, http.client.HTTPException)):
                ask()
            found = served.guardrail.own(json.dumps(asks("0.1")).encode(), {})
            assert isinstance(found, HttpAnswer)
            assert (found.body["action"], found.body["error"]) == ("flag", "not_logged")
        connection.close()
    assert not any(other.read_bytes() for other in others)
    assert len(read_lines(tmp_path / "decisions.jsonl")) == 1


def test_a_decision_in_hand_at_the_end_is_in_the_log(tmp_path: Path):
    """If it failed: each restart would lose decisions that were acted on."""
    goes_on, arrived = threading.Event(), threading.Event()

    def waits(sample: Sample) -> Verdict:
        arrived.set()
        goes_on.wait()
        return by_number(sample)

    with monitor_of(waits) as monitor, ThreadPoolExecutor(1) as client:
        with running(monitor, tmp_path, timeout_seconds=60) as served:
            first = client.submit(served.post, asks("0.1"))
            arrived.wait()
            threading.Timer(0.3, goes_on.set).start()
        assert len(read_lines(tmp_path / "decisions.jsonl")) == 1
        assert first.result()[1]["action"] == "pass"


def test_decisions_of_one_id_are_told_apart_over_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """If it failed: the log of a retried request could not be imported."""
    with monkeypatch.context() as patched:
        patched.setattr("monitorbench.guardrail.service.time.time_ns", lambda: 5_000_000)
        with monitor_of() as monitor, running(monitor, tmp_path) as served:
            for _ in range(3):
                served.post(asks("0.1", id="a"))
    with monitor_of() as monitor, running(monitor, tmp_path) as served:
        served.post(asks("0.1", id="a"))
    draws = [line["draw"] for line in read_lines(tmp_path / "decisions.jsonl")]
    assert draws[:3] == [5000, 5001, 5002]
    assert draws == sorted(set(draws))


def test_each_category_has_its_threshold(tmp_path: Path):
    """If it failed: one category's threshold would be applied to another, or to what has none."""
    point = threshold_point(
        threshold(0.2, "sycophancy_bias"), threshold(0.8, "own"), threshold(None, "safety_permission")
    )
    with monitor_of(point=point) as monitor, running(monitor, tmp_path) as served:
        found = {name: served.post(asks("0.5", category=name))[1] for name in monitor.calibrated.thresholds}
        assert {name: (one["action"], one["error"]) for name, one in found.items()} == {
            "sycophancy_bias": ("flag", None),
            "own": ("pass", None),
            "safety_permission": ("flag", "no_threshold"),
        }
        status, answer = served.post(asks("0.5"))
        assert (status, answer["action"]) == (400, "flag")
        assert "sycophancy_bias, own" in answer["error"]


def test_a_torn_line_is_cut_off_and_the_log_goes_on(tmp_path: Path):
    """If it failed: after a power cut the server would not start, or its log could not be read."""
    log = tmp_path / "decisions.jsonl"
    for n in range(2):
        with open_appended(log) as opened:
            opened.append(json.dumps({"n": n, "text": "x" * 100_000}))
        with log.open("ab") as stream:
            stream.write(b'{"n": 7, "te' + b"x" * 70_000)
    with open_appended(log):
        pass
    assert [line["n"] for line in read_lines(log)] == [0, 1]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    (
        "id request response trajectory category role content tool_calls function arguments name texts "
        "structured_messages input_type litellm_call_id images"
    ).split()
)
ROLES = st.sampled_from(["user", "assistant", "tool", "system", "request", "response"])
SHAPED = st.recursive(
    JSON | ROLES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=12,
)
BODIES = st.binary(max_size=40) | SHAPED.map(lambda value: json.dumps(value).encode())


@pytest.fixture(scope="module")
def unable(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A guardrail whose monitor never has a score."""

    def never(sample: Sample) -> Verdict:
        raise RuntimeError("no model")

    folder = tmp_path_factory.mktemp("unable")
    with monitor_of(never) as monitor, serving(monitor, Serve(), folder, 0, None) as (_, guardrail):
        yield guardrail


@given(BODIES)
def test_no_body_passes_where_nothing_can_be_judged(unable: Guardrail, body: bytes):
    """If it failed: some body would be answered pass without a score, or with a traceback."""
    found = unable.own(body, {})
    answer = unable.refused("/guardrail", found) if isinstance(found, Refusal) else found
    assert answer.body["action"] == "flag"
    assert answer.status in (200, 400)
    assert "\n" not in json.dumps(answer.body)


@given(BODIES | st.fixed_dictionaries({"input_type": ROLES, "texts": JSON}).map(json.dumps).map(str.encode))
def test_no_response_passes_litellm_where_nothing_can_be_judged(unable: Guardrail, body: bytes):
    """If it failed: a shape of the proxy's that we don't know would go through unjudged."""
    found = unable.of_litellm(body, {})
    answer = unable.refused(litellm.PATH, found) if isinstance(found, Refusal) else found
    assert isinstance(answer, HttpAnswer)
    if answer.body["action"] == "NONE":  # the user's part, of which nothing is the model's
        assert json.loads(body)["input_type"] == "request"
    else:
        assert answer.body["action"] == "BLOCKED"
        assert answer.body["blocked_reason"]


def decision_line(**fields: Any) -> DecisionLine:
    known: dict[str, Any] = {
        "sample_id": "s",
        "draw": 1,
        "time": "2026-11-01T00:00:00+00:00",
        "monitor": NAME,
        "score": 0.75,
        "threshold": 0.5,
        "flagged": True,
        "decided": "flag",
        "answered": "pass",
        "fails": "closed",
        "shadow": True,
        "error": None,
        "detail": "",
        "seconds": 0.1,
        "prompt_tokens": 9,
        "category": None,
    }
    return DecisionLine.model_validate(known | fields)


def test_the_event_is_opentelemetrys():
    """If it failed: a collector would drop the lines, or dashboards not find their attributes."""
    logs = pytest.importorskip("opentelemetry.proto.collector.logs.v1.logs_service_pb2")
    known = pytest.importorskip("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    from google.protobuf.json_format import Parse

    trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    line = event_of(
        decision_line(),
        response_id="chatcmpl-1",
        nanoseconds=1_700_000_000_000_000_000,
        traceparent=f"00-{trace}-{span}-01",
    )
    request = Parse(line, logs.ExportLogsServiceRequest())
    (record,) = request.resource_logs[0].scope_logs[0].log_records
    assert record.event_name == EVENT
    assert record.time_unix_nano == 1_700_000_000_000_000_000
    values = {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in record.attributes}
    assert values == {
        known.GEN_AI_EVALUATION_NAME: "misbehavior",
        known.GEN_AI_EVALUATION_SCORE_VALUE: 0.75,
        known.GEN_AI_EVALUATION_SCORE_LABEL: "misbehavior",
        known.GEN_AI_EVALUATION_EXPLANATION: f"score 0.75, threshold 0.5, {NAME}",
        known.GEN_AI_RESPONSE_ID: "chatcmpl-1",
        "monitorbench.monitor": NAME,
        "monitorbench.decided": "flag",
        "monitorbench.shadow": True,
        "monitorbench.threshold": 0.5,
    }
    sent = json.loads(line)["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]
    assert (sent["traceId"], sent["spanId"]) == (trace, span), "hex, as OTLP's JSON has them"


def test_an_event_without_a_result_says_why():
    """If it failed: an outage would look like a quiet hour."""
    lost = decision_line(score=None, flagged=None, error="timed_out")
    line = event_of(lost, response_id="", nanoseconds=1, traceparent="nonsense")
    record = json.loads(line)["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]
    keys = {one["key"] for one in record["attributes"]}
    assert "error.type" in keys
    assert not keys & {f"gen_ai.evaluation.score.{name}" for name in ("value", "label")}
    assert "gen_ai.response.id" not in keys
    assert (record["severityNumber"], "traceId" in record) == (13, False)
