"""Finding a server by its name."""

import asyncio
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from local_server import LocalServer, QuietHandler, running

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import Study
from monitorbench.judging.evaluate import judge_name, training_facts
from monitorbench.judging.serving.connection import KeyRequired
from monitorbench.judging.serving.served import (
    Address,
    address_file,
    end_address,
    reach,
    write_address,
)
from monitorbench.studies.forecast import PlannedRun, forecast
from monitorbench.studies.transfer import runs_of

SERVED = {"weights": "w", "adapter": "", "dtype": "bfloat16", "training": None}


@pytest.fixture
def url() -> Iterator[str]:
    """A server that has the models `base` and `base+tuned`, for whoever has the key."""

    class Models(QuietHandler):
        def answer(self, body: bytes) -> None:
            allowed = self.headers.get("Authorization") == "Bearer secret" and self.path == "/v1/models"
            self.send_response(200 if allowed else 401)
            self.end_headers()
            if allowed:
                self.wfile.write(json.dumps({"data": [{"id": "base"}, {"id": "base+tuned"}]}).encode())

    with running(LocalServer(Models)) as server:
        yield f"{server.url}/v1"


def address(url: str | None, **changes: Any) -> Address:
    fields = {"url": url, "model": "base", "adapter": None, "serves": SERVED, "key": "secret", "pid": 1}
    return Address.model_validate(fields | changes)


@pytest.fixture
def served(study: Callable[..., Study]) -> Study:
    return study("engine=served", "engine.server=mine", "engine.server_seconds=0")


def engine(found: Study) -> Any:
    assert found.engine.kind == "openai"
    return found.engine


def file_of(served: Study) -> Path:
    return address_file(served.paths.runs, "mine")


def test_a_plan_waits_for_no_server(served: Study):
    """If it failed: a plan would say nothing for ten minutes, and then that there is no server."""
    patient = engine(served).model_copy(update={"server_seconds": 600})
    plan = served.model_copy(update={"plan": True, "engine": patient})
    began = time.monotonic()
    with pytest.raises(UserError, match="no server of that name"):
        forecast([PlannedRun("evaluate", plan)])
    assert time.monotonic() - began < 60


def test_the_endpoint_is_what_the_server_says(served: Study, url: str):
    """If it failed: a server on another port or node, or its adapter, would not be the one that is asked."""
    write_address(file_of(served), address(url, adapter="base+tuned"))
    found = reach(served)
    assert (engine(found).base_url, engine(found).model) == (url, "base+tuned")
    assert os.environ.pop(engine(found).api_key_env) == "secret"
    assert "secret" not in found.model_dump_json()
    assert file_of(served).stat().st_mode & 0o077 == 0
    assert judge_name(found.monitor, found.engine) == "base+tuned"


def test_what_is_served_names_the_judge_not_where(served: Study, url: str):
    """If it failed: a server that came back on another node would have every verdict asked again."""
    write_address(file_of(served), address(url))
    one = engine(reach(served)).own_identity()
    write_address(file_of(served), address(url.replace("127.0.0.1", "localhost")))
    assert engine(reach(served)).own_identity() == one
    write_address(file_of(served), address(url, serves=SERVED | {"weights": "others"}))
    assert engine(reach(served)).own_identity() != one


def test_a_served_adapter_is_no_base(served: Study, url: str):
    """If it failed: a tuned monitor would pass for an untrained one, and its cells for unseen."""
    facts = {"name": "all", "trained_on": ["safety_permission/qa"], "seed": 3}
    tuned = SERVED | {"adapter": "sha", "training": facts}
    write_address(file_of(served), address(url, adapter="base+tuned", serves=tuned))
    found = reach(served)
    assert engine(found).own_identity()["adapter"] == "sha"
    assert training_facts(found.monitor, found.engine) == facts


def test_a_finished_run_needs_no_server(served: Study, url: str):
    """If it failed: a repeated command would wait for a server that it has nothing to ask."""
    mine = address(url)
    write_address(file_of(served), mine)
    one = engine(reach(served)).own_identity()
    end_address(file_of(served), mine)
    assert "secret" not in file_of(served).read_text()
    assert engine(reach(served, waits=False)).own_identity() == one
    with pytest.raises(UserError, match="has ended"):
        reach(served)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "no server of that name"),
        ({"url": "http://127.0.0.1:9/v1"}, "can't be reached"),
        ({"key": "another"}, "can't be reached"),
        ({"model": "other"}, "has no other"),
    ],
)
def test_what_is_not_found_is_said(served: Study, url: str, content: dict[str, Any] | None, says: str):
    """If it failed: whoever listens there now would be judged with, under another's name."""
    if content is not None:
        write_address(file_of(served), address(**({"url": url} | content)))
    with pytest.raises(UserError, match=says) as caught:
        reach(served)
    assert "engine.served_as=mine" in str(caught.value)


def test_only_its_own_address_is_ended(tmp_path: Path, url: str):
    """If it failed: an old server's end would hide the new one, which has written the same file."""
    old, new = address(url, pid=1), address(url, pid=2)
    write_address(tmp_path / "a.json", new)
    end_address(tmp_path / "a.json", old)
    assert Address.model_validate_json((tmp_path / "a.json").read_bytes()) == new


def test_nobody_says_what_a_server_serves(study: Callable[..., Study]):
    """If it failed: a judge could go by another's name."""
    with pytest.raises(ConfigError, match="not to be set"):
        study("engine=openai", "+engine.serves={weights: w, adapter: a, dtype: d, training: null}")


def test_a_study_of_adapters_refuses_an_endpoint(served: Study):
    """If it failed: it would train for hours and then fail at the first evaluation."""
    with pytest.raises(ConfigError, match="expected transformers or vllm"):
        runs_of(served)


@pytest.mark.parametrize(
    ("path", "header", "passes"),
    [
        ("/v1/models", b"Bearer k", True),
        ("/health", b"", True),
        ("/v1/models", b"Bearer kk", False),
        ("/invocations", b"", False),
    ],
)
def test_nothing_is_answered_without_the_key(
    monkeypatch: pytest.MonkeyPatch, path: str, header: bytes, passes: bool
):
    """If it failed: everybody on the cluster could use the GPU, and read what is judged."""
    monkeypatch.setenv("VLLM_API_KEY", "k")
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"status": 200})

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {}

    scope = {"type": "http", "path": path, "headers": [(b"authorization", header)]}
    asyncio.run(KeyRequired(app)(scope, receive, send))
    assert sent[0]["status"] == (200 if passes else 401)
