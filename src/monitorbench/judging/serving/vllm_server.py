"""vLLM's OpenAI-compatible server as a child process: started, watched, ended with us.

`serve` holds until Ctrl-C, SIGTERM or the server's own end. Meanwhile `server.json` in the run
directory has the address and the model names, and for a server that has a name (`engine.served_as`) or that
other machines can reach the key that was made for it; `server.log` has all that the server says.
"""

import http.client
import json
import logging
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.endpoint import Served
from monitorbench.config.engine import Engine, servable
from monitorbench.config.monitor import Monitor
from monitorbench.config.study import Study, VllmEngine
from monitorbench.engines.stored.adapter import adapter_folder, adapter_sha256, refuse_unfit_adapter
from monitorbench.engines.stored.model_folder import load_config
from monitorbench.engines.vllm_engine import llm_settings, lora_rank, vllm_environment
from monitorbench.engines.weights import weights_identity, weights_that_fit
from monitorbench.judging.adapters import by_adapter
from monitorbench.judging.evaluate import judge_name, training_facts
from monitorbench.judging.serving.served import (
    DIRECTLY,
    EVERYWHERE,
    LOOPBACK,
    Address,
    address_file,
    answering,
    end_address,
    free_port,
    reached_at,
    terminable,
    write_address,
)
from monitorbench.runs.directory import RunDirectory

_log = logging.getLogger(__name__)

_SECONDS_TO_END = 20.0
_ADAPTERS_AT_ONCE = 8
"""Adapters in one batch; each takes its share of the GPU's memory."""


class VllmServer(NamedTuple):
    """A healthy server: its base URL, the base model's name, and what each study's adapter is called."""

    url: str
    model: str
    adapters: tuple[str | None, ...]
    """Names of `monitor.adapter` and then of each of `adapters`; None for the base."""
    process: "subprocess.Popen[bytes]"
    key: str | None
    """Key that it asks for; None for a server without a name that only this machine can reach."""


def serve(study: Study) -> Path:
    """Serve the configured monitor until interrupted; returns the run directory.

    One with a probe is served by `judging.serving.pair_server`. Raises `UserError` for another engine than
    vLLM, a taken port, or a server that dies or is not healthy in time.
    """
    if study.monitor.head or study.monitor.head_beside:
        from monitorbench.judging.serving.pair_server import serve_pair

        return serve_pair(study)
    engine = servable(study.engine)
    port = free_port(engine.host, engine.port)
    served = [_served(monitor, engine) for monitor in by_adapter(study.monitor, study.adapters)]
    more = {"adapters": [variant.adapter for variant in served[1:]]} if study.adapters else {}
    identity = {
        "weights": served[0].weights,
        "adapter": served[0].adapter,
        **more,
        "engine": engine.model_dump(mode="json", exclude={"served_as"}) | {"dtype": served[0].dtype},
        "port": port,  # two servers of one config have a directory each
    }
    run = RunDirectory(study.paths.runs / "serve", judge_name(study.monitor, study.engine), identity)
    with run.recording(study), terminable(), running_server(study, port, run.path / "server.log") as server:
        addresses = [
            Address(
                url=server.url,
                model=server.model,
                adapter=adapter,
                serves=variant,
                key=server.key,
                pid=server.process.pid,
            )
            for adapter, variant in zip(server.adapters, served, strict=True)
        ]
        files = _files(study.engine, study.paths.runs, addresses)
        with answering(run.path, addresses[0]):
            for file, address in files.items():
                write_address(file, address)
            try:
                answers = " and ".join(adapter or server.model for adapter in server.adapters)
                _log.info("serve: %s answers for %s; Ctrl-C ends it", server.url, answers)
                for file, address in files.items() if study.adapters else ():
                    _log.info("serve: engine.server=%s asks %s", file.stem, address.adapter or address.model)
                print(run.path, flush=True)
                code = server.process.wait()
                log = run.path / "server.log"
                raise UserError(f"the server ended by itself (exit code {code}); see {log}")
            finally:
                for file, address in files.items():
                    end_address(file, address)
    return run.path


