"""Where a server of ours listens, and how `engine=served` finds it by its name on whatever machine it runs.

`runs/servers/NAME.json` says where it is, what it serves and its key; only its owner can read it. After the
server's end it still says what was served, so that finished runs are found without a server.
"""

import hashlib
import http.client
import json
import logging
import os
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from pydantic import ValidationError

from monitorbench.config.base import Config, Preempted, UserError
from monitorbench.config.ending import SWEEP_VARIABLE
from monitorbench.config.endpoint import OpenAiEngine, Served
from monitorbench.config.pilot import ScriptedAgent
from monitorbench.config.study import Engine, Study
from monitorbench.runs.files import write_atomically

_KEY = "MONITORBENCH_SERVER_KEY"
"""How variables of this process begin that keys are put into, as every endpoint's key is in one."""
_MOST_BYTES = 2**20
"""Bytes of a list of models that are read."""
_log = logging.getLogger(__name__)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an error: the key would be sent along."""

    def redirect_request(self, *_: Any) -> None:
        """Follow no redirect."""


DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())
"""Opens a URL past the environment's proxies: they don't know a cluster's nodes, or would see the key."""


class Address(Config):
    """Content of a server's address file."""

    url: str | None
    """Up to what precedes `/chat/completions`; None once the server has ended."""
    model: str
    adapter: str | None
    """The names on the server; where there is an adapter, its name is requested."""
    serves: Served
    key: str | None
    pid: int


def address_file(runs: Path, name: str) -> Path:
    """File in which a server of that name says its address; `runs` is `paths.runs`."""
    return runs / "servers" / f"{name}.json"


def write_address(path: Path, address: Config) -> None:
    """Write an address, whole or not at all, for its owner alone; `UserError` where it can't be written."""
    write_atomically(path, address.model_dump_json(indent=2) + "\n", mode=0o600)


@contextmanager
def answering(run: Path, address: Config) -> Iterator[None]:
    """Have the run's `server.json` say where it answers while the body does, until that is interrupted.

    `Preempted`, an interrupt as well, is raised: it is one that the run comes back from.
    """
    here = run / "server.json"
    write_address(here, address)
    try:
        yield
    except Preempted:
        raise
    except KeyboardInterrupt:
        _log.info("serve: ending")
    finally:
        here.unlink()


def end_address(path: Path, address: Address) -> None:
    """Say that the server has ended, unless another one has written its own address there since."""
    if _read(path) == address:
        write_address(path, address.model_copy(update={"url": None, "key": None}))


def reach(study: Study, *, waits: bool = True) -> Study:
    """The study with the endpoints that its servers are, of its monitor and of its agent, once they answer.

    Where it `waits` not, what they served last is enough, whether they run or not, and only one that was
    never heard of is waited for; by a plan none is. The same object where it names no server. Raises
    `UserError` where a server is not reached within `server_seconds`.
    """
    changed: dict[str, Any] = {}
    if study.monitor.kind != "bag_of_words":
        changed["engine"] = _reached(study.engine, study, waits=waits)
    if not isinstance(study.agent, ScriptedAgent):
        engine = _reached(study.agent.engine, study, waits=waits)
        if engine is not study.agent.engine:
            changed["agent"] = study.agent.model_copy(update={"engine": engine})
    if changed.get("engine") is study.engine:
        del changed["engine"]
    return study.model_copy(update=changed) if changed else study


def _reached(engine: Engine, study: Study, *, waits: bool) -> Engine:
    if engine.server is None:
        return engine
    file = address_file(study.paths.runs, engine.server)
    address = None if waits else _read(file)
    if address is None:
        address = _wait(file, engine.server, 0 if study.plan else engine.server_seconds)
    variable = None
    if address.key:
        variable = f"{_KEY}_{hashlib.sha256(address.key.encode()).hexdigest()[:8].upper()}"
        os.environ[variable] = address.key
    fields = {
        "base_url": address.url or engine.base_url,
        "model": address.adapter or address.model,
        "api_key_env": variable,
        "serves": address.serves.model_dump(),
    }
    return OpenAiEngine.model_validate(engine.model_dump() | fields)


def _wait(file: Path, server: str, seconds: int) -> Address:
    deadline = time.monotonic() + seconds
    while True:
        address = _read(file)
        why = _why_not(address)
        if address is not None and not why:
            return address
        if time.monotonic() >= deadline:
            raise UserError(
                f"engine.server={server}: {why} ({file}); start `monitorbench serve` with "
                f"engine.served_as={server}, or raise engine.server_seconds"
            )
        time.sleep(min(2.0, max(0.1, deadline - time.monotonic())))


def _why_not(address: Address | None) -> str:
    """Why that server can't be used; empty where it can."""
    if address is None:
        return "no server of that name"
    if address.url is None:
        return "that server has ended"
    # Whoever listens there now may be another server: it has another key, or another model.
    headers = {"Authorization": f"Bearer {address.key}"} if address.key else {}
    request = urllib.request.Request(f"{address.url}/models", headers=headers)
    try:
        with DIRECTLY.open(request, timeout=5) as answer:
            served = {model["id"] for model in json.loads(answer.read(_MOST_BYTES))["data"]}
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException) as error:
        return f"that server can't be reached ({getattr(error, 'reason', error)})"
    if (address.adapter or address.model) not in served:
        return f"that server has no {address.adapter or address.model}"
    return ""


def _read(file: Path) -> Address | None:
    try:
        return Address.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None


LOOPBACK = {"127.0.0.1", "localhost"}
"""Only this machine reaches these; on any other `engine.host` a server asks for a key."""
EVERYWHERE = {"0.0.0.0"}


def free_port(host: str, port: int, group: str = "engine") -> int:
    """The port of a host, a free one for 0; `UserError` where it is taken.

    `group` is that of the settings `host` and `port`, for errors.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise UserError(f"{group}.port={port}: can't be had on {host} ({error.strerror})") from error
        bound_port: int = probe.getsockname()[1]
        return bound_port


def reached_at(host: str, group: str = "engine") -> str:
    """The host's name in a URL; of 0.0.0.0 this machine's, and `UserError` where that leads nowhere."""
    if host not in EVERYWHERE:
        return host
    for name in (socket.gethostname(), socket.getfqdn()):
        try:
            socket.gethostbyname(name)
        except OSError:
            continue
        return name
    raise UserError(
        f"{group}.host=0.0.0.0: this machine's name can't be resolved; expected an address of it in its place"
    )


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM does what Ctrl-C does; in a sweep both leave the run pending, as for any other script."""
    if SWEEP_VARIABLE in os.environ:
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
