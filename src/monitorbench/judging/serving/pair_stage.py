"""`eval/serve.py` with a probe: model and probe in one process, on `engine=transformers`.

As with vLLM's server `server.json` in the run directory has the address while it answers, and the key where
another machine can reach it.
"""

import logging
import os
import secrets
from pathlib import Path

from monitorbench.config.base import ConfigError
from monitorbench.config.endpoint import Served
from monitorbench.config.engine import with_states
from monitorbench.config.study import Study
from monitorbench.engines.size import refuse_too_large
from monitorbench.engines.weights import weights_folder
from monitorbench.judging.evaluate import judge_name, training_facts
from monitorbench.judging.identity import judge_identity
from monitorbench.judging.serving.listening import LOOPBACK, free_port, reached_at, terminable
from monitorbench.judging.serving.pair_server import listening, open_both
from monitorbench.judging.serving.served import Address, answering
from monitorbench.runs.directory import RunDirectory

_log = logging.getLogger(__name__)


def serve_pair(study: Study) -> Path:
    """Serve the monitor's probe, and its model with it, until interrupted; returns the run directory.

    Raises `ConfigError` for another engine than transformers, several adapters, or what no probe can read,
    `UserError` for a taken port.
    """
    monitor, engine = study.monitor, with_states(study.engine)
    if study.adapters:
        raise ConfigError("adapters: a probe reads the base's states; expected no adapters")
    port = free_port(engine.host, engine.port)
    refuse_too_large(monitor, engine)  # before it is downloaded
    refuse_too_large(monitor, engine, weights_folder(monitor, study.paths.models))
    of_probe = study.model_copy(update={"monitor": monitor.probe_alone()})
    probe = judge_identity(of_probe.monitor, engine, study.prompt)
    identity = {
        "judge": probe,
        "pair": monitor.head_beside is not None,
        "host": engine.host,
        "port": port,  # two servers of one config have a directory each
    }
    run = RunDirectory(study.paths.runs / "serve", judge_name(of_probe.monitor, of_probe.engine), identity)
    key = None if engine.host in LOOPBACK else secrets.token_urlsafe(32)
    with (
        run.recording(study),
        terminable(),
        open_both(monitor, engine, study.prompt, study.paths.models) as judges,
        listening(judges, engine.host, port, key) as server,
    ):
        address = Address(
            url=f"http://{reached_at(engine.host)}:{port}",
            model=judge_name(of_probe.monitor, of_probe.engine),
            adapter=None,
            serves=Served(
                weights=probe["weights"],
                adapter=probe["adapter"],
                dtype=probe["dtype"],
                training=training_facts(of_probe.monitor, of_probe.engine),
            ),
            key=key,
            pid=os.getpid(),
        )
        with answering(run.path, address):
            both = f"{monitor.name} and its probe" if monitor.head_beside else address.model
            _log.info("serve: POST %s/judge asks %s; Ctrl-C ends it", address.url, both)
            print(run.path, flush=True)
            server.serve_forever()
    return run.path
