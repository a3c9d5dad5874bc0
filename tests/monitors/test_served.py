"""Finding a server through its address file."""

import http.server
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from studies import study

from monitorbench.config.errors import ConfigError, UserError
from monitorbench.monitors.endpoint_judge import endpoint_identity
from monitorbench.monitors.served import Address, reach, remove_address, write_address


@pytest.fixture
def url() -> Iterator[str]:
    """A server that only says that it is healthy."""

    class Healthy(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/health" else 404)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Healthy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()


def address(url: str, **changes: Any) -> Address:
    fields = {"url": url, "model": "base", "adapter": None, "serves": "served:w", "key": None, "pid": 1}
    return Address.model_validate(fields | changes)


def test_the_endpoint_is_what_the_file_says(url: str, tmp_path: Path):
    """If it failed: a server on another port or node, or its adapter, would not be the one that is asked."""
    file = tmp_path / "deep" / "a.json"
    write_address(file, address(url, adapter="base+tuned", key="secret"))
    found = reach(study("engine=served", f"engine.server={file}")).engine
    assert found.kind == "openai"
    assert (found.base_url, found.model) == (url, "base+tuned")
    assert found.api_key_env is not None
    assert os.environ.pop(found.api_key_env) == "secret"
    assert "secret" not in found.model_dump_json()
    assert file.stat().st_mode & 0o077 == 0


def test_what_is_served_names_the_judge_not_where(url: str, tmp_path: Path):
    """If it failed: a server that came back on another node would have every verdict asked again."""
    files = [tmp_path / "one.json", tmp_path / "two.json"]
    write_address(files[0], address(url))
    write_address(files[1], address(url.replace("127.0.0.1", "localhost")))
    identities = []
    for file in files:
        engine = reach(study("engine=served", f"engine.server={file}")).engine
        assert engine.kind == "openai"
        identities.append(endpoint_identity(engine))
    assert identities[0] == identities[1]


@pytest.mark.parametrize(
    ("content", "says"),
    [(None, "no such file"), ("{", "no address file"), ("stale", "can't be reached")],
)
def test_what_is_not_found_is_said(tmp_path: Path, content: str | None, says: str):
    """If it failed: an evaluator would hang, or end in a traceback, without naming the file."""
    file = tmp_path / "a.json"
    if content == "stale":
        write_address(file, address("http://127.0.0.1:9/v1"))
    elif content:
        file.write_text(content)
    with pytest.raises(UserError, match=says) as caught:
        reach(study("engine=served", f"engine.server={file}", "engine.server_seconds=0"))
    assert str(file) in str(caught.value)


def test_only_its_own_address_is_removed(tmp_path: Path, url: str):
    """If it failed: an old server's end would hide the new one, which has written the same file."""
    old, new = address(url, pid=1), address(url, pid=2)
    write_address(tmp_path / "a.json", new)
    remove_address(tmp_path / "a.json", old)
    assert (tmp_path / "a.json").is_file()
    remove_address(tmp_path / "a.json", new)
    assert not (tmp_path / "a.json").exists()
    remove_address(tmp_path / "a.json", new)


def test_nobody_says_what_a_server_serves():
    """If it failed: a judge could go by another's name."""
    with pytest.raises(ConfigError, match="not to be set"):
        study("engine=openai", "+engine.serves=served:other")
