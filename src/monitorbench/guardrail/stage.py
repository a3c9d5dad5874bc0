"""`eval/serve.py`: a model's own server, or with `serve.guardrail=true` a calibrated monitor."""

from pathlib import Path

from monitorbench.config.base import ConfigError
from monitorbench.config.deployment import Serve
from monitorbench.config.study import Study


def serve(study: Study) -> Path:
    """Serve what is configured until interrupted; returns the run directory.

    Raises what `judging.serving.vllm_server.serve` or `guardrail.serve.serve_guardrail` raises, and
    `ConfigError` for settings of a guardrail where none is asked for.
    """
    if study.serve.guardrail:
        from monitorbench.guardrail.serve import serve_guardrail

        return serve_guardrail(study)
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
