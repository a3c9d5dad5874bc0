"""`engine=served`: a server of `eval/serve.py`, found through its address file on whatever machine it runs.

The file is there while the server is healthy, and readable by its owner alone: it may hold the server's key.
"""

import hashlib
import os
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from monitorbench.config.base import Config
from monitorbench.config.endpoint import OpenAiEngine
from monitorbench.config.errors import UserError
from monitorbench.config.pilot import ScriptedAgent
from monitorbench.config.study import Engine, Study
from monitorbench.runs.files import make_folder, unwritable

_KEY = "MONITORBENCH_SERVER_KEY"
"""How variables of this process begin that keys are put into, as every endpoint's key is in one."""


class Address(Config):
    """What an address file says."""

    url: str
    """Up to what precedes `/chat/completions`."""
    model: str
    adapter: str | None
    """As the server names them; the adapter is asked where there is one."""
    serves: str
    """Which weights, adapter and dtype these are, wherever they are served."""
    key: str | None
    pid: int


def write_address(path: Path, address: Address) -> None:
    """Write an address file, whole or not at all; `UserError` where it can't be written."""
    make_folder(path.parent)
    part = path.with_name(f".{path.name}.part-{os.getpid()}")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            stream.write(address.model_dump_json(indent=2) + "\n")
        part.replace(path)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        part.unlink(missing_ok=True)


def remove_address(path: Path, address: Address) -> None:
    """Remove it, unless another server has written its own there since."""
    try:
        if Address.model_validate_json(path.read_bytes()) == address:
            path.unlink()
    except (OSError, ValidationError):
        pass


def reach(study: Study) -> Study:
    """The study with the endpoints that `server` leads to, of its monitor and of its agent, once they answer.

    Raises `UserError` where no healthy server is found there within `server_seconds`.
    """
    changed: dict[str, Any] = {"engine": _reached(study.engine)}
    if not isinstance(study.agent, ScriptedAgent):
        changed["agent"] = study.agent.model_copy(update={"engine": _reached(study.agent.engine)})
    return study.model_copy(update=changed)


def _reached(engine: Engine) -> Engine:
    if not isinstance(engine, OpenAiEngine) or engine.server is None:
        return engine
    address = _wait(engine.server, engine.server_seconds)
    variable = None
    if address.key:
        variable = f"{_KEY}_{hashlib.sha256(address.url.encode()).hexdigest()[:8].upper()}"
        os.environ[variable] = address.key
    found = {
        "base_url": address.url,
        "model": address.adapter or address.model,
        "api_key_env": variable,
        "serves": address.serves,
    }
    return OpenAiEngine.model_validate(engine.model_dump() | found)


def _wait(file: Path, seconds: int) -> Address:
    deadline = time.monotonic() + seconds
    while True:
        try:
            address = Address.model_validate_json(file.read_bytes())
            with urllib.request.urlopen(f"{address.url.removesuffix('/v1')}/health", timeout=5) as answer:
                if answer.status == 200:
                    return address
            why = f"its server answers with {answer.status}"
        except FileNotFoundError:
            why = "no such file"
        except ValidationError:
            why = "no address file"
        except (urllib.error.URLError, OSError, ValueError) as error:
            why = f"its server can't be reached ({getattr(error, 'reason', error)})"
        if time.monotonic() >= deadline:
            raise UserError(
                f"engine.server={file}: {why}; start eval/serve.py with engine.address={file}, or raise "
                "engine.server_seconds"
            )
        time.sleep(min(2.0, max(0.1, deadline - time.monotonic())))
