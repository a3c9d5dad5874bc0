"""A model and its probe in one process, served: `POST /judge` with a request and a response; `GET /health`.

One model of `engine=transformers`, one thread that asks it, in the order in which requests come. Nothing of
what is judged stays: neither text nor states are written, and no request waits for a batch. A body is JSON as
the standard has it, and refused in one line; limits and key are the HTTP server's (`judging.serving.http`).
As with vLLM's server `server.json` in the run directory has the address while it answers, and the key where
another machine can reach it.
"""

import logging
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from monitorbench.config.base import ConfigError
from monitorbench.config.endpoint import Served
from monitorbench.config.engine import TransformersEngine, with_states
from monitorbench.config.monitor import Monitor, Prompt
from monitorbench.config.study import Study
from monitorbench.conversations.read import NoChat
from monitorbench.engines.weights import weights_that_fit
from monitorbench.judging.evaluate import judge_name, training_facts
from monitorbench.judging.identity import judge_identity, judge_spec
from monitorbench.judging.judge import TRIAL, Judge
from monitorbench.judging.open import open_judge
from monitorbench.judging.probe import open_pair
from monitorbench.judging.serving.asked import asked_in, json_in, sample_asked
from monitorbench.judging.serving.connection import HttpAnswer, Refusal
from monitorbench.judging.serving.http import HttpServer
from monitorbench.judging.serving.http import listening as listening_at
from monitorbench.judging.serving.served import (
    LOOPBACK,
    Address,
    answering,
    free_port,
    reached_at,
    terminable,
)
from monitorbench.records import Sample, Verdict
from monitorbench.runs.directory import RunDirectory


class JudgedByBoth(NamedTuple):
    """The verdict on one sample, and of the same pass that of the probe beside the model."""

    verdict: Verdict
    probe: Verdict | None
    """None without one, and for a sample that is too long."""


AskBoth = Callable[[Sample], JudgedByBoth]


@contextmanager
def open_both(
    monitor: Monitor, engine: TransformersEngine, prompt: Prompt, models: Path
) -> Iterator[AskBoth]:
    """A function that judges one sample after the other, from one thread, its model loaded and tried.

    With `monitor.head_beside` the model's verdict has the probe's beside it, with `monitor.head` the verdict
    is the probe's, of a pass that ends at its layer. Raises what `open_pair` and `open_judge` raise.
    """
    beside: list[Verdict] = []
    if monitor.head_beside is not None:
        judge: Judge = open_pair(monitor, engine, prompt, models, beside.append)
    else:
        judge = open_judge(judge_spec(monitor, engine, prompt), models, keeps_states=False)

    def ask(sample: Sample) -> JudgedByBoth:
        beside.clear()
        (verdict,) = judge.verdicts([sample])
        return JudgedByBoth(verdict, beside[0] if beside else None)

    with closing(judge):
        ask(TRIAL)
        yield ask


def answer_of(judged: JudgedByBoth, seconds: float) -> dict[str, Any]:
    """The answer of `/judge`."""
    verdict, probe = judged
    return {
        "label": verdict.label,
        "unscored": verdict.unscored,
        "detail": verdict.detail,
        "score": verdict.score,
        "probe": probe and {"label": probe.label, "score": probe.score},
        "prompt_tokens": verdict.prompt_tokens,
        "seconds": round(seconds, 6),
    }


@contextmanager
def listening(judges: AskBoth, host: str, port: int, key: str | None) -> Iterator[HttpServer]:
    """A server that is bound to its port; `serve_forever` answers. Raises `OSError` where it is taken.

    `judges` is called from one thread of its own, so that torch keeps one pool of threads.
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="judge") as worker:

        def timed(sample: Sample) -> dict[str, Any]:
            began = time.perf_counter()
            return answer_of(judges(sample), time.perf_counter() - began)

        def judged(body: bytes, headers: Mapping[str, str]) -> HttpAnswer | Refusal:
            try:
                asked = asked_in(json_in(body), "refuse")
                sample = sample_asked(asked.exchange, asked.category)
            except NoChat as error:
                return Refusal(400, str(error))
            return HttpAnswer(200, worker.submit(timed, sample).result())

        with listening_at({"/judge": judged}, host, port, key, names=(reached_at(host),)) as server:
            yield server


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
    weights_that_fit(monitor, engine, study.paths.models)
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
