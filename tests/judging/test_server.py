"""The server as a child process, with a program in vLLM's place that answers /health."""

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from local_server import LocalServer, QuietHandler, running

from monitorbench.config.base import ConfigError, Preempted, UserError
from monitorbench.config.study import Study
from monitorbench.judging.adapters import by_adapter
from monitorbench.judging.serving import vllm_server as server
from monitorbench.runs.directory import read_manifest

STUB = """#!{python}
import http.server, json, os, sys
arguments = sys.argv[1:]
json.dump({{"argv": arguments, "pid": os.getpid(), "env": dict(os.environ)}}, open({record!r}, "w"))
print("starting", flush=True)
if {code} is not None:
    sys.exit({code})
class Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()
    def log_message(self, *_):
        pass
port = int(arguments[arguments.index("--port") + 1])
http.server.HTTPServer((arguments[arguments.index("--host") + 1], port), Healthy).serve_forever()
"""
Started = Callable[[], dict[str, Any]]


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Started]:
    """Put a small program in the place of `python -m vllm…`; returns what it was started with."""
    import sys

    def made(code: int | None = None) -> Started:
        program, record = tmp_path / "python", tmp_path / "started.json"
        program.write_text(STUB.format(python=sys.executable, record=str(record), code=code))
        program.chmod(0o755)
        monkeypatch.setattr(server.sys, "executable", str(program))
        monkeypatch.setattr(
            server, "vllm_environment", lambda config: {"VLLM_SEEN": str(config.kv_cache_gib)}
        )
        return lambda: json.loads(record.read_text())

    return made


@pytest.fixture
def port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ended(pid: int) -> bool:
    """Whether a process is gone."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def option(argv: list[str], name: str) -> str:
    """The value after an option."""
    assert argv.count(name) == 1, name
    return argv[argv.index(name) + 1]


def test_the_server_is_started_as_configured_and_ended_with_us(
    study: Callable[..., Study], stub: Any, port: int, model_folder: Path, tmp_path: Path
):
    """Another length or dtype than evaluated would serve another monitor; an orphan holds the GPU."""
    started = stub()
    given = study("engine=vllm", "engine.dtype=float32", "monitor.context_tokens=2048")
    with server.running_server(given, port, tmp_path / "logs" / "server.log") as running:
        argv = started()["argv"]
        assert running.url == f"http://127.0.0.1:{port}/v1"
        assert (running.model, running.adapters) == ("smollm2_135m", (None,))
        assert running.process.poll() is None
    assert argv[:2] == ["-m", "vllm.entrypoints.openai.api_server"]
    assert option(argv, "--model") == str(model_folder)
    assert option(argv, "--served-model-name") == "smollm2_135m"
    assert option(argv, "--port") == str(port)
    assert option(argv, "--dtype") == "float32"
    assert option(argv, "--max-model-len") == "2048"
    assert "--enforce-eager" in argv
    assert "--enable-lora" not in argv
    assert started()["env"]["VLLM_SEEN"] == "1"
    assert ended(started()["pid"])
    assert "starting" in (tmp_path / "logs" / "server.log").read_text()


def test_the_adapter_is_served_under_its_own_name(
    study: Callable[..., Study],
    stub: Any,
    port: int,
    adapter: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    """Served under the base's name, the adapter would answer when the base is asked, or the reverse."""
    started = stub()
    monkeypatch.setattr(server, "refuse_unfit_adapter", lambda *_: None)  # it is one by its looks alone
    given = study("engine=vllm", f"monitor.adapter={adapter}", "engine.enforce_eager=false")
    with server.running_server(given, port, tmp_path / "server.log") as running:
        argv = started()["argv"]
        module = json.loads(option(argv, "--lora-modules"))
        (name,) = running.adapters
        assert module == {"name": name, "path": str(adapter.resolve())}
        assert name not in (None, running.model)
    assert int(option(argv, "--max-lora-rank")) == 16, "vLLM takes 8, 16, 32, …: the next above 12"
    assert "--enforce-eager" not in argv


