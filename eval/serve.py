"""Serve a monitor, adapter included, through vLLM's OpenAI-compatible server until Ctrl-C.

    python eval/serve.py monitor=smollm2_135m engine=vllm

Prints the run's directory (server.json has the address) once the server is healthy.
"""

from pathlib import Path

from monitorbench.catalog.selectors import resolved
from monitorbench.config.entry import entry
from monitorbench.config.study import Study


@entry(__file__, "serve", resolved)
def main(study: Study) -> Path:
    """Run the stage."""
    from monitorbench.judging.server import serve

    return serve(study)


if __name__ == "__main__":
    main()
