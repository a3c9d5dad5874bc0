"""A monitor whose answers stand behind an `opening`, through an endpoint."""

import socket
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from endpoint_server import Answer, chat, serving
from small_models import smollm2_folder

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import Study
from monitorbench.judging.evaluate import evaluate
from monitorbench.judging.identity import model_identity
from monitorbench.judging.serving.served import Address, address_file, write_address
from monitorbench.judging.serving.vllm_server import running_server
from monitorbench.runs.keyed_log import read_verdicts

OPENING = 'monitor.opening="<think>\\n\\n</think>\\n\\n"'


def test_a_chat_endpoint_is_told_by_its_template(study: Callable[..., Study]):
    """If it failed: a hybrid would begin to think, and every answer of one token would be unscored."""
    with serving(lambda *_: Answer(chat("yes"))) as server:
        made = study(
            "engine=openai",
            f"engine.base_url={server.base_url}",
            OPENING,
            "monitor.chat_template_kwargs={enable_thinking: false}",
        )
        evaluate(made)
    assert {str(asked.body["chat_template_kwargs"]) for asked in server.asked} == {
        "{'enable_thinking': False}"
    }
    plain = made.monitor.model_copy(update={"chat_template_kwargs": {}, "opening": ""})
    assert model_identity(made.monitor, made.engine) != model_identity(plain, made.engine)


def test_where_neither_way_is_open_it_is_refused(study: Callable[..., Study]):
    """If it failed: a run would be paid for, and have no label."""
    with pytest.raises(
        ConfigError, match=r"engine.by_token_ids=true .* or monitor.chat_template_kwargs"
    ) as e:
        evaluate(study("engine=openai", OPENING))
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("size", ["0_6b", "8b", "14b"])
def test_every_hybrid_says_how(compose_study: Callable[..., Study], size: str):
    """If it failed: a monitor of ours would be refused behind a chat endpoint."""
    made = compose_study("evaluate", f"monitor=qwen3_{size}", "engine=openai")
    assert made.monitor.opening
    assert made.monitor.chat_template_kwargs == {"enable_thinking": False}


def test_another_model_s_ids_are_not_sent(study: Callable[..., Study], monkeypatch: pytest.MonkeyPatch):
    """If it failed: ids of one tokenizer would be judged as another's words."""
    monkeypatch.setattr("monitorbench.judging.serving.served._why_not", lambda _: "")
    made = study("engine=served", "engine.server=mine", "engine.server_seconds=0")
    serves = {"weights": "sha256:other", "adapter": "", "dtype": "float32", "training": None}
    fields: dict[str, Any] = {"model": "m", "adapter": None, "serves": serves, "key": None, "pid": 1}
    write_address(
        address_file(made.paths.runs, "mine"),
        Address.model_validate({"url": "http://127.0.0.1:9/v1", **fields}),
    )
    with pytest.raises(UserError, match=r"serves sha256:other, monitor=smollm2_135m is sha256:.*=false"):
        evaluate(made)


@pytest.mark.vllm
@pytest.mark.slow
@pytest.mark.skipif(find_spec("vllm") is None, reason="vllm is not installed (make setup)")
def test_a_real_server_gives_by_ids_the_verdicts_of_the_process(
    compose_study: Callable[..., Study], starter: Path, tmp_path: Path
):
    """If it failed: a threshold found in process would be wrong with the served monitor."""
    common = [
        f"paths.data={starter.parent}",
        f"paths.runs={tmp_path / 'runs'}",
        f"monitor.path={smollm2_folder()}",
        "monitor.context_tokens=2048",
        "dataset.test.pairs_per_cell=1",
        OPENING,
    ]
    local = ["engine=vllm", "engine.dtype=float32"]
    here = read_verdicts(evaluate(compose_study("evaluate", *common, *local)) / "verdicts.jsonl")
    served = compose_study("evaluate", *common, "engine=served", "engine.server=mine")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    server_study = compose_study("evaluate", *common, *local, "engine.startup_seconds=300")
    weights = model_identity(server_study.monitor, server_study.engine)["weights"]
    with running_server(server_study, port, tmp_path / "server.log") as server:
        address = {
            "url": server.url,
            "model": server.model,
            "adapter": None,
            "serves": {"weights": weights, "adapter": "", "dtype": "float32", "training": None},
            "key": server.key,
            "pid": server.process.pid,
        }
        write_address(address_file(served.paths.runs, "mine"), Address.model_validate(address))
        there = read_verdicts(evaluate(served) / "verdicts.jsonl")
    ours = {verdict.sample_id: verdict for verdict in here}
    assert len(there) == len(ours) == 14
    assert len({verdict.score for verdict in there}) > 5
    for verdict in there:
        other = ours[verdict.sample_id]
        assert (verdict.answer, verdict.label, verdict.unscored) == (
            other.answer,
            other.label,
            other.unscored,
        )
        assert verdict.score == pytest.approx(other.score, abs=1e-5)
        assert verdict.label_mass == pytest.approx(other.label_mass, abs=1e-5)
        assert (verdict.prompt_tokens, verdict.finish_reason) == (other.prompt_tokens, other.finish_reason)