def test_several_adapters_are_served_and_found_each_by_its_name(
    study: Callable[..., Study],
    stub: Any,
    port: int,
    adapter: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    """If it failed: a client would ask one adapter and write its verdicts down under another's hash."""
    started = stub()
    other = tmp_path / "other"
    shutil.copytree(adapter, other)
    (other / "adapter_model.safetensors").write_bytes(b"another")
    monkeypatch.setattr(server, "refuse_unfit_adapter", lambda *_: None)
    given = study("engine=vllm", f"engine.port={port}", f"adapters=[{adapter},{other}]", "engine.served_as=s")
    found: dict[str, Any] = {}

    def read() -> None:
        for file in (given.paths.runs / "servers").glob("*.json"):
            found[file.stem] = json.loads(file.read_text())
        raise KeyboardInterrupt

    once_it_is_waited_for(monkeypatch, read)
    server.serve(given)
    argv = started()["argv"]
    at = argv.index("--lora-modules")
    modules = [json.loads(one) for one in argv[at + 1 : at + 3]]
    names = ["smollm2_135m+my_adapter", "smollm2_135m+other"]
    assert [one["name"] for one in modules] == names
    assert option(argv, "--max-loras") == "2"
    assert {name: one["adapter"] for name, one in found.items()} == {
        "s": None,
        "s.my_adapter": names[0],
        "s.other": names[1],
    }
    hashes = {name: one["serves"]["adapter"] for name, one in found.items()}
    assert hashes["s"] == ""
    assert len(set(hashes.values())) == 3
    ended_now = [json.loads(f.read_text())["url"] for f in (given.paths.runs / "servers").glob("*.json")]
    assert ended_now == [None] * 3

    twin = tmp_path / "elsewhere" / "my_adapter"
    shutil.copytree(adapter, twin)
    with pytest.raises(ConfigError, match=r"would both be called smollm2_135m\+my_adapter"):
        server.adapter_names(by_adapter(given.monitor, (adapter, twin)), given.engine)


def test_what_is_no_adapter_for_the_model_is_not_served(
    study: Callable[..., Study], stub: Any, port: int, adapter: Path, tmp_path: Path
):
    """A server would load for a minute, and its own log would hold the reason as a traceback."""
    started = stub()
    given = study("engine=vllm", f"monitor.adapter={adapter}")
    with (
        pytest.raises(UserError, match="expected a LoRA adapter"),
        server.running_server(given, port, tmp_path / "server.log"),
    ):
        pass
    with pytest.raises(FileNotFoundError):
        started()


def test_the_server_ends_when_the_body_fails(
    study: Callable[..., Study], stub: Any, port: int, tmp_path: Path
):
    """A client that crashes must not leave a model in memory."""
    started = stub()

    def fails() -> None:
        with server.running_server(study("engine=vllm"), port, tmp_path / "server.log"):
            raise RuntimeError("the client crashed")

    with pytest.raises(RuntimeError, match="crashed"):
        fails()
    assert ended(started()["pid"])


def test_a_server_that_dies_points_to_its_log(
    study: Callable[..., Study], stub: Any, port: int, tmp_path: Path
):
    """Waiting five minutes for a server that died at once, and not knowing why."""
    stub(code=3)
    log = tmp_path / "server.log"
    with pytest.raises(UserError) as caught, server.running_server(study("engine=vllm"), port, log):
        pass
    assert str(log) in str(caught.value)
    assert "3" in str(caught.value)
    assert "starting" in log.read_text()


@pytest.fixture
def stranger() -> Iterator[int]:
    """Someone else's healthy server; yields its port."""

    class Healthy(QuietHandler):
        def answer(self, body: bytes) -> None:
            self.send_response(200)
            self.end_headers()

    with running(LocalServer(Healthy)) as other:
        yield other.server_port


def test_a_taken_port_is_refused(study: Callable[..., Study], stub: Any, stranger: int):
    """Someone else's model on that port would be taken for ours, and measured under its name."""
    stub()
    given = study("engine=vllm", f"engine.port={stranger}", "engine.startup_seconds=20")
    with pytest.raises(UserError, match=str(stranger)):
        server.serve(given)


def test_only_vllm_is_served(study: Callable[..., Study]):
    """A person who forgot engine=vllm has to be told, not to wait for a server that never comes."""
    with pytest.raises(UserError, match="engine=vllm"):
        server.serve(study("engine=transformers"))


def once_it_is_waited_for(monkeypatch: pytest.MonkeyPatch, do: Callable[[], None]) -> None:
    """Have `do` called as soon as the server is waited for without a limit, where a signal would arrive."""
    called: list[bool] = []

    class Waited(subprocess.Popen):
        def wait(self, timeout: float | None = None) -> int:
            """Call `do` first, once."""
            if timeout is None and "--port" in self.args and not called:
                called.append(True)
                do()
            return super().wait(timeout)

    monkeypatch.setattr(server.subprocess, "Popen", Waited)


def test_port_zero_takes_a_free_one_and_says_which(
    study: Callable[..., Study],
    stub: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    """Two jobs on one machine need a port each, and their clients need to learn which."""
    started = stub()
    seen: dict[str, Any] = {}

    def interrupt() -> None:
        (address,) = given.paths.runs.glob("serve/*/server.json")
        seen.update(json.loads(address.read_text()), directory=address.parent)
        raise KeyboardInterrupt

    given = study("engine=vllm")
    assert given.engine.kind == "vllm"
    assert given.engine.port == 0
    once_it_is_waited_for(monkeypatch, interrupt)
    run = server.serve(given)
    port = option(started()["argv"], "--port")
    assert int(port) > 0
    assert seen["url"] == f"http://127.0.0.1:{port}/v1"
    assert seen["model"] == "smollm2_135m"
    assert run == seen["directory"]
    assert capsys.readouterr().out.splitlines()[-1] == str(run)
    assert not (run / "server.json").exists(), "the address of a server that is gone"
    assert ended(started()["pid"])


def test_a_server_that_is_preempted_comes_back(
    study: Callable[..., Study], stub: Any, monkeypatch: pytest.MonkeyPatch
):
    """If it ended like one that was interrupted: it would be done, and its evaluators would wait in vain."""
    started = stub()
    key: list[str] = []

    def preempt() -> None:
        key.append(json.loads((given.paths.runs / "servers" / "mine.json").read_text())["key"])
        raise Preempted("stopped by SIGUSR1")

    given = study("engine=vllm", "engine.served_as=mine")
    once_it_is_waited_for(monkeypatch, preempt)
    with pytest.raises(Preempted):
        server.serve(given)
    (directory,) = (given.paths.runs / "serve").iterdir()
    assert read_manifest(directory)["status"] != "done"
    ended_as = json.loads((given.paths.runs / "servers" / "mine.json").read_text())
    assert (ended_as["url"], ended_as["key"]) == (None, None)
    assert started()["env"]["VLLM_API_KEY"] == key[0], "it asks for the key that evaluators are told"
    assert key[0] not in " ".join(started()["argv"])
    assert ended(started()["pid"])
