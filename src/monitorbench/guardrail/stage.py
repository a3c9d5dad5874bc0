"""`eval/serve.py`: a model's own server, or with `serve.guardrail=true` a calibrated monitor."""

from pathlib import Path

from monitorbench.config.study import Study


def serve(study: Study) -> Path:
    """Serve what is configured until interrupted; returns the run directory.

    Raises what `judging.server.serve` or `guardrail.serve.serve_guardrail` raises.
    """
    if study.serve.guardrail:
        from monitorbench.guardrail.serve import serve_guardrail

        return serve_guardrail(study)
    from monitorbench.judging.server import serve as serve_model

    return serve_model(study)