@contextmanager
def running_server(study: Study, port: int, log: Path) -> Iterator[VllmServer]:
    """A healthy server on `port` for as long as the body runs; it and its workers end with it."""
    engine = servable(study.engine).for_monitor(study.monitor.tensor_parallel_size)
    guarded = engine.served_as is not None or engine.host not in LOOPBACK
    key = secrets.token_urlsafe(32) if guarded else None
    # Not on the command line, which every user of the machine can read.
    environment = {**os.environ, **vllm_environment(engine), **({"VLLM_API_KEY": key} if key else {})}
    weights = weights_that_fit(study.monitor, engine, study.paths.models)
    load_config(weights)  # code of its own is refused in one line here, not in the server's log
    several = by_adapter(study.monitor, study.adapters)
    names = adapter_names(several, study.engine)
    folders = [adapter_folder(monitor.adapter) for monitor in several]
    for folder in folders:
        if folder is not None:
            refuse_unfit_adapter(folder, weights)
    command = [
        *_command(study.monitor, engine, weights, port),
        *_lora(dict(zip(names, folders, strict=True))),
    ]
    if key:
        command += ["--middleware", "monitorbench.judging.serving.connection.KeyRequired"]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as stream:
        # A session of its own: Ctrl-C in the terminal reaches us, and we end the whole group.
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
        try:
            host = reached_at(engine.host)
            near = "127.0.0.1" if engine.host in EVERYWHERE else engine.host
            _wait_until_healthy(f"http://{near}:{port}", process, engine.startup_seconds, log)
            yield VllmServer(f"http://{host}:{port}/v1", study.monitor.name, names, process, key)
        finally:
            _end(process)


def _command(monitor: Monitor, engine: VllmEngine, weights: Path, port: int) -> list[str]:
    # `vllm serve` asks for the metadata of a package named vllm, which the CPU wheel is not.
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
    command += ["--served-model-name", monitor.name, "--host", engine.host, "--port", str(port)]
    for name, value in llm_settings(engine, weights, monitor.context_tokens).items():
        option = name.replace("_", "-")
        match value:
            case bool():
                command.append(f"--{option}" if value else f"--no-{option}")
            case _:
                command += [f"--{option}", str(value)]
    return command


def _lora(adapters: Mapping[str | None, Path | None]) -> list[str]:
    """Arguments that have vLLM answer for adapters by name; requests of several share a batch."""
    folders = {name: folder for name, folder in adapters.items() if folder is not None}
    if not folders:
        return []
    modules = [json.dumps({"name": name, "path": str(folder.resolve())}) for name, folder in folders.items()]
    rank = str(lora_rank(list(folders.values())))
    at_once = str(min(len(modules), _ADAPTERS_AT_ONCE))
    limits = ["--max-lora-rank", rank, "--max-loras", at_once, "--max-cpu-loras", str(len(modules))]
    return ["--enable-lora", *limits, "--lora-modules", *modules]


def adapter_names(several: Sequence[Monitor], engine: Engine) -> tuple[str | None, ...]:
    """A server's names of each monitor's adapter; None for the base.

    Raises `ConfigError` where two would be called the same.
    """
    names = tuple(judge_name(monitor, engine) if monitor.adapter else None for monitor in several)
    for number, name in enumerate(names):
        if name in names[:number]:
            earlier, later = (several[index].adapter for index in (names.index(name), number))
            raise ConfigError(
                f"adapters: {earlier} and {later} would both be called {name}; expected one of them"
            )
    return names


def _served(monitor: Monitor, engine: VllmEngine) -> Served:
    adapter = adapter_folder(monitor.adapter)
    return Served(
        weights=weights_identity(monitor),
        adapter=adapter_sha256(adapter) if adapter else "",
        dtype=engine.precision,
        training=training_facts(monitor, engine),
    )


def _files(engine: Engine, runs: Path, addresses: Sequence[Address]) -> dict[Path, Address]:
    """Addresses under `engine.served_as` by file: the first as that, the others as NAME.ADAPTER."""
    name = servable(engine).served_as
    if name is None:
        return {}
    of_adapters = [(one.adapter or "base").rpartition("+")[2] for one in addresses[1:]]
    names = [name, *(f"{name}.{re.sub(r'[^A-Za-z0-9._-]', '_', one)}" for one in of_adapters)]
    return {address_file(runs, one): address for one, address in zip(names, addresses, strict=True)}


def _wait_until_healthy(url: str, process: "subprocess.Popen[bytes]", seconds: int, log: Path) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if (code := process.poll()) is not None:
            raise UserError(f"the server ended while starting (exit code {code}); see {log}")
        try:
            with DIRECTLY.open(f"{url}/health", timeout=2) as answer:
                if answer.status == 200:
                    return
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.5)
    raise UserError(f"the server was not healthy within engine.startup_seconds={seconds}; see {log}")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ask the whole group to end, then make it; a second Ctrl-C does not leave it half-way."""
    before = [(number, signal.signal(number, signal.SIG_IGN)) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        _end_group(process)
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    for step in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, step)
        except ProcessLookupError:
            break
        try:
            process.wait(_SECONDS_TO_END / 2)
        except subprocess.TimeoutExpired:
            continue
        # The server is gone; a worker that outlives it is not.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            break
    process.wait()
