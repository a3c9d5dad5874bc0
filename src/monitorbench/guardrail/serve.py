"""`eval/serve.py`: a model's own server, or with `serve.guardrail=true` a calibrated monitor as a guardrail.

While a guardrail answers, `server.json` in the run directory has its address, its key where it asks for one,
and what it serves; `decisions.jsonl` has what it decided, and `refusals.jsonl` what it did not take.
"""

import logging
import os
import secrets
from collections import Counter
from pathlib import Path

from monitorbench.config.base import Config, ConfigError, UserError
from monitorbench.config.deployment import Serve
from monitorbench.config.study import Study
from monitorbench.guardrail.calibrated import Calibrated, read_calibrated
from monitorbench.guardrail.monitor import open_monitor
from monitorbench.guardrail.service import PATH, serving
from monitorbench.judging.serving.served import LOOPBACK, answering, free_port, reached_at, terminable
from monitorbench.runs.directory import RunDirectory

_log = logging.getLogger(__name__)


class GuardrailAddress(Config):
    """Content of a guardrail's `server.json`."""

    url: str
    key: str | None
    pid: int
    monitor: str
    operating_point: str
    """The calibration's directory name."""
    thresholds: dict[str, float | None]
    """Thresholds by category; "" for all."""
    fails: str
    shadow: bool


def serve(study: Study) -> Path:
    """Serve what is configured until interrupted; returns the run directory.

    Raises what `judging.serving.vllm_server.serve` raises, `ConfigError` for settings of a guardrail where
    none is asked for, and `UserError` where a guardrail's judge can't be had, its port is taken or the
    variable with its key is not set.
    """
    if study.serve.guardrail:
        return _serve_guardrail(study)
    if of_guardrail := _settings_of_a_guardrail(study.operating_point, study.serve):
        raise ConfigError(
            f"{of_guardrail}: a guardrail's, and serve.guardrail=false serves the model alone, without a "
            "threshold; expected serve.guardrail=true"
        )
    from monitorbench.judging.serving.vllm_server import serve as serve_model

    return serve_model(study)


def _settings_of_a_guardrail(operating_point: Path | None, serve: Serve) -> str:
    """The first that was set, as it is typed; empty where none was."""
    if operating_point is not None:
        return f"operating_point={operating_point}"
    usual = Serve().model_dump()
    changed = (f"serve.{name}={value}" for name, value in serve.model_dump().items() if value != usual[name])
    return next(changed, "")


def _serve_guardrail(study: Study) -> Path:
    """Serve what `operating_point` was calibrated for, at its threshold."""
    settings = study.serve
    calibrated = read_calibrated(study)
    key = _key(settings)
    port = free_port(settings.host, settings.port, "serve")
    url = f"http://{reached_at(settings.host, 'serve')}:{port}"
    run = RunDirectory(study.paths.runs / "serve", _name(calibrated), _identity(calibrated, settings, port))
    with (
        run.recording(study) as results,
        terminable(),
        open_monitor(calibrated, settings.timeout_seconds, settings.at_once) as monitor,
    ):
        counts: Counter[str] = Counter()
        address = GuardrailAddress(
            url=url,
            key=key,
            pid=os.getpid(),
            monitor=monitor.name,
            operating_point=calibrated.directory.resolve().name,
            thresholds=calibrated.thresholds,
            fails=settings.fails,
            shadow=settings.shadow,
        )
        try:
            with serving(monitor, settings, run.path, port, key) as (server, guardrail):
                counts = guardrail.counts
                with answering(run.path, address):
                    mode = "shadow, answers pass" if settings.shadow else f"fails {settings.fails}"
                    _log.info("serve: POST %s%s asks %s (%s); Ctrl-C ends it", url, PATH, monitor.name, mode)
                    print(run.path, flush=True)
                    server.serve_forever()
        finally:  # what was in hand at the end is counted as well
            results["monitor"] = monitor.name
            results["decisions"] = dict(counts)
    return run.path


def _key(settings: Serve) -> str | None:
    """The key of a variable, or one that is made where others can reach the host."""
    if settings.api_key_env is not None:
        key = os.environ.get(settings.api_key_env, "").strip()
        if not key or not (key.isascii() and key.isprintable()):
            raise UserError(
                f"serve.api_key_env={settings.api_key_env}: no key in it; set that environment variable to "
                "plain ASCII"
            )
        return key
    return None if settings.host in LOOPBACK else secrets.token_urlsafe(32)


def _name(calibrated: Calibrated) -> str:
    """Name of the guardrail's run: that of the run that it was calibrated on."""
    return "guardrail-" + calibrated.directory.resolve().name.rpartition("-")[0]


def _identity(calibrated: Calibrated, settings: Serve, port: int) -> dict[str, object]:
    decides = settings.model_dump(
        mode="json", include={"host", "fails", "shadow", "timeout_seconds", "most_bytes", "log_text"}
    )
    return {
        "operating_point": calibrated.point.model_dump(mode="json"),
        "serve": decides | {"port": port},  # two servers of one config have a directory each
    }
